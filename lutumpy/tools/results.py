"""The result of one call: what the user's code, a hook or the library itself answers it with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Protocol, cast

from lutumpy.core.items import (
    REJECTION_PREFIX,
    Part,
    ResultBlock,
    ResultStatus,
    TextPart,
    ToolMetadata,
)
from lutumpy.core.parts import PARTS, content_problem
from lutumpy.plain import json_values
from lutumpy.plain.strict_json import copy_json
from lutumpy.plain.values import dataclass
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.failures import FAILED, FAILED_WITH, failure_contents, failure_text

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.core.promises import Promise

_NOT_ALLOWED = "not allowed"


class HasMetadata(Protocol):
    """A call, an issue, or a ticket."""

    @property
    def metadata(self) -> ToolMetadata:
        """Which call it is."""
        ...


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The result of one call, ready to be committed.

    Attributes:
        metadata: The call that it answers.
        content: JSON text (a `str` output as it is), or content parts.
        status: `ok`, `error` (the tool failed), `rejected` (it was not run) or `promised` (the
            result comes later).
        rejection_reason: Why, for a rejected call.
        output: The value that was given to `complete`, or the content of a failure (a list of them
            where several exceptions had one), else `None`.
        output_error: Why that value doesn't fit the tool's output type, or can't be sent; `commit`
            reports it as `wrong_output`.
        promise: What is known of a result that comes later, for `promised`.
    """

    metadata: ToolMetadata
    content: str | tuple[Part, ...]
    status: ResultStatus = "ok"
    rejection_reason: str | None = None
    output: Any = field(default=None, compare=False, repr=False)
    output_error: str | None = None
    promise: Promise | None = field(default=None, repr=False)

    def dump(self) -> dict[str, JsonValue]:
        """The result as JSON values: its content as it would be committed, without the call."""
        from lutumpy.tools.result_dumps import dump_result  # few programs keep results

        return dump_result(self)

    @staticmethod
    def load(data: Mapping[str, Any], call: HasMetadata) -> ToolResult:
        """The result of a dump, for a call.

        Its `output` is read back from the content where the tool's type allows. It is an
        `ExecutionResult` where it was one and `lutumpy.execution` is there.

        Args:
            data: The dump.
            call: What it answers: a call, an issue, or the ticket of a call.

        Raises:
            ValueError: it isn't a dump of a result; the message says what is wrong.
        """
        from lutumpy.tools.result_dumps import load_result

        return load_result(data, call)


def completed(metadata: ToolMetadata, tool: CompiledTool, output: Any) -> ToolResult:
    """The result for a tool's output.

    Never raises: an output that doesn't fit is kept, with the reason in `output_error`.
    """
    error = tool.check_type(output)
    if error is None:
        parts = content_parts(output)
        if parts is not None:
            return ToolResult(metadata, parts, "ok", None, output, content_problem(parts))
        text, error = tool.try_encode(output)
        if error is None:
            return ToolResult(metadata, text, "ok", None, output)
    return ToolResult(metadata, "", "ok", None, output, error)


def failed_result(
    metadata: ToolMetadata,
    error: str | BaseException,
    *,
    content: Any = None,
    reveal: bool = False,
    sentence: str = FAILED_WITH,
) -> ToolResult:
    """The result for a tool that failed: a text as it is, an exception by rule K6.

    Args:
        metadata: The call.
        error: A text, or an exception.
        content: A JSON value or content parts that follow the text; in place of the content of a
            `ToolError`.
        reveal: Show the class and the message of any exception.
        sentence: For exceptions that weren't raised for the model: see `failure_text`.

    Raises:
        TypeError: `error` is neither.
    """
    contents = [] if content is None else [content]
    if isinstance(error, BaseException):
        if content is None:
            contents = failure_contents(error)
        error = failure_text(error, reveal=reveal, sentence=sentence)
    elif not isinstance(cast("object", error), str):
        a_class = "; of an exception it takes the instance" if isinstance(error, type) else ""
        raise TypeError(
            f"fail takes a text or an exception, not {type(error).__name__}{a_class}; "
            f"call {metadata.id!r} of {metadata.name!r} has no result yet"
        )
    text = error if error.strip() else FAILED
    if not contents:
        return ToolResult(metadata, text, "error")
    # The structure says what a sentence that says nothing else would.
    shown, misfit = _join_contents("" if text == FAILED else text, contents)
    output = contents[0] if len(contents) == 1 else contents
    return ToolResult(metadata, shown, "error", None, output, misfit)


