"""An answer as JSON that matches a schema: the words that ask for it, the check, and the words that ask again.

Works with every agent: the schema goes along with the prompt, and the answer is checked here.
"""

import re
from typing import Any, Final

import msgspec

from antiphon.errors import AcpError, ExtraMissing
from antiphon.protocol.base import BAD_INPUT
from antiphon.text import fenced

__all__ = ["ATTEMPTS", "AnswerSchema", "NoMatch", "SchemaError", "json_in", "read_schema"]

ATTEMPTS: Final = 3
"""How often an agent is asked for an answer that matches, the first time included."""

PROBLEMS: Final = 10
"""Problems of an answer that are named when it is asked for again."""

MAX_SCHEMA: Final = 256 * 1024
"""Bytes of a schema. It is a part of the prompt."""

_FENCED: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})[^\n`]*\n(.*?)^ {0,3}\1[`~]*[ \t]*$", re.MULTILINE | re.DOTALL)


class SchemaError(AcpError):
    """A file has no JSON schema, or one that makes no sense."""


class NoMatch(AcpError):
    """An answer is not JSON, or does not match the schema."""


class AnswerSchema:
    """A JSON schema that answers have to match."""

    def __init__(self, document: "dict[str, Any] | bool") -> None:
        """Take a schema: JSON Schema 2020-12, or the draft that its `$schema` names. References to other documents are not followed.

        Raises:
            SchemaError: it is no schema.
            ExtraMissing: the validator is not installed.
        """
        try:
            import jsonschema
            from referencing import Registry
        except ImportError as error:
            raise ExtraMissing(
                "JSON schemas cannot be checked: the validator is not installed", hint="pip install 'antiphon[schema]'"
            ) from error
        kind = jsonschema.validators.validator_for(document, default=jsonschema.Draft202012Validator)
        try:
            kind.check_schema(document)
        except jsonschema.SchemaError as error:
            raise SchemaError(f"it is not a JSON schema: at `{error.json_path}`: {error.message}") from error
        self.document = document
        self._check = kind(
            document, registry=Registry(), format_checker=kind.FORMAT_CHECKER
        )  # an empty registry fetches nothing

    def read(self, text: str) -> object:
        """Return the JSON value of an answer.

        Raises:
            NoMatch: there is none, or it does not match.
            SchemaError: the schema refers to something that does not exist.
        """
        from referencing.exceptions import Unresolvable

        value = json_in(text)
        try:
            problems = sorted(self._check.iter_errors(value), key=lambda each: list(map(str, each.absolute_path)))
        except RecursionError as error:
            raise NoMatch("- it is nested too deeply") from error
        except Unresolvable as error:
            raise SchemaError(f"the schema refers to `{error.ref}`, which is not in it") from error
        if problems:
            raise NoMatch("\n".join(f"- at `{each.json_path}`: {each.message[:300]}" for each in problems[:PROBLEMS]))
        return value

    def request(self) -> str:
        """Return what is added to the prompt."""
        schema = msgspec.json.format(msgspec.json.encode(self.document), indent=2).decode()
        return (
            "When you are done, answer with one JSON value and nothing else: no words before or after it. "
            f"It has to match this JSON schema:\n\n{fenced(schema, 'json')}"
        )

    @staticmethod
    def request_again(problem: NoMatch) -> str:
        """Return the prompt after an answer that did not match."""
        return (
            f"Your last message is not the JSON that was asked for:\n\n{problem.sentence}\n\n"
            "Do no other work. Answer with the corrected JSON value and nothing else; the schema is the same."
        )


def read_schema(path: str) -> AnswerSchema:
    """Read a schema from a file.

    Raises:
        SchemaError: the file cannot be read, or has no schema in it.
        ExtraMissing: the validator is not installed.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_SCHEMA + 1)
    except OSError as error:
        raise SchemaError(
            f"cannot read `{path}`: {(error.strerror or str(error)).lower()}", hint="check the path"
        ) from error
    if len(data) > MAX_SCHEMA:
        raise SchemaError(f"`{path}` has more than {MAX_SCHEMA >> 10} KiB", hint="a schema is a part of the prompt")
    hint = 'write a JSON schema such as {"type": "object", "properties": {"title": {"type": "string"}}}'
    try:
        document = msgspec.json.decode(data)
    except BAD_INPUT as error:
        raise SchemaError(f"`{path}` is not JSON: {error}", hint=hint) from error
    if not isinstance(document, dict | bool):
        raise SchemaError(f"`{path}` has no JSON schema, which is an object", hint=hint)
    try:
        return AnswerSchema(document)
    except SchemaError as error:
        raise SchemaError(f"`{path}`: {error.sentence}", hint=hint) from error


def json_in(text: str) -> object:
    """Return the JSON value of a message: the whole of it, or its last fenced block.

    Raises:
        NoMatch: neither is JSON.
    """
    blocks = [found[2] for found in _FENCED.finditer(text)]
    problem = "it is empty"
    for candidate in (text, *blocks[-1:]):
        if candidate.strip():
            try:
                return msgspec.json.decode(candidate.strip().encode())
            except (ValueError, RecursionError) as error:
                problem = str(error)
    raise NoMatch(f"- it is not JSON: {problem}")
