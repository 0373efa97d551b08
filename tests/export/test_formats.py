"""A history retold: Markdown, JSON and HTML of the same session."""

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw

from antiphon.duet.history import events
from antiphon.duet.history.events import ClearEvent, Event, GivenEvent, UpdateEvent
from antiphon.export.html import html_of_markdown, page
from antiphon.export.json import document
from antiphon.export.markdown import markdown
from antiphon.export.session import ExportedSession, SessionFacts, read_session
from antiphon.protocol import v1
from tests.cli.histories import AT, asked, called, ended, message_event, thought, write
from tests.cli.test_sessions import ONE, Sessions, home, sessions

__all__ = ["home", "sessions"]  # the fixtures

ABOUT = SessionFacts(
    "s", "Songs", "/w", (), "2026-01-02T03:04:05.000000Z", "2026-01-02T03:04:05.000000Z", "duet", ("claude",), 1
)
PIXEL = base64.b64encode(b"\x89PNG\r\n").decode()


def exported(*history: Event | bytes) -> ExportedSession:
    return read_session(ABOUT, [each if isinstance(each, bytes) else events.pack(each) for each in history])


def body(*history: Event | bytes, **how: bool) -> str:
    """The Markdown without its head and without times."""
    text = markdown(exported(*history), **how).partition("Z\n\n")[2]
    return re.sub(r"^(## .*) · .*$", r"\1", text, flags=re.MULTILINE)


def entries(*history: Event | bytes) -> list[dict[str, object]]:
    return list(json.loads(document(exported(*history)))["entries"])


# the fold


def test_the_author_of_each_message_is_shown_and_no_label_twice() -> None:
    assert (
        body(
            asked("Hello"),
            message_event("**Claude Code**\n\n", "claude", "a"),
            message_event("**Codex**\n\n", "codex", "b"),
            message_event("I am ", "claude", "a"),
            message_event("Salut", "codex", "b"),
            message_event("Claude", "claude", "a"),
            called("Codex: ls", engine="codex"),
            ended("claude"),
            ended("codex"),
        )
        == "## You\n\nHello\n\n## Claude Code\n\nI am Claude\n\n## Codex\n\nSalut\n\n✓ `ls` (execute)\n"
    )


def test_a_label_of_ours_belongs_to_the_engine_that_it_names() -> None:
    label = v1.AgentMessageChunk(v1.TextBlock("**Codex**\n\n"), "b", meta={"antiphon": {"engine": "codex"}})
    assert (
        body(asked("Hello"), events.update_event(label), message_event("Salut", "codex", "b"))
        == "## You\n\nHello\n\n## Codex\n\nSalut\n"
    )


def test_two_engines_without_message_ids_do_not_finish_each_others_sentences() -> None:
    spoken = [message_event("one ", "claude"), message_event("uno ", "codex"), message_event("two", "claude")]
    assert [entry["text"] for entry in entries(*spoken)] == ["one ", "uno ", "two"]


def test_a_failure_is_shown_and_so_is_an_early_end() -> None:
    failure = events.update_event(v1.NoticeUpdate(v1.NoticeSeverity.ERROR, "Codex failed", "the model is overloaded"))
    shown = body(asked("x"), ended("codex", "", "the model is overloaded"), failure, ended("claude", "max_tokens"))
    assert shown.count("> **error: Codex failed**: the model is overloaded") == 1
    assert "> **info: Claude Code stopped: max tokens**" in shown


def test_what_an_engine_was_given_and_what_was_cleared_is_not_shown() -> None:
    history = [
        asked("before"),
        message_event("old"),
        ClearEvent(AT),
        GivenEvent(AT, "codex", "secret"),
        asked("after", by="nudge"),
    ]
    assert body(*history) == "## You (by nudge)\n\nafter\n"


def test_a_prompt_that_is_repeated_as_an_update_is_exported_once() -> None:
    echo = events.update_event(v1.UserMessageChunk(v1.TextBlock("Hello")))
    assert len(entries(asked("Hello"), echo)) == 1


