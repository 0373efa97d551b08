"""Paths of two machines: what is mapped comes back as it was, and no other byte changes."""

from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from antiphon.errors import LocalProtocolError, RequestError
from antiphon.remote.messages import MessagePaths
from antiphon.remote.paths import PathMap, is_below
from antiphon.rpc.spans import elements_of

SEGMENT = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=6).filter(
    lambda text: text not in (".", "..")
)
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))
SHORT = st.lists(st.sampled_from(["a", "ab", "b", "a b", "ä"]), min_size=1, max_size=3).map(lambda p: "/" + "/".join(p))


def made(pairs: list[tuple[str, str]]) -> PathMap:
    try:
        return PathMap(pairs)
    except LocalProtocolError:
        assume(False)
        raise


@given(st.lists(st.tuples(SHORT, SHORT), min_size=1, max_size=4), SHORT)
def test_what_is_mapped_comes_back_whatever_directories_overlap(pairs: list[tuple[str, str]], path: str) -> None:
    maps = made(pairs)
    there = maps.to_remote(path)
    if there is not None:
        assert maps.to_local(there) == path
    back = maps.to_local(path)
    if back is not None:
        assert maps.to_remote(back) == path


@given(PATH, PATH, st.lists(SEGMENT, max_size=3), st.booleans())
def test_one_pair_maps_all_below_it_and_nothing_beside_it(local: str, remote: str, rest: list[str], ends: bool) -> None:
    maps = PathMap([(local, remote)])
    tail = "".join(f"/{part}" for part in rest) + ("/" if ends else "")
    assert maps.to_remote(local + tail) == remote + tail
    assert maps.to_local(remote + tail) == local + tail
    assert maps.to_remote(local + "x" + tail) is None and maps.to_remote(local[1:]) is None


@given(PATH, PATH, st.lists(SEGMENT, max_size=3), st.sampled_from(["", "?a=/b", "#L3:7", "?q#/x"]))
def test_the_uri_of_a_file_names_the_mapped_file(local: str, remote: str, rest: list[str], end: str) -> None:
    from urllib.parse import quote, unquote, urlsplit

    maps = PathMap([(local, remote)])
    path = local + "".join(f"/{part}" for part in rest)
    moved = maps.uri_to_remote(f"file://{quote(path)}{end}")
    assert moved is not None and moved.endswith(end)
    assert unquote(urlsplit(moved).path) == maps.to_remote(path)
    assert moved.isascii()
    again = maps.uri_to_local(moved)
    assert again is not None and unquote(urlsplit(again).path) == path


@pytest.mark.parametrize(
    ("uri", "found"),
    [
        ("file:///home/me/a%20b/c%2Fd", "file:///srv/%C3%A4/a%20b/c%2Fd"),
        ("FILE://localhost/home/me/x?line=3#L3", "FILE://localhost/srv/%C3%A4/x?line=3#L3"),
        ("file:/home/me", "file:/srv/%C3%A4"),
        ("file:///home/m%65/x", "file:///srv/%C3%A4/x"),
        ("file:///home/me/../me/x", "file:///srv/%C3%A4/x"),
        ("/home/me/x", "/srv/ä/x"),
        ("file:///home/me%2Fx", None),
        ("file:///home/me/../you/x", None),
        ("file:///home/me2/x", None),
        ("file://server/home/me/x", None),
        ("https://host/home/me/x", None),
        ("zed:///home/me/x", None),
        ("home/me/x", None),
    ],
)
def test_uris_of_files_in_mapped_directories_alone_are_mapped(uri: str, found: str | None) -> None:
    assert PathMap([("/home/me", "/srv/ä")]).uri_to_remote(uri) == found


def test_the_longest_directory_wins_and_what_it_hides_is_not_mapped() -> None:
    maps = PathMap([("/p", "/srv/p"), ("/p/deps", "/opt/deps")])
    assert maps.to_remote("/p/a") == "/srv/p/a" and maps.to_remote("/p/deps/a") == "/opt/deps/a"
    assert maps.to_local("/opt/deps/a") == "/p/deps/a" and maps.to_local("/srv/p/deps/a") is None


