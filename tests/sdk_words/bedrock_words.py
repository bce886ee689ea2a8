"""The words of botocore's model of bedrock-runtime: Converse and ConverseStream."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore
import botocore.session
from sdk_words.words import Word

__all__ = ["converse_words", "version"]

version: str = f"botocore {botocore.__version__}"
_DEEPEST = 5


def sample_of(shape: Any, depth: int = 0) -> Any:
    """A small value of a shape, as JSON has it."""
    kind = shape.type_name
    if kind == "structure":
        if getattr(shape, "is_document_type", False) or depth >= _DEEPEST:
            return {}
        names = list(shape.required_members)
        if getattr(shape, "is_tagged_union", False):
            names = list(shape.members)[:1]
        return {name: sample_of(shape.members[name], depth + 1) for name in names}
    if kind == "list":
        return [sample_of(shape.member, depth + 1)] if depth < _DEEPEST else []
    if kind == "map":
        return {}
    if kind == "string":
        return shape.enum[0] if shape.enum else "x" * max(1, shape.metadata.get("min", 1))
    plain: dict[str, Any] = {"boolean": True, "blob": "eHg=", "float": 1.5, "double": 1.5}
    return plain.get(kind, 1)


def converse_words() -> Iterator[Word]:
    """The words of Converse."""
    model: Any = botocore.session.get_session().get_service_model("bedrock-runtime")
    for kind, name in (
        ("option", "ConverseRequest"),
        ("option", "ConverseStreamRequest"),
        ("block", "ContentBlock"),
        ("input", "SystemContentBlock"),
        ("input", "ToolResultContentBlock"),
        ("tool", "Tool"),
        ("field", "ConverseResponse"),
        ("field", "ConverseStreamMetadataEvent"),
        ("field", "MessageStopEvent"),
        ("event", "ConverseStreamOutput"),
        ("delta", "ContentBlockStart"),
        ("delta", "ContentBlockDelta"),
    ):
        shape = model.shape_for(name)
        prefix = {"SystemContentBlock": "system.", "ToolResultContentBlock": "toolResult."}
        for member, inner in shape.members.items():
            word = prefix.get(name, "") + member
            yield Word(kind, word, f"{name}.{member}", sample_of(inner))
    for reason in model.shape_for("StopReason").enum:
        yield Word("finish", reason, "StopReason")
    for operation in ("Converse", "ConverseStream"):
        for error in model.operation_model(operation).error_shapes:
            yield Word("error", error.name, f"{operation}: {error.name}")
    for name, member in model.shape_for("ConverseStreamOutput").members.items():
        if member.metadata.get("exception"):
            yield Word("error", name[:1].upper() + name[1:], f"ConverseStreamOutput.{name}")
