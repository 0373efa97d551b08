"""What goes out comes back the same: fields, extensions, absence, unknown words. Secrets go out and are never shown."""

from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, UnsetType

from antiphon.protocol.base import Model, decoder, encode
from antiphon.protocol.v1.auth import Authenticate, AuthMethod, TerminalAuth
from antiphon.protocol.v1.base import Failure, SecretModel
from antiphon.protocol.v1.client_services import EnvVariable
from antiphon.protocol.v1.content import ResourceContents
from antiphon.protocol.v1.elicitation import Form
from antiphon.protocol.v1.mcp import HttpHeader, HttpServer, McpServer, StdioServer
from antiphon.protocol.v1.permission import PermissionOptionKind
from antiphon.protocol.v1.providers import LlmProtocol, SetProvider
from antiphon.protocol.v1.session import NewSession, SetConfigOption, StopReason
from antiphon.protocol.v1.tools import ToolCall, ToolKind, ToolStatus
from antiphon.protocol.v1.updates import CompactionStatus, CompactionUpdate
from antiphon.protocol.words import Word
from tests.protocol import names
from tests.protocol.parity import our_types
from tests.protocol.strategies import json_objects, messages
from tests.rows import each_row

STRUCTS: list[Any] = sorted(
    (kind for kind in our_types() if issubclass(kind, Model)), key=lambda kind: (kind.__module__, kind.__name__)
)
WORDS: list[Any] = sorted((kind for kind in our_types() if issubclass(kind, Word)), key=lambda kind: kind.__name__)
PATCHED = [
    pytest.param(kind, field.name, id=f"{kind.__name__}.{field.name}")
    for kind in names.PATCHES
    for field in msgspec.structs.fields(kind)
    if field.default is UNSET
]

few = settings(max_examples=6, deadline=None, derandomize=True, database=None)


def name_of(kind: type) -> str:
    return kind.__name__


def smallest(kind: Any) -> Any:
    """An instance with its required fields alone; only patches are asked, whose required fields are strings."""
    return kind(**{field.name: "x" for field in msgspec.structs.fields(kind) if field.required})


def as_object(message: object) -> dict[str, Any]:
    return msgspec.json.decode(encode(message), type=dict[str, Any])


