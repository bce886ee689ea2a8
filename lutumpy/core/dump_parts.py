"""One content part as JSON values and back."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from lutumpy.core.dump_checks import expect
from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, TextPart
from lutumpy.core.parts import part_problem
from lutumpy.errors import TranscriptError

__all__ = ["dump_part", "load_part"]

_PARTS: Mapping[str, type[Any]] = {"text": TextPart, "image": ImagePart, "file": FilePart}


def dump_part(part: Part) -> dict[str, Any]:
    """A content part as JSON values."""
    if isinstance(part, TextPart):
        return {"part": "text", "text": part.text}
    if isinstance(part, FoundTool):
        dumped = {"name": part.name, "description": part.description, "schema": part.schema}
        return {"part": "found_tool", **dumped, "strict": part.strict}
    if isinstance(part, RawPart):
        return {"part": "raw", "api": part.api, "value": part.value, "text": part.text}
    dumped = {k: v for k, v in asdict(part).items() if v is not None}
    if part.data is not None:
        dumped["data"] = base64.b64encode(part.data).decode()
    return {"part": "image" if isinstance(part, ImagePart) else "file", **dumped}


def load_part(data: Mapping[str, Any]) -> Part:
    """The part of a dump. Raises `TranscriptError`, or one of `WRONG`, if it isn't one."""
    fields = dict(expect(data, dict, "a part"))
    kind = fields.pop("part")
    if kind == "found_tool":
        return FoundTool(**fields)
    if kind == "raw":
        # Not asked of its API's rules: what this release would refuse was taken by the one that
        # wrote the dump, and is sent as text.
        return RawPart(
            expect(fields.pop("api"), str, "api"),
            expect(fields.pop("value"), dict, "value"),
            expect(fields.pop("text"), str, "text"),
            **fields,
        )
    for name, value in fields.items():
        expect(value, str, name)
    if "data" in fields:
        fields["data"] = base64.b64decode(fields["data"], validate=True)
    if kind not in _PARTS:
        raise TranscriptError(f"unknown part {kind!r}")
    part: Part = _PARTS[kind](**fields)
    if (problem := part_problem(part)) is not None:
        raise TranscriptError(problem)
    return part
