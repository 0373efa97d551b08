"""The top of the report: who spoke with whom, the counts, and what is to be said of it in one sentence."""

from antiphon.recorder.report.markup import Markup, joined, tag
from antiphon.recorder.story import Party, Story
from antiphon.recorder.wording import NOTHING, counted, seconds, size

__all__ = ["SECTIONS", "file_name", "head", "navigation", "party", "verdict"]


SECTIONS = (
    ("turns", "Turns"),
    ("calls", "Tool calls"),
    ("waits", "Waits"),
    ("errors", "Errors"),
    ("deviations", "Deviations"),
    ("advice", "Advice"),
    ("slow", "Slow spots"),
    ("methods", "Sizes"),
    ("sessions", "Sessions"),
)
"""What of a story has a table of its own, in the order of the page."""


def file_name(path: str) -> str:
    """The last part of a path: a report is passed on, and where its recording lay is nobody's business."""
    return path.replace("\\", "/").rsplit("/", 1)[-1]


def party(who: Party | None, otherwise: str) -> str:
    """A name for one side."""
    return (who.title or who.name or otherwise) if who else otherwise


def head(story: Story) -> Markup:
    """Names, verdict and counts."""
    return joined(
        tag(
            "p",
            tag("span", "antiphon inspect"),
            " ",
            tag("span", file_name(story.file), class_="file"),
            class_="eyebrow",
        ),
        tag(
            "h1",
            _who(story.client, "Client", "client"),
            tag("span", " with ", class_="with"),
            _who(story.agent, "Agent", "agent"),
        ),
        _verdict_line(story),
        tag("dl", *_tiles(story), class_="tiles"),
    )


def _who(who: Party | None, otherwise: str, side: str) -> Markup:
    version = tag("small", f" {who.version}") if who and who.version else None
    return tag("span", party(who, otherwise), version, class_=f"party {side}")


def verdict(story: Story) -> tuple[str, str]:
    """What is to be said of it, in a word and a sentence."""
    if not story.messages and not story.undecodable:
        return "fair", f"There is no message in it, and {counted(story.skipped, 'line')} of another kind."
    found = []
    if story.deviations:
        found.append(f"{counted(len(story.deviations), 'deviation')} from the protocol")
    if story.errors:
        found.append(f"{counted(len(story.errors), 'answer')} with an error")
    if story.undecodable:
        found.append(f"{counted(story.undecodable, 'line')} that could not be read")
    if story.unanswered:
        found.append(f"{counted(len(story.unanswered), 'request')} without an answer")
    judged = "" if story.judged else " Only conversations of protocol version 1 are judged by its rules."
    judged += f" {counted(len(story.advice), 'piece')} of advice." if story.advice else ""
    if not found:
        return "good", f"{'No deviation from the protocol and no' if story.judged else 'No'} error.{judged}"
    said = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    return ("bad" if story.deviations or story.undecodable else "fair"), f"{said}.{judged}"


def _verdict_line(story: Story) -> Markup:
    word, sentence = verdict(story)
    sign = {"good": "✓", "fair": "!", "bad": "▲"}[word]
    return tag("p", tag("span", sign, class_="sign", aria_hidden="true"), " ", sentence, class_=f"verdict {word}")


def _tiles(story: Story) -> list[Markup]:
    waited = sum(turn.waited for turn in story.turns)
    tiles = [
        ("Duration", seconds(story.duration), None),
        ("Messages", f"{story.messages:,}", f"→ {size(story.bytes.c2a)} ← {size(story.bytes.a2c)}"),
        ("Turns", f"{len(story.turns):,}", f"{seconds(sum(turn.duration or 0 for turn in story.turns))} in turns"),
        ("Tool calls", f"{len(story.calls):,}", _failed(story)),
        ("Waits", f"{len(story.waits):,}", f"{seconds(waited)} waited" if story.waits else None),
        ("Errors", f"{len(story.errors):,}", None),
        ("Deviations", f"{len(story.deviations):,}", _rules(story)),
        ("Protocol", f"v{story.version}" if story.version is not None else NOTHING, _conversations(story)),
    ]
    return [
        tag(
            "div",
            tag("dt", name),
            tag("dd", value, tag("small", more) if more else None),
            class_=_tile_class(name, value),
        )
        for name, value, more in tiles
    ]


def _tile_class(name: str, value: str) -> str | None:
    return {"Errors": "bad", "Deviations": "warn"}.get(name) if value != "0" else None


def _failed(story: Story) -> str | None:
    failed = sum(call.status == "failed" for call in story.calls)
    return f"{failed} failed" if failed else None


def _rules(story: Story) -> str | None:
    rules = f"of {counted(len({one.rule for one in story.deviations}), 'rule')}" if story.deviations else ""
    advice = f"{counted(len(story.advice), 'piece')} of advice" if story.advice else ""
    return ", ".join(filter(None, (rules, advice))) or None


def _conversations(story: Story) -> str | None:
    return counted(len(story.conversations), "conversation") if len(story.conversations) > 1 else None


def navigation(story: Story) -> Markup:
    """The way to each part that has something in it, with how much."""
    links = [("timeline", "Timeline", None), ("messages", "Messages", story.messages)]
    links += [(name, title, len(getattr(story, name))) for name, title in SECTIONS if getattr(story, name)]
    return joined(
        *(
            tag("a", title, tag("small", f" {count:,}") if count is not None else None, href=f"#{name}")
            for name, title, count in links
        )
    )
