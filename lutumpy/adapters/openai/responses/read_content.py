"""What outputs and messages of a Responses history hold, as results and parts."""

from __future__ import annotations

from typing import Any

from lutumpy.adapters.openai.reply_fields import mapping, text
from lutumpy.adapters.reading import file_at, image_part, left_out, status_of
from lutumpy.core.items import APPROVED, CallBlock, Part, ResultBlock, TextPart
from lutumpy.plain.json_values import encode_text

__all__ = ["read_parts", "read_result", "text_parts"]


def read_result(item: dict[str, Any], call: CallBlock) -> ResultBlock:
    """The result in an output of this call; each type of output has its own shape."""
    output = item.get("output")
    failed = item.get("status") == "failed"
    content: str | tuple[Part, ...]
    if call.kind == "mcp_approval_request":
        failed = item.get("approve") is not True
        content = (text(item.get("reason")) or "not approved") if failed else APPROVED
    elif isinstance(output, str):
        content = output
    elif item.get("type") == "computer_call_output":
        content = tuple(read_parts([output]))
    elif item.get("type") == "shell_call_output":
        content, failed = _read_shell(output)
    elif item.get("type") == "tool_search_output":
        content = encode_text(item.get("tools"))
    elif isinstance(output, list):
        content = tuple(read_parts(output))
    else:
        content = "" if output is None else encode_text(output)
    return ResultBlock(call.id, call.name, content, status_of(content, failed), call.kind)


def _read_shell(output: Any) -> tuple[str, bool]:
    """What commands wrote, and whether any of them failed."""
    written: list[str] = []
    failed = False
    for command in output if isinstance(output, list) else []:
        fields = mapping(command)
        streams = (text(fields.get("stdout")), text(fields.get("stderr")))
        written += [found for found in streams if found is not None]
        outcome = mapping(fields.get("outcome"))
        if outcome.get("type") == "timeout" or outcome.get("exit_code") not in (0, None):
            failed = True
    return "\n".join(written), failed


def text_parts(content: str) -> tuple[Part, ...]:
    """A text as parts: none for an empty one."""
    return (TextPart(content),) if content else ()


def read_parts(content: Any) -> list[Part]:
    """Content as parts. A part that this library has no kind for becomes a text that names it."""
    if isinstance(content, str):
        return list(text_parts(content))
    if not isinstance(content, list):
        return []
    return [found for part in content if (found := _read_part(part)) is not None]


def _read_part(part: Any) -> Part | None:
    fields = mapping(part)
    kind = fields.get("type")
    if kind in ("input_text", "output_text", "refusal", "text"):
        found = fields.get("refusal" if kind == "refusal" else "text")
        return TextPart(found) if isinstance(found, str) and found else None
    if kind in ("input_image", "computer_screenshot"):
        if fields.get("image_url") is None:
            return left_out("image", fields.get("file_id"))
        return image_part(fields["image_url"], fields.get("detail"))
    if kind == "input_file":
        for name in ("file_data", "file_url"):
            if fields.get(name) is not None:
                return file_at(fields[name], fields.get("filename"))
        return left_out("file", fields.get("filename") or fields.get("file_id"))
    return left_out(kind)
