"""Structured answers: the schema that is asked for, and the value in what the model wrote."""

# A value is asked for in one of two ways, as the endpoint can: by JSON schema output, and then the
# text of the answer is the value; or by a tool whose arguments are the value (`ValueTool`).
#
# Every API wants an object at the root. So a type whose JSON Schema is an object is asked for as it
# is, and any other as the property `value` of an object. Models mix these up, and both forms are
# read in either case:
#
#   the schema of the type  asked for            read
#   ----------------------  -------------------  -------------------------------------------------
#   is an object            the object           the object; or {"value": the object}
#   is anything else        {"value": ...}       {"value": ...}; or the bare value
#
# The schema of an `OutputSchema` is treated alike. What differs between the two is a `ValueShape`.

from __future__ import annotations

import functools
import inspect
import itertools
import json
import re
from collections.abc import Container, Iterable
from typing import Any, Generic, TypeGuard

from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn, CallBlock, TextBlock, ToolMetadata
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolMode, ToolOffering, ToolSpec
from lutumpy.core.value_calls import VALUE_RECEIVED, value_tool_name
from lutumpy.hooks.pipeline import CallOrIssue
from lutumpy.plain.json_values import refuse_constant
from lutumpy.plain.preview import shorten
from lutumpy.rounds.open_answer import OpenAnswer
from lutumpy.rounds.outcome import TurnResult
from lutumpy.rounds.output_schema import OutputSchema
from lutumpy.rounds.value_shapes import WRAPPED, ReadValue, TypeShape, ValueShape
from lutumpy.tools.calls import IssueReason, ToolCallIssue
from lutumpy.tools.results import ToolResult

__all__ = ["ValueReader", "ValueTool", "value_reader"]

V = TypeVar("V")

# The most characters of an answer that a `value_error` quotes.
_QUOTED = 100
_DESCRIPTION = (
    "Give the final answer by calling this tool, once and with all of it; an answer that is "
    "written as text is not read. Call other tools first where you need them, and this one alone, "
    "after their results."
)


class ValueReader(Generic[V]):
    """Reads values of one shape out of answers.

    Args:
        shape: What the values look like.
    """

    __slots__ = ("_shape", "_tools", "spec")

    def __init__(self, shape: ValueShape) -> None:
        self._shape = shape
        self.spec: OutputSpec = shape.spec
        self._tools: dict[str, ValueTool[V]] = {}

    def __call__(self, turn: AssistantTurn) -> TurnResult[V]:
        """The result of an answer: with the value, or with the reason why there is none.

        Never raises. The text has to be the JSON of the value, alone or in one Markdown code fence
        with nothing but white space around it. If there are several pieces of text, as models write
        them around tools that the provider runs, the last one may be the value.
        """
        reason = _explain_unfinished(turn)
        if reason is not None:
            return TurnResult(turn, None, reason)
        read = self.read_text(turn.text)
        texts = [b.text for b in turn.blocks if type(b) is TextBlock and b.text.strip()]
        # A bare number or word at the end of a text is not a JSON document.
        if read.error is not None and len(texts) > 1 and _unfence(texts[-1])[:1] in ("{", "["):
            last = self.read_text(texts[-1])
            read = last if last.error is None else read
        return TurnResult(turn, read.value, read.error)

    def read_text(self, text: str) -> ReadValue:
        """The value of a text."""
        text = _unfence(text)
        if not text:
            return ReadValue(error="the answer is empty")
        return self._read_json(text)

    def read_arguments(self, text: str) -> ReadValue:
        """The value of a call's arguments; an empty text means `{}` (rule C4)."""
        return self._read_json(text if text.strip() else "{}")

    def value_tool(self, names_in_use: Container[str]) -> ValueTool[V]:
        """The tool that takes the value, under a name that isn't in use."""
        name = next(n for n in _list_names() if n not in names_in_use)
        tool = self._tools.get(name)
        if tool is None:
            description = _DESCRIPTION
            if self._shape.about:
                description += f"\n\n{self._shape.about}"
            spec = ToolSpec(name, description, self.spec.schema, self.spec.strict)
            # Kept, so that equal turns send equal bytes, rendered once (rule A4).
            tool = self._tools[name] = ValueTool(self, spec)
        return tool

    def _read_json(self, text: str) -> ReadValue:
        try:
            data: Any = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return ReadValue(error=f"the answer is not JSON, but {_quote(text)}")
        wrapped = _is_object(data) and data.keys() == {WRAPPED}
        forms = [text] if _is_object(data) else []
        # If no form fits, the error is that of the form which the answer looks like.
        reported = 0
        if self._shape.wrapped:
            forms.append(f'{{"{WRAPPED}":{text}}}')
            reported = 0 if wrapped else -1
        elif wrapped and _is_object(data[WRAPPED]):
            inner = json.dumps(data[WRAPPED])
            # A type that ignores unknown properties would take the wrapped form for an empty one.
            forms = [*forms, inner] if self._shape.knows_value else [inner]
        refused: list[str] = []
        for form in forms:
            read = self._shape.read_object(form)
            if read.error is None:
                return read
            refused.append(read.error)
        if not refused:
            return ReadValue(error=f"the answer has to be a JSON object, not {_quote(text)}")
        return ReadValue(error=f"the answer doesn't fit {self._shape.name}: {refused[reported]}")