def _join_contents(text: str, contents: list[Any]) -> tuple[str | tuple[Part, ...], str | None]:
    """A text and what follows it as the content of a result; and why that can't be sent.

    It is one text unless there are content parts.
    """
    pieces: list[Part] = []
    for content in contents:
        parts = content_parts(content)
        if parts is None:
            try:
                parts = (TextPart(_write_content(content)),)
            except (TypeError, ValueError) as error:
                return text or FAILED, str(error)
        elif (misfit := content_problem(parts)) is not None:
            return text or FAILED, misfit
        pieces += parts
    # A part may say what the message says; once is enough.
    if text and not any(isinstance(piece, TextPart) and piece.text == text for piece in pieces):
        pieces.insert(0, TextPart(text))
    texts = [piece.text for piece in pieces if isinstance(piece, TextPart)]
    if len(texts) == len(pieces):
        return "\n".join(texts), None
    return tuple(pieces), None


def _write_content(content: Any) -> str:
    copied = copy_json(content, "the content of the failure")
    return copied if isinstance(copied, str) else json_values.encode_text(copied)


def rejected(metadata: ToolMetadata, reason: str) -> ToolResult:
    """The result for a call that was not run.

    Raises:
        TypeError: `reason` is not a text.
    """
    if not isinstance(cast("object", reason), str):
        raise TypeError(f"reject takes the reason as text, not {type(reason).__name__}")
    reason = reason if reason.strip() else _NOT_ALLOWED
    return ToolResult(metadata, REJECTION_PREFIX + reason, "rejected", reason)


def content_parts(output: Any) -> tuple[Part, ...] | None:
    """The content parts that an output consists of, or `None` when it is an ordinary value."""
    if isinstance(output, PARTS):
        return (output,)
    if isinstance(output, (list, tuple)) and output and all(isinstance(p, PARTS) for p in output):
        return tuple(output)
    return None


def result_block(result: ToolResult, kind: str, call_id: str) -> ResultBlock:
    """The result as it goes into the transcript: never empty unless the status is `ok` (rule K6).

    Args:
        result: The result.
        kind: The kind of the call that it answers.
        call_id: The call's id there; it may be another one than when the round was read.
    """
    content = result.content
    name = result.metadata.name
    if result.status == "promised":
        from lutumpy.core.promises import Promise, placeholder  # few results come later

        promise = result.promise or Promise()
        text = placeholder(name, call_id, promise.note)
        return ResultBlock(call_id, name, text, "promised", kind, promise)
    # Most results: there is nothing to clean in ASCII, and nothing to mark in what went well.
    if type(content) is str and content.isascii() and result.status == "ok":
        return ResultBlock(call_id, name, content, "ok", kind)
    if isinstance(content, str):
        content = json_values.clean_text(content)
    else:
        content = tuple([_clean_part(part) for part in content])
    if result.status != "ok":
        content = _mark_unsuccessful(content, result)
    return ResultBlock(call_id, name, content, result.status, kind)


def _clean_part(part: Part) -> Part:
    return TextPart(json_values.clean_text(part.text)) if isinstance(part, TextPart) else part


def _mark_unsuccessful(
    content: str | tuple[Part, ...], result: ToolResult
) -> str | tuple[Part, ...]:
    """The content with what tells a model that the call was not run, or has failed.

    `ToolResult`s may be made by hand, and not every API has a place for a result's status.
    """
    if isinstance(content, str):
        text = content
    else:
        text = "".join([part.text for part in content if isinstance(part, TextPart)])
    if result.status == "rejected" and not text.startswith(REJECTION_PREFIX):
        if not isinstance(content, str) and text.strip():
            return (TextPart(REJECTION_PREFIX), *content)
        reason = text if text.strip() else result.rejection_reason or _NOT_ALLOWED
        return _put_words(REJECTION_PREFIX + json_values.clean_text(reason), content)
    return content if text.strip() else _put_words(FAILED, content)


def _put_words(words: str, content: str | tuple[Part, ...]) -> str | tuple[Part, ...]:
    """Words in place of blank text; images and the like stay behind them."""
    if isinstance(content, str):
        return words
    media = [part for part in content if not isinstance(part, TextPart)]
    return (TextPart(words), *media) if media else words