def test_what_cannot_be_read_is_left_out_and_the_rest_is_exported() -> None:
    odd = UpdateEvent(AT, Raw(b'{"sessionUpdate":"from_tomorrow","x":1}'))
    worse = UpdateEvent(AT, Raw(b'{"sessionUpdate":"tool_call"}'))
    assert (
        body(asked("x"), odd, worse, b"nonsense", b'{"event":"new"}', message_event("y"))
        == "## You\n\nx\n\n## Claude Code\n\ny\n"
    )


# Markdown


def test_calls_are_compact_and_changes_are_diffs() -> None:
    changed = v1.Diff("/w/a.py", "one\nthree\n", "one\ntwo\n")
    output = v1.ContentItem(v1.TextBlock("```console\n" + "\n".join(map(str, range(30))) + "\n```"))
    history = [
        thought("hmm\nhmm"),
        called("Edit a.py", changed, kind=v1.ToolKind.EDIT),
        called("make `all`", output, status=v1.ToolStatus.FAILED),
    ]
    shown = body(*history)
    assert "✓ `Edit a.py` (edit)\n\n```diff\na.py  +1 -1\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n```" in shown
    assert "✗ `` make `all` `` (execute, failed)\n\n```\n0\n1\n" in shown and "\n19\n… 10 more lines\n```" in shown
    assert "hmm" not in shown and "> *thought:* hmm\n> hmm" in body(*history, thoughts=True)
    assert body(*history, calls=False) == ""


def test_pictures_and_files_are_notes() -> None:
    prompt: list[str | v1.ContentBlock] = [
        "Look:",
        v1.ImageBlock(PIXEL, "image/png"),
        v1.ResourceLink("a.py", "file:///w/a.py"),
        v1.EmbeddedResource(v1.TextResource("text", "file:///w/b.py")),
    ]
    shown = body(asked(*prompt))
    assert "*[picture: image/png, 6 bytes]*" in shown and "*[link: a.py (file:///w/a.py)]*" in shown
    assert "*[file: file:///w/b.py, 4 bytes]*" in shown and PIXEL not in shown


def test_a_fence_that_was_left_open_does_not_swallow_the_rest() -> None:
    assert body(message_event("```python\nx = 1", "claude"), asked("next")).endswith("x = 1\n```\n\n## You\n\nnext\n")


def test_nothing_on_the_page_moves_a_cursor() -> None:
    shown = markdown(exported(asked("\x1b[2Jboo\u202e"), called("\x1b]0;x\x07"), message_event("\x9b31m")))
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", shown)


# JSON


def test_json_has_the_shape_that_is_promised() -> None:
    whole = json.loads(
        document(
            exported(
                asked("Hello", v1.ImageBlock(PIXEL, "image/png")),
                thought("hmm"),
                message_event("**Claude Code**\n\nHi"),
                called("ls", v1.Diff("/w/a", "x")),
                events.update_event(v1.NoticeUpdate(v1.NoticeSeverity.ERROR, "It failed", "broken")),
                events.update_event(v1.Plan([v1.PlanEntry("Go", v1.PlanPriority.HIGH, v1.PlanStatus.PENDING)])),
            )
        )
    )
    assert (whole["format"], whole["version"]) == ("antiphon.session", 1)
    assert whole["session"] == {
        "id": "s", "title": "Songs", "cwd": "/w", "directories": [], "createdAt": "2026-01-02T03:04:05.000000Z",
        "updatedAt": "2026-01-02T03:04:05.000000Z", "route": "duet", "engines": ["claude"], "turns": 1,
        "client": None, "script": False,
    }  # fmt: skip
    user, pondered, agent, call, notice = whole["entries"]
    assert user == {
        "type": "message", "engine": None, "at": "2026-01-02T03:04:05.000Z", "speaker": "user", "by": None, "text": "Hello",
        "content": [{"type": "text", "text": "Hello"}, {"type": "image", "data": PIXEL, "mimeType": "image/png"}],
    }  # fmt: skip
    assert (pondered["type"], pondered["text"], pondered["engine"]) == ("thought", "hmm", "claude")
    assert (agent["speaker"], agent["text"]) == ("agent", "Hi")
    assert {**call, "at": ""} == {
        "type": "call", "engine": "claude", "at": "", "id": "call ls", "title": "ls", "kind": "execute", "status": "completed", "denied": False,
        "content": [{"type": "diff", "path": "/w/a", "newText": "x"}], "locations": [], "rawInput": None, "rawOutput": None,
    }  # fmt: skip
    assert (notice["type"], notice["severity"], notice["description"]) == ("notice", "error", "broken")
    assert whole["plan"] == [{"content": "Go", "priority": "high", "status": "pending"}]


