"""Files that go along with a prompt: found, read, and sent as what the agent takes."""

import base64
from pathlib import Path

import pytest

from antiphon.client import attachments
from antiphon.client.attachments import AttachmentError, attached, mentioned, prompt_blocks
from antiphon.protocol import v1
from tests.rows import each_row

ALL = v1.PromptCapabilities(image=True, audio=True, embedded_context=True)
NONE = v1.PromptCapabilities()

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 8
MEDIA = {
    "a.png": (PNG, "image/png"),
    "a.jpg": (b"\xff\xd8\xff\xe0\0\0", "image/jpeg"),
    "a.jpeg": (b"\xff\xd8\xff\xe0\0\0", "image/jpeg"),
    "a.gif": (b"GIF89a\0", "image/gif"),
    "a.webp": (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
    "a.svg": (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml"),
    "a.wav": (b"RIFF\0\0\0\0WAVEfmt ", "audio/wav"),
    "a.mp3": (b"ID3\x04\0", "audio/mp3"),
    "a.ogg": (b"OggS\0", "audio/ogg"),
    "a.flac": (b"fLaC\0", "audio/flac"),
    "a.aac": (b"\xff\xf1P\x80", "audio/aac"),
    "no-suffix": (PNG, "image/png"),
    "lies.gif": (PNG, "image/png"),
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "main.py").write_text("".join(f"line {n}\n" for n in range(1, 31)), encoding="utf-8")
    (tmp_path / "README.md").write_text("# Call\n", encoding="utf-8")
    (tmp_path / "my notes.txt").write_text("and response\n", encoding="utf-8")
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    for name, (data, _) in MEDIA.items():
        (tmp_path / name).write_bytes(data)
    return tmp_path


def blocks(text: str, place: Path, takes: v1.PromptCapabilities = ALL, *attach: str) -> list[v1.ContentBlock]:
    first, *rest = prompt_blocks(text, cwd=place, takes=takes, agent="Ada", attach=attach)
    assert isinstance(first, v1.TextBlock)
    return rest


def embedded(block: v1.ContentBlock) -> tuple[str, str, str | None]:
    assert isinstance(block, v1.EmbeddedResource) and isinstance(block.resource, v1.TextResource)
    return block.resource.uri, block.resource.text, block.resource.mime_type


def test_text_goes_along_whole_where_it_is_taken_and_as_a_link_where_not(place: Path) -> None:
    uri = (place / "README.md").as_uri()
    [whole] = blocks("see @README.md", place)
    [link] = blocks("see @README.md", place, NONE)
    assert embedded(whole) == (uri, "# Call\n", "text/markdown")
    assert link == v1.ResourceLink("README.md", uri, mime_type="text/markdown", size=7)


@each_row(
    ("text", "found"),
    [
        ("@README.md", ["README.md"]),
        ("see @README.md.", ["README.md"]),
        ("(@README.md), and @src/main.py?", ["README.md", "src/main.py"]),
        ("@./README.md @README.md", ["README.md"]),
        ('look at @"my notes.txt" please', ["my notes.txt"]),
        ("@src", ["src"]),
        ("mail ada@README.md", []),
        ("\\@README.md", []),
        ("ask @Ada about @types/node and @app.route and @", []),
        ("@@ -1,3 +1,4 @@", []),
    ],
)
def test_mentions_are_paths_that_are_there(text: str, found: list[str], place: Path) -> None:
    assert [str(each.path.relative_to(place)) for each in mentioned(text, place)[1]] == found


def test_the_text_stays_as_it_was_written_but_for_the_escape(place: Path) -> None:
    assert mentioned("\\@README.md and @README.md", place)[0] == "@README.md and @README.md"


@pytest.mark.parametrize(
    "word",
    [
        "missing.py",
        "./missing",
        "../missing",
        "/no/such",
        "~/no-such-file",
        "src/missing.rs",
        "missing#L3",
        "missing.py:3-4",
    ],
)
def test_a_path_that_leads_nowhere_is_an_error_that_names_it(word: str, place: Path) -> None:
    with pytest.raises(AttachmentError, match=r"there is no file .*missing|no/such|no-such") as caught:
        mentioned(f"fix @{word}, now", place)
    assert "hint: " in str(caught.value)


def test_what_is_attached_must_be_there(place: Path) -> None:
    with pytest.raises(AttachmentError, match="there is no file `nothing` to attach"):
        attached("nothing", place)


@pytest.mark.parametrize(
    ("word", "text", "fragment"),
    [
        ("src/main.py#L2", "line 2\n", "#L2"),
        ("src/main.py:2", "line 2\n", "#L2"),
        ("src/main.py:10-12", "line 10\nline 11\nline 12\n", "#L10:12"),
        ("src/main.py#L10:12", "line 10\nline 11\nline 12\n", "#L10:12"),
        ("src/main.py#L10-L11", "line 10\nline 11\n", "#L10:11"),
        ("src/main.py#L29:99", "line 29\nline 30\n", "#L29:99"),
    ],
)
def test_a_range_of_lines_is_all_that_is_sent(word: str, text: str, fragment: str, place: Path) -> None:
    uri = (place / "src" / "main.py").as_uri() + fragment
    [block] = blocks(f"see @{word}", place)
    assert embedded(block) == (uri, text, "text/x-python")
    [link] = blocks("see", place, NONE, word)
    assert isinstance(link, v1.ResourceLink) and link.uri == uri


@pytest.mark.parametrize(
    ("word", "why"),
    [
        ("src/main.py#L0", "wrong line numbers"),
        ("src/main.py#L9:3", "wrong line numbers"),
        ("src/main.py#L31", "no line 31"),
        ("a.png#L1", "has no lines"),
        ("data.bin#L1", "has no lines"),
        ("src#L1", "has no lines"),
    ],
)
def test_lines_that_are_none_are_refused(word: str, why: str, place: Path) -> None:
    with pytest.raises(AttachmentError, match=why):
        blocks("see", place, ALL, word)


@each_row(("name", "mime"), [(name, mime) for name, (_, mime) in MEDIA.items()])
def test_pictures_and_sounds_are_sent_as_such_or_refused(name: str, mime: str, place: Path) -> None:
    [block] = blocks(f"see @{name}", place)
    assert isinstance(block, v1.ImageBlock if mime.startswith("image/") else v1.AudioBlock)
    assert (block.mime_type, base64.b64decode(block.data)) == (mime, MEDIA[name][0])
    what = "image" if mime.startswith("image/") else "audio"
    with pytest.raises(AttachmentError, match=rf"`{name}` is .* and Ada takes no .*promptCapabilities.{what}"):
        blocks(f"see @{name}", place, NONE)


def test_other_files_and_folders_are_linked(place: Path) -> None:
    [data, folder] = blocks("see", place, ALL, "data.bin", "src")
    assert data == v1.ResourceLink("data.bin", (place / "data.bin").as_uri(), size=3)
    assert folder == v1.ResourceLink("src", (place / "src").as_uri() + "/", mime_type="inode/directory")


def test_a_long_text_is_linked_and_some_of_its_lines_go_along(place: Path) -> None:
    (place / "long.txt").write_text("x" * 79 + "\n" + "y\n" * attachments.EMBED_LIMIT, encoding="utf-8")
    [whole, lines] = blocks("see", place, ALL, "long.txt", "long.txt#L1")
    assert isinstance(whole, v1.ResourceLink) and embedded(lines)[1] == "x" * 79 + "\n"
    with pytest.raises(AttachmentError, match=r"is more than 256 KiB of text"):
        blocks("see", place, ALL, f"long.txt#L1:{attachments.EMBED_LIMIT}")


def test_what_is_too_large_is_named(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attachments, "MEDIA_LIMIT", 15)
    with pytest.raises(AttachmentError, match=r"`a.png` has .* KiB, more than"):
        blocks("see @a.png", place)
    monkeypatch.setattr(attachments, "MEDIA_LIMIT", 100)
    monkeypatch.setattr(attachments, "TOTAL_LIMIT", 20)
    with pytest.raises(AttachmentError, match=r"together, from `a.svg` on"):
        blocks("see @a.png @a.svg", place)


def test_each_file_goes_along_once(place: Path) -> None:
    assert len(blocks("see @README.md and @README.md", place, ALL, "README.md", "./README.md")) == 1


def test_a_file_that_cannot_be_read_is_an_error(place: Path) -> None:
    import os

    os.mkfifo(place / "pipe.txt")
    with pytest.raises(AttachmentError, match="it is a pipe"):
        blocks("see @pipe.txt", place)
