"""The shapes of contents and their parts, and the words in which the API refuses others.

A part has one field with its data and may have others beside it. The tables are those of the
discovery document and of the types of google-genai (3.4), which knows more: both are taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.fields import field, key_of, spellings
from lutumpy.rules.gemini.media import check_media
from lutumpy.rules.gemini.wire import ROLES
from lutumpy.rules.gemini.wording import (
    Path,
    problem,
    spelled,
    unknown_name,
    wrong_bytes,
    wrong_value,
)
from lutumpy.rules.media import is_base64
from lutumpy.rules.problem import Certainty, Problem, about, is_array, items, text

__all__ = [
    "DATA",
    "PART_KEYS",
    "check_contents",
    "check_part",
    "check_parts",
    "check_shown",
    "data_of",
    "is_signed_thought",
]

DATA = (
    "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult "
    "toolCall toolResponse"
).split()
"""The fields of which a part has one."""

_BESIDE = "thought thoughtSignature partMetadata audioTranscription speechMetadata"
_OF_MEDIA = (
    "videoMetadata mediaResolution mediaProcessing documentMetadata spreadsheetMetadata "
    "audioMetadata"
)
PART_KEYS = spellings([*DATA, *_BESIDE.split(), *_OF_MEDIA.split()])
"""Every key of a part."""

_MEDIA_KEYS = spellings(_OF_MEDIA.split())
_SHOWN_KEYS = _MEDIA_KEYS | spellings(("inlineData", "fileData"))
_CONTENT_KEYS = frozenset({"role", "parts"})
_KEYS: Mapping[str, frozenset[str]] = {
    "functionCall": spellings(("id", "name", "args", "partialArgs", "willContinue")),
    "functionResponse": spellings(
        ("id", "name", "response", "parts", "scheduling", "willContinue")
    ),
}
_OBJECTS: Mapping[str, str] = {
    name: f"type.googleapis.com/google.ai.generativelanguage.v1beta.{kind}"
    for name, kind in (
        ("inlineData", "Blob"),
        ("fileData", "FileData"),
        ("functionCall", "FunctionCall"),
        ("functionResponse", "FunctionResponse"),
        ("executableCode", "ExecutableCode"),
        ("codeExecutionResult", "CodeExecutionResult"),
        ("toolCall", "ToolCall"),
        ("toolResponse", "ToolResponse"),
    )
}
_CONTENT = "type.googleapis.com/google.ai.generativelanguage.v1beta.Content"
_PART = "type.googleapis.com/google.ai.generativelanguage.v1beta.Part"
_STRUCT = "type.googleapis.com/google.protobuf.Struct"
_NOT_EMPTY = "{}: contents.parts must not be empty."


def check_contents(contents: Any) -> list[Problem]:
    """Problems of the list of contents and of each by itself."""
    if not is_array(contents):
        return [wrong_value("gemini.contents", (), _CONTENT, contents)]
    if not contents:
        message = "GenerateContentRequest.contents: contents is not specified"
        return [problem("gemini.contents", (), message)]
    found: list[Problem] = []
    for index, content in enumerate(contents):
        found += _check_content((index,), content)
    # The API reads the whole of it before it looks at what it says.
    for index, content in enumerate(contents):
        found += _check_role((index,), content)
    return found


def _check_content(path: Path, content: Any) -> list[Problem]:
    if not isinstance(content, Mapping):
        return [wrong_value("gemini.contents", path, _CONTENT, content)]
    found = [
        unknown_name("gemini.unknown_key", path, str(key))
        for key in content
        if key not in _CONTENT_KEYS
    ]
    return found + check_parts(path, content)


def _check_role(path: Path, content: Any) -> list[Problem]:
    role = content.get("role") if isinstance(content, Mapping) else None
    if role is None or role == "" or role in ROLES:
        return []
    place = (*path, "role")
    if not isinstance(role, str):
        return [wrong_value("gemini.role", place, "TYPE_STRING", role)]
    # Older clients sent results as `function`, which is refused like any other role [error text
    # reported in September 2026].
    message = f"Please use a valid role: {', '.join(ROLES)}."
    return [problem("gemini.role", place, message)]


def check_parts(path: Path, content: Mapping[str, Any]) -> list[Problem]:
    """Problems of the parts of a content."""
    parts = content.get("parts")
    place = (*path, "parts")
    if parts is None or (is_array(parts) and not parts):
        return [problem("gemini.empty_parts", place, _NOT_EMPTY)]
    if not is_array(parts):
        return [wrong_value("gemini.parts", place, _PART, parts)]
    found: list[Problem] = []
    for number, part in enumerate(items(parts)):
        found += check_part((*place, number), part)
    return found


def data_of(part: Mapping[str, Any]) -> list[str]:
    """The fields with data that a part has."""
    return [name for name in DATA if field(part, name) is not None]


def is_signed_thought(part: Mapping[str, Any]) -> bool:
    """Whether a part says that the model thought, and has the signature of that; it needs no data
    beside it [recorded: 2 accepted].
    """
    signature = field(part, "thoughtSignature")
    return part.get("thought") is True and isinstance(signature, str) and bool(signature)


def check_part(path: Path, part: Any) -> list[Problem]:
    """Problems of a part."""
    if not isinstance(part, Mapping):
        return [wrong_value("gemini.part", path, _PART, part)]
    found = [
        unknown_name("gemini.unknown_key", path, str(key)) for key in part if key not in PART_KEYS
    ]
    names = data_of(part)
    if not names and not found and not is_signed_thought(part):
        message = "{}.data: required oneof field 'data' must have one initialized field"
        # What says how to show a film was accepted alone [recorded once].
        certainty: Certainty = "some" if _MEDIA_KEYS & part.keys() else "refused"
        found.append(problem("gemini.part", path, message, certainty))
    for second in names[1:]:
        where = (*path, key_of(part, second))
        message = (
            f"Invalid value at '{spelled(path)}' (oneof), oneof field 'data' is already "
            f"set. Cannot set '{second}'"
        )
        found.append(problem("gemini.part", where, message))
    found += _check_beside(path, part)
    for name in names:
        found += _check_data((*path, key_of(part, name)), name, field(part, name))
    return found


def _check_beside(path: Path, part: Mapping[str, Any]) -> list[Problem]:
    found: list[Problem] = []
    thought, signature = part.get("thought"), field(part, "thoughtSignature")
    if thought is not None and not isinstance(thought, bool):
        found.append(wrong_value("gemini.part", (*path, "thought"), "TYPE_BOOL", thought))
    place = (*path, key_of(part, "thoughtSignature"))
    if signature is None:
        return found
    if not isinstance(signature, str):
        found.append(wrong_value("gemini.signature_bytes", place, "TYPE_BYTES", signature))
    elif not is_base64(signature):
        found.append(wrong_bytes("gemini.signature_bytes", place, signature))
    return found


def _check_data(path: Path, name: str, value: Any) -> list[Problem]:
    if name == "text":
        if isinstance(value, str):
            return []
        return [wrong_value("gemini.text", path, "TYPE_STRING", value)]
    if not isinstance(value, Mapping):
        return [wrong_value("gemini.part", path, _OBJECTS[name], value)]
    if name == "functionCall":
        return _about(value, _check_call(path, value))
    if name == "functionResponse":
        return _about(value, _check_result(path, value))
    if name in ("inlineData", "fileData"):
        return check_media(path, name, value)
    return []  # what the provider runs itself, whose fields change with each release


def _about(value: Mapping[str, Any], found: list[Problem]) -> list[Problem]:
    return about(found, text(value.get("id")), text(value.get("name"))) if found else found


def _check_call(path: Path, call: Mapping[str, Any]) -> list[Problem]:
    found = _check_common(path, "functionCall", call)
    args = call.get("args")
    if args is not None and not isinstance(args, Mapping):
        found.append(wrong_value("gemini.args", (*path, "args"), _STRUCT, args))
    return found


def _check_result(path: Path, result: Mapping[str, Any]) -> list[Problem]:
    found = _check_common(path, "functionResponse", result)
    response = result.get("response")
    place = (*path, "response")
    if response is None:
        message = "{}: Response cannot be empty."
        found.append(problem("gemini.response", place, message, "some"))
    elif not isinstance(response, Mapping):
        found.append(wrong_value("gemini.response", place, _STRUCT, response))
    shown = result.get("parts")
    if shown is not None and not is_array(shown):
        found.append(wrong_value("gemini.result_parts", (*path, "parts"), _PART, shown))
    for number, part in enumerate(items(shown)):
        found += check_shown((*path, "parts", number), part)
    return found


def _check_common(path: Path, name: str, value: Mapping[str, Any]) -> list[Problem]:
    """Keys, id and name, which calls and results share."""
    found = [
        unknown_name("gemini.unknown_key", path, str(key))
        for key in value
        if key not in _KEYS[name]
    ]
    named, call_id = value.get("name"), value.get("id")
    if call_id is not None and not isinstance(call_id, str):
        found.append(wrong_value("gemini.id", (*path, "id"), "TYPE_STRING", call_id))
    place = (*path, "name")
    # Later parts of a call that is streamed have no name; requests hold whole calls.
    if named is None or named == "":
        found.append(problem("gemini.name", place, "{}: Name cannot be empty."))
    elif not isinstance(named, str):
        found.append(wrong_value("gemini.name", place, "TYPE_STRING", named))
    return found


def check_shown(path: Path, part: Any) -> list[Problem]:
    """A file or its bytes in a result."""
    if not isinstance(part, Mapping):
        return [wrong_value("gemini.result_parts", path, _PART, part)]
    found = [
        unknown_name("gemini.result_parts", path, str(key))
        for key in part
        if key not in _SHOWN_KEYS
    ]
    for name in ("inlineData", "fileData"):
        value = field(part, name)
        if isinstance(value, Mapping):
            found += check_media((*path, key_of(part, name)), name, value, in_result=True)
        elif value is not None:
            place = (*path, key_of(part, name))
            found.append(wrong_value("gemini.result_parts", place, _OBJECTS[name], value))
    return found