@each_row("kind", STRUCTS, ids=name_of)
@few
@given(data=st.data())
def test_every_message_survives_the_wire(kind: Any, data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    wire = encode(message)
    read = decoder(kind).decode(wire)
    assert read == message
    assert encode(read) == wire  # equality reads unknown words by meaning; the bytes show whether they were kept


@each_row("kind", STRUCTS, ids=name_of)
@few
@given(data=st.data())
def test_meta_survives_and_never_overrides_a_field(kind: Any, data: st.DataObject) -> None:
    message = data.draw(messages(kind))
    plain = msgspec.structs.replace(message, meta=None)
    clash = dict.fromkeys(as_object(plain), "not this one") | data.draw(json_objects)
    carrying = msgspec.structs.replace(message, meta=clash)
    assert as_object(carrying) == {**as_object(plain), "_meta": clash}
    assert decoder(kind).decode(encode(carrying)) == carrying


@each_row(("kind", "field"), PATCHED)
def test_absent_and_null_stay_different_in_a_patch(kind: Any, field: str) -> None:
    absent = smallest(kind)
    if kind is CompactionUpdate:
        absent = msgspec.structs.replace(absent, status=CompactionStatus.COMPLETED)
    null = msgspec.structs.replace(absent, **{field: None})
    assert getattr(decoder(kind).decode(encode(absent)), field) is UNSET
    assert getattr(decoder(kind).decode(encode(null)), field) is None
    assert encode(absent) != encode(null)


@pytest.mark.parametrize("kind", names.PATCHES, ids=name_of)
def test_every_optional_field_of_a_patch_can_be_absent(kind: Any) -> None:
    left_alone = {field.name for field in msgspec.structs.fields(kind) if field.default is UNSET}
    required = {field.name for field in msgspec.structs.fields(kind) if field.required}
    assert left_alone | required | {"meta"} == set(kind.__struct_fields__)


def test_raw_input_distinguishes_null_from_absent() -> None:
    start = b'{"sessionUpdate":"tool_call","toolCallId":"t","title":"Look"'
    assert decoder(ToolCall).decode(start + b"}").raw_input is UNSET
    null = decoder(ToolCall).decode(start + b',"rawInput":null}')
    assert null.raw_input is None
    assert encode(null) == start + b',"rawInput":null}'


@each_row("words", WORDS, ids=name_of)
def test_an_unknown_word_is_kept_and_reads_as_the_default(words: Any) -> None:
    read = decoder(words).decode(b'"a word from tomorrow"')
    assert encode(read) == b'"a word from tomorrow"'
    assert not read.known
    default, _ = words.__reads__
    assert read.meaning is (read if default is None else words(default))


@pytest.mark.parametrize(
    ("word", "meaning"),
    [
        (ToolKind("write"), ToolKind.EDIT),
        (ToolKind("command"), ToolKind.EXECUTE),
        (ToolKind("file"), ToolKind.OTHER),
        (ToolStatus("cancelled"), ToolStatus.FAILED),
        (StopReason("auth_required"), StopReason.REFUSAL),
        (StopReason("tool_error"), StopReason.END_TURN),
    ],
    ids=str,
)
def test_a_word_of_a_dialect_reads_as_ours(word: Word, meaning: Word) -> None:
    assert word == meaning
    assert encode(word) == f'"{word.value}"'.encode()


def test_an_unknown_option_never_reads_as_an_approval() -> None:
    assert PermissionOptionKind("allow_everything_forever") == PermissionOptionKind.REJECT_ONCE


SECRETS: list[SecretModel] = [
    Authenticate(method_id="m", password="hunter2", token="hunter2"),
    EnvVariable(name="KEY", value="hunter2"),
    HttpHeader(name="Authorization", value="hunter2"),
    SetProvider(provider_id="p", api_type=LlmProtocol.OPENAI, base_url="https://x", headers={"k": "hunter2"}),
    TerminalAuth(id="t", name="Terminal", env={"KEY": "hunter2"}),
]


@pytest.mark.parametrize("message", SECRETS, ids=lambda message: type(message).__name__)
def test_a_secret_is_sent_and_never_shown(message: SecretModel) -> None:
    assert b"hunter2" in encode(message)
    for shown in (repr(message), str(message), f"{message}", repr([message]), repr(message.__rich_repr__())):
        assert "hunter2" not in shown
        assert "***" in shown


def test_a_secret_inside_a_message_is_not_shown_either() -> None:
    servers: list[McpServer] = [
        HttpServer(name="h", url="https://x", headers=[HttpHeader(name="a", value="hunter2")]),
        StdioServer(name="s", command="c", args=[], env=[EnvVariable(name="a", value="hunter2")]),
    ]
    assert "hunter2" not in repr(NewSession(cwd="/w", mcp_servers=servers))


def test_an_absent_secret_shows_as_absent() -> None:
    assert repr(Authenticate(method_id="m")) == "Authenticate(method_id='m', password=None, token=None, meta=None)"


def test_every_model_with_secrets_is_tested() -> None:
    gates = {kind for kind in our_types() if issubclass(kind, SecretModel) and kind is not SecretModel}
    assert gates == {type(message) for message in SECRETS}


@each_row(
    ("union", "wire", "member"),
    [
        (ResourceContents, b'{"uri":"u","text":"t"}', "TextResource"),
        (ResourceContents, b'{"uri":"u","blob":"b"}', "BlobResource"),
        (AuthMethod, b'{"id":"a","name":"A"}', "AgentAuth"),
        (AuthMethod, b'{"id":"a","name":"A","type":"agent"}', "AgentAuth"),
        (AuthMethod, b'{"id":"a","name":"A","type":"terminal"}', "TerminalAuth"),
        (AuthMethod, b'{"id":"a","name":"A","type":"env_var","vars":[{"name":"K"}]}', "EnvVarAuth"),
        (McpServer, b'{"name":"a","command":"c","args":[],"env":[]}', "StdioServer"),
        (McpServer, b'{"type":"sse","name":"a","url":"u","headers":[]}', "SseServer"),
    ],
)
def test_a_union_without_a_common_tag_finds_its_member(union: Any, wire: bytes, member: str) -> None:
    assert type(decoder(union).decode(wire)).__name__ == member


def test_a_boolean_setting_is_sent_with_its_type() -> None:
    assert as_object(SetConfigOption(session_id="s", config_id="c", value=True))["type"] == "boolean"
    assert "type" not in as_object(SetConfigOption(session_id="s", config_id="c", value="true"))


def test_a_form_has_the_type_object() -> None:
    assert encode(Form()) == b'{"type":"object"}'


def test_data_of_a_failure_may_be_null() -> None:
    data: Any | UnsetType = decoder(Failure).decode(b'{"code":1,"message":"m","data":null}').data
    assert data is None