# HTML

TAGS = {
    "html", "head", "meta", "title", "style", "body", "header", "h1", "dl", "div", "dt", "dd", "code", "time", "main", "article", "h2",
    "h3", "h4", "h5", "h6", "p", "pre", "ul", "ol", "li", "strong", "a", "blockquote", "hr", "details", "summary", "span", "small",
    "em", "aside", "img",
}  # fmt: skip
VOID = {"meta", "hr", "img"}


class Reader(HTMLParser):
    """Reads a page as a browser does: which tags are in it, whether each ends, and what its text says."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.words += data


def harmless(text: str) -> Reader:
    read = Reader(text)
    for tag, attributes in read.tags:
        assert tag in TAGS, tag
        assert not [name for name in attributes if name.startswith("on") or name == "style"]
        if tag == "a":
            assert (attributes["href"] or "").startswith(("https://", "http://"))
        if tag == "img":
            assert (attributes["src"] or "").startswith("data:image/")
    return read


HOSTILE = '</code></pre><script>alert(1)</script><img src=x onerror=alert(1)>"\'& [x](javascript:alert(1)) [y](https://a/"onclick=b)'


def test_hostile_text_is_only_text() -> None:
    about = SessionFacts(HOSTILE, HOSTILE, HOSTILE, (), HOSTILE, HOSTILE, HOSTILE, (HOSTILE,), 1)
    history: list[Event] = [
        asked(
            HOSTILE,
            v1.ImageBlock(PIXEL, "image/png"),
            v1.ImageBlock(HOSTILE, "image/png"),
            v1.ImageBlock(PIXEL, HOSTILE),
        ),
        asked(v1.ResourceLink(HOSTILE, HOSTILE)),
        thought(HOSTILE),
        message_event(
            f"# {HOSTILE}\n\n- {HOSTILE}\n\n> {HOSTILE}\n\n```{HOSTILE}\n{HOSTILE}\n```\n\n`{HOSTILE}` **{HOSTILE}**",
            HOSTILE,
        ),
        called(HOSTILE, v1.Diff(HOSTILE, HOSTILE), v1.ContentItem(v1.TextBlock(HOSTILE))),
        ended(HOSTILE, "", HOSTILE),
    ]
    text = page(read_session(about, [events.pack(each) for each in history]))
    read = harmless(text)
    assert "<script" not in text.lower() and "alert(1)</script>" in read.words
    assert [attributes for tag, attributes in read.tags if tag == "img"] == [
        {"src": f"data:image/png;base64,{PIXEL}", "alt": "picture: image/png, 6 bytes"}
    ]


@given(st.text(st.sampled_from("ab<>&\"'`*[]()#-> |\n1.~_:/htps"), max_size=120))
def test_any_text_becomes_harmless_html_that_still_has_it(text: str) -> None:
    read = harmless(f"<div>{html_of_markdown(text)}</div>")
    letters = [letter for letter in text if letter in "abht"]
    if "http" not in text and "`" not in text and "~" not in text:  # an address and a fence's language are not shown
        assert [letter for letter in read.words if letter in "abht"] == letters


def test_one_file_has_everything_and_loads_nothing() -> None:
    text = page(
        exported(asked("x"), message_event("see [docs](https://example.org/a?b=1&c=2)"), thought("hmm"), called("ls"))
    )
    read = harmless(text)
    assert not re.search(r"<(script|link|iframe)|@import|url\(", text)
    policy = next(attributes for tag, attributes in read.tags if attributes.get("http-equiv"))
    assert (policy["content"] or "").startswith("default-src 'none'")
    assert ("a", {"href": "https://example.org/a?b=1&c=2", "rel": "noopener noreferrer"}) in read.tags
    assert "prefers-color-scheme: dark" in text


def test_markdown_is_written_as_html() -> None:
    text = "# Head\n\nA **bold** `x < y`\n\n1. one\n   - deep\n2. two\n\n> quoted\n\n```py\na\n\nb\n```\n\n| a |\n|---|\n\n---"
    assert html_of_markdown(text).split("\n") == [
        "<h3>Head</h3>",
        "<p>A <strong>bold</strong> <code>x &lt; y</code></p>",
        '<ol start="1"><li>one<ul><li>deep</li></ul></li><li>two</li></ol>',
        "<blockquote><p>quoted</p></blockquote>",
        "<pre><code>a",
        "",
        "b</code></pre>",
        "<pre>| a |",
        "|---|</pre>",
        "<hr>",
    ]


@pytest.mark.parametrize(
    "text", ["[" * 50_000, "`" * 50_000, "**" * 25_000, "> " * 20_000, " " * 50_000 + "x", "# " + " " * 50_000]
)
def test_no_text_takes_long(text: str) -> None:
    harmless(f"<div>{html_of_markdown(text)}</div>")  # the suite's limit would end it


def test_changes_are_coloured_and_thoughts_and_calls_can_be_closed() -> None:
    text = page(
        exported(
            thought("hmm"), called("Edit", v1.Diff("/w/a.py", "new", "old")), called("ls", status=v1.ToolStatus.FAILED)
        )
    )
    assert '<details class="thought"><summary>Thought</summary>' in text
    assert '<details class="call completed" open>' in text and '<div class="call failed">' in text
    assert '<span class="removed">-old\n</span><span class="added">+new\n</span>' in text


# export


@pytest.mark.parametrize(
    ("words", "begins"),
    [
        (("-o", "talk.md"), "# Songs"),
        (("-o", "talk.HTML"), "<!DOCTYPE html>"),
        (("-o", "talk.json"), "{\n"),
        (("-o", "talk.txt", "--format", "json"), "{\n"),
        (("--format", "html"), "<!DOCTYPE html>"),
        ((), "# Songs"),
    ],
)
def test_the_format_is_the_given_one_or_that_of_the_extension(
    home: Path, sessions: Sessions, words: tuple[str, ...], begins: str
) -> None:
    write(ONE, str(home), [asked("Sing ü"), thought("hmm"), message_event("La")], title="Songs")
    status, out, err = sessions("export", "last", *words)
    assert status == 0
    if "-o" in words:
        assert (out, err) == ("", f"wrote {words[1]}\n")
        out = (home / words[1]).read_text(encoding="utf-8")
    assert out.startswith(begins) and "Sing ü" in out and "hmm" in out


def test_a_file_that_cannot_be_written_is_an_error(home: Path, sessions: Sessions) -> None:
    write(ONE, str(home), [asked("Sing")])
    status, _, err = sessions("export", "last", "-o", "/nowhere/talk.md")
    assert status == 2 and "`/nowhere/talk.md` cannot be written: there is no such directory" in err


def test_show_has_the_same_as_json(home: Path, sessions: Sessions) -> None:
    write(ONE, str(home), [asked("Sing"), message_event("La")])
    shown = sessions("show", "last", "--json")[1]
    assert shown.count("\n") == 1 and json.loads(shown) == json.loads(sessions("export", "last", "--format", "json")[1])
    assert sessions("show", "last", "--markdown")[1] == sessions("show", "last")[1]
    assert sessions("show", "last", "--json", "--markdown")[0] == 2