class ValueTool(Generic[V]):
    """The tool whose arguments are the value of a structured turn.

    It is for endpoints that have no JSON schema output. Calls to it do not appear in a round.

    Attributes:
        spec: What is offered.
    """

    __slots__ = ("_reader", "spec")

    def __init__(self, reader: ValueReader[V], spec: ToolSpec) -> None:
        self._reader = reader
        self.spec: ToolSpec = spec

    def offering(self, offer: ToolOffering | None, *, forced: bool) -> ToolOffering:
        """The tools of a turn, this one last; the model has to call one of them.

        An offer that requires a call of one of its own stays as it is.

        Args:
            offer: The toolset's.
            forced: Whether the model takes a forced choice; another is only told to call this tool.
        """
        stable = None
        if offer is not None and offer.stable_specs is not None:
            stable = (*offer.stable_specs, self.spec)
        if offer is None or not offer.specs:
            mode: ToolMode = "specific" if forced else "auto"
            chosen = self.spec.name if forced else None
            return ToolOffering((self.spec,), mode, chosen, stable_specs=stable)
        if offer.mode == "required":
            if stable is None:
                return offer
            return ToolOffering(
                offer.specs,
                "required",
                None,
                offer.parallel,
                stable,
                offer.finder,
                offer.deferred,
            )
        specs = (*offer.specs, self.spec)
        if offer.mode == "specific":
            mode, name = "specific", offer.forced
        else:
            mode, name = ("required" if forced else "auto"), None
        return ToolOffering(specs, mode, name, offer.parallel, stable, offer.finder, offer.deferred)

    def is_called_by(self, block: CallBlock) -> bool:
        """Whether a call is a call of this tool."""
        return block.name == self.spec.name and block.kind == "function"

    def refuse_early(self, block: CallBlock) -> ToolCallIssue:
        """The issue for a value that comes with calls of other tools: these are answered first."""
        detail = (
            f"{block.name} was called together with other tools, so the answer was not taken. "
            f"Call {block.name} alone, after the results of the other tools."
        )
        metadata = ToolMetadata(block.id, block.name, block.arguments)
        return ToolCallIssue(metadata, "not_available", detail)

    def take_value(self, answer: OpenAnswer) -> tuple[TurnResult[V], OpenAnswer]:
        """The result of an answer that needs no other tool, and the answer as it is written.

        The first call that fits has the value. Every further call, and every one that doesn't fit,
        is an issue there. If there is no call of this tool, the text is read.
        """
        turn, transcript = answer.turn, answer.transcript
        entries: list[CallOrIssue] = list(answer.entries)
        received: ToolResult | None = None
        reads: list[ReadValue] = []
        value: Any = None
        for index, block in enumerate(turn.calls):
            if not self.is_called_by(block):
                continue
            metadata = entries[index].metadata
            if received is not None:
                entries[index] = ToolCallIssue(
                    metadata, "not_available", "The answer was received already."
                )
                continue
            cut = _explain_cut_call(turn, block, last=index == len(turn.calls) - 1)
            if cut is None:
                read = self._reader.read_arguments(block.arguments)
            else:
                read = ReadValue(error=cut)
            reads.append(read)
            if read.error is None:
                value, received = read.value, ToolResult(metadata, VALUE_RECEIVED)
                continue
            reason: IssueReason = "invalid_arguments" if cut is None else "truncated"
            detail = f"{read.error[:1].upper()}{read.error[1:]}"
            failures = transcript.failures(metadata.name, metadata.arguments)
            entries[index] = ToolCallIssue(metadata, reason, detail, failures)
        if not reads:
            return self._reader(turn), answer
        error = None if received is not None else reads[0].error
        results = () if received is None else (received,)
        written = OpenAnswer(turn, entries, transcript, answer.requested, results)
        return TurnResult(turn, value, error), written