def test_a_path_that_climbs_out_of_a_directory_is_not_in_it() -> None:
    maps = PathMap([("/p", "/srv/p")])
    assert maps.to_local("/srv/p/../secret") is None and maps.to_local("/srv/p/a/../b") == "/p/b"
    assert not is_below("/srv/p/../x", ["/srv/p"]) and is_below("/srv/p", ["/srv/p/"]) and not is_below("srv", ["/"])


@pytest.mark.parametrize("text", ["", "/a", "=/b", "/a=b", "a:b"])
def test_what_is_no_pair_is_refused(text: str) -> None:
    with pytest.raises(LocalProtocolError, match="pair of directories"):
        PathMap.parse([text])


def test_pairs_on_the_command_line(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert PathMap.parse(["a=b=/srv/x", "~/p=/q"]).pairs == ((f"{tmp_path}/a=b", "/srv/x"), ("/home/me/p", "/q"))
    with pytest.raises(LocalProtocolError, match="twice"):
        PathMap.parse(["/a=/b", "/c=/b"])


# Messages.


def paths(roots: tuple[str, ...] = ()) -> MessagePaths:
    found = MessagePaths(PathMap([("/home/me/p", "/srv/p")]), "host")
    found.roots = roots
    return found


def frame(method: str, params: object) -> bytes:
    return msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})


def test_paths_of_the_editor_are_mapped_and_texts_are_not() -> None:
    text = {"type": "text", "text": 'see "path":"/home/me/p/a"'}
    link = {"type": "resource_link", "uri": "file:///home/me/p/a%20b#L2", "name": "/home/me/p/a b"}
    held = {"type": "resource", "resource": {"uri": "file:///home/me/p/c", "text": "/home/me/p/c"}}
    line = frame("session/prompt", {"sessionId": "s", "prompt": [text, link, held], "_meta": {"path": "/home/me/p"}})
    found = msgspec.json.decode(paths().to_remote(line, "session/prompt"))["params"]
    assert found["prompt"][0] == text and found["_meta"] == {"path": "/home/me/p"}
    assert found["prompt"][1] == {**link, "uri": "file:///srv/p/a%20b#L2"}
    assert found["prompt"][2]["resource"] == {"uri": "file:///srv/p/c", "text": "/home/me/p/c"}
    line = frame("session/new", {"cwd": "/home/me/p/x", "additionalDirectories": ["/home/me/p"], "mcpServers": []})
    found = msgspec.json.decode(paths().to_remote(line, "session/new"))["params"]
    assert found["cwd"] == "/srv/p/x" and found["additionalDirectories"] == ["/srv/p"]


def test_paths_of_the_agent_are_mapped_wherever_the_protocol_has_them() -> None:
    content: list[dict[str, Any]] = [
        {"type": "diff", "path": "/srv/p/a", "oldText": "/srv/p/a", "newText": ""},
        {"type": "content", "content": {"type": "resource_link", "uri": "file:///srv/p/b", "name": "b"}},
        {"type": "terminal", "terminalId": "/srv/p/t"},
    ]
    update = {
        "sessionUpdate": "tool_call", "toolCallId": "/srv/p/1", "title": "Edit /srv/p/a", "content": content,
        "locations": [{"path": "/srv/p/a", "line": 3}, {"path": "/usr/include/x.h"}],
        "rawInput": {"path": "/srv/p/a"}, "rawOutput": {"path": "/srv/p/a"}, "later": {"deep": [{"path": "/srv/p/n"}]},
    }  # fmt: skip
    for method, params in (
        ("session/update", {"sessionId": "s", "update": update}),
        ("session/request_permission", {"sessionId": "s", "toolCall": update, "options": []}),
    ):
        found = msgspec.json.decode(paths().to_local(frame(method, params), method))["params"]
        found = found.get("update") or found["toolCall"]
        assert [each["path"] for each in found["locations"]] == ["/home/me/p/a", "/usr/include/x.h"]
        assert found["content"][0] == {**content[0], "path": "/home/me/p/a"}
        assert found["content"][1]["content"]["uri"] == "file:///home/me/p/b"
        assert found["later"] == {"deep": [{"path": "/home/me/p/n"}]}
        same = ("toolCallId", "title", "rawInput", "rawOutput")
        assert {key: found[key] for key in same} == {key: update[key] for key in same}
    listed = b'{"jsonrpc":"2.0","id":1,"result":{"sessions":[{"sessionId":"s","cwd":"/srv/p/q","title":"/srv/p"}]}}'
    assert paths().to_local(listed, "session/list") == listed.replace(b'"cwd":"/srv/p/q"', b'"cwd":"/home/me/p/q"')


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"session/update","params":{"update":{"content":{"text":"\\u002fsrv/p","type":"text"}}}}',
        b'{ "jsonrpc" : "2.0" , "method":"session/update","params":{"update":{"locations":[{"path": "\\/srv2\\/p"}]}, "x":1.0E2}}',
        b'{"jsonrpc":"2.0","method":"_x/open","params":{"path":"/srv/p/a"}}',
    ],
)
def test_a_message_without_a_mapped_path_keeps_its_bytes(line: bytes) -> None:
    method = msgspec.json.decode(line)["method"]
    assert paths().to_local(line, method) == line
    assert MessagePaths(PathMap(), "host").to_local(line, method) is line