def _unfence(text: str) -> str:
    """`text` without white space around it, and without the one Markdown code fence around it."""
    text = text.strip()
    if len(text) > 6 and text.startswith("```") and text.endswith("```"):
        language, newline, body = text[3:-3].partition("\n")
        if newline and re.fullmatch(r"\s*\w*\s*", language):
            return body.strip()
    return text


def _is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def value_reader(value: Any) -> ValueReader[Any]:
    """The reader of a type or of an `OutputSchema`.

    Those of types are kept, as applications ask for the same few again and again.
    """
    if isinstance(value, OutputSchema):
        return ValueReader(value.shape)
    try:
        # Equal unions may differ in the order of their members, and so in their bytes (rule A4).
        spelling = "" if inspect.isclass(value) else repr(value)
        return _keep_reader(value, spelling)
    except TypeError:
        # Either the type can't be a key of the cache, or something else is wrong with it.
        if _is_hashable(value):
            raise
        return ValueReader(TypeShape(value))


def _list_names() -> Iterable[str]:
    return (value_tool_name(number) for number in itertools.count(1))


def _explain_unfinished(turn: AssistantTurn) -> str | None:
    """Why the text of an answer is not all of it; `None` if it is."""
    if turn.finish_reason == "paused":
        return "the provider paused the answer; another turn goes on with it"
    return _explain_cut(turn)


def _explain_cut(turn: AssistantTurn) -> str | None:
    if turn.refusal is not None or turn.finish_reason == "refusal":
        return "the model refused to answer"
    if turn.cut or turn.finish_reason == "length":
        return f"the answer was cut off ({turn.provider_finish_reason or turn.finish_reason})"
    return None


def _explain_cut_call(turn: AssistantTurn, block: CallBlock, *, last: bool) -> str | None:
    """Why a call is not complete; an answer is cut off in its last call (rule C2a)."""
    reason = _explain_cut(turn) if last or block.incomplete else None
    if reason is None and block.incomplete:
        return "the answer was cut off"
    return reason


def _quote(text: str) -> str:
    # Lone surrogates can't be printed.
    text = text.strip().encode("utf-8", "replace").decode()
    return repr(shorten(text, _QUOTED))


def _is_hashable(value_type: Any) -> bool:
    try:
        hash(value_type)
    except TypeError:  # `Annotated` with unhashable metadata
        return False
    return True


@functools.lru_cache(maxsize=128)
def _keep_reader(value_type: Any, _spelling: str) -> ValueReader[Any]:
    return ValueReader(TypeShape(value_type))