def test_only_the_bytes_of_paths_change_in_a_message() -> None:
    line = (
        b'{ "params" :{"update":{"locations":[ {"path": "\\/srv\\/p\\/\\u0061","line" : 1.0e0} , {"p\\u0061th":"/srv/p"}]},'
        b'"x":{"path":"/srv/p/1","path":"/srv/p/2"}},"method":"session/update" }'
    )
    assert paths().to_local(line, "session/update") == (
        b'{ "params" :{"update":{"locations":[ {"path": "/home/me/p/a","line" : 1.0e0} , {"p\\u0061th":"/home/me/p"}]},'
        b'"x":{"path":"/home/me/p/1","path":"/home/me/p/2"}},"method":"session/update" }'
    )


def test_a_directory_that_is_not_there_is_refused_with_those_that_are() -> None:
    line = frame("session/new", {"cwd": "/home/me/other", "mcpServers": []})
    with pytest.raises(RequestError, match=r"`/home/me/other` is not at `host`; it has `/srv/p`") as refused:
        paths().to_remote(line, "session/new")
    assert "--map /home/me/other=/srv/p" in refused.value.hint
    with pytest.raises(RequestError, match=r"it has `/srv`, `/data`"):
        paths(("/srv", "/data")).to_remote(line, "session/new")
    there = frame("session/load", {"sessionId": "s", "cwd": "/data/x", "mcpServers": []})
    assert paths(("/srv", "/data")).to_remote(there, "session/load") == there


def test_a_link_to_a_file_that_is_not_there_is_refused_and_a_page_is_not() -> None:
    def prompt(uri: str) -> bytes:
        return frame(
            "session/prompt", {"sessionId": "s", "prompt": [{"type": "resource_link", "uri": uri, "name": "n"}]}
        )

    with pytest.raises(RequestError, match="is not at `host`"):
        paths().to_remote(prompt("file:///etc/hosts"), "session/prompt")
    there = prompt("file:///data/a%20b#L1")
    assert paths(("/data",)).to_remote(there, "session/prompt") == there
    page = prompt("https://example.org/a")
    assert paths().to_remote(page, "session/prompt") == page


@pytest.mark.parametrize("method", ["fs/read_text_file", "fs/write_text_file", "terminal/create"])
def test_an_agent_reaches_no_file_outside_of_the_mapped_directories(method: str) -> None:
    key = "cwd" if method == "terminal/create" else "path"
    inside = frame(method, {"sessionId": "s", key: "/srv/p/a"})
    assert msgspec.json.decode(paths().to_local(inside, method))["params"][key] == "/home/me/p/a"
    for path in ("/etc/passwd", "/srv/p/../../etc/passwd", "/srv/pp/a"):
        with pytest.raises(RequestError, match="no directory that the client has"):
            paths().to_local(frame(method, {"sessionId": "s", key: path}), method)


@given(st.recursive(st.integers() | st.text(max_size=3), lambda inner: st.lists(inner, max_size=4), max_leaves=12))
def test_elements_of_an_array_stand_where_they_are_found(value: object) -> None:
    if not isinstance(value, list):
        value = [value]
    for written in (msgspec.json.encode(value), msgspec.json.format(msgspec.json.encode(value), indent=3)):
        spans = list(elements_of(b" " + written, (1, len(written) + 1)))
        assert [msgspec.json.decode((b" " + written)[slice(*span)]) for span in spans] == value
