"""Structured answers: the schema that is asked for, and the value in what the model wrote."""

from __future__ import annotations

import functools
import inspect
import json
import re
from collections.abc import Container, Iterable, Mapping
from types import NoneType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeGuard, get_origin

from pydantic import BaseModel, ConfigDict, RootModel, TypeAdapter, create_model
from typing_extensions import TypeVar

from lutumpy.core.items import AssistantTurn, CallBlock, TextBlock, ToolMetadata
from lutumpy.core.json_values import refuse_constant
from lutumpy.core.model import OutputSpec
from lutumpy.core.tool_specs import ToolOffering, ToolSpec
from lutumpy.core.transcript import Transcript
from lutumpy.core.transcript_state import Receipt
from lutumpy.errors import DeclarationError
from lutumpy.rounds.commit import Answer, Entry, OpenAnswer
from lutumpy.rounds.outcome import TurnResult
from lutumpy.tools.arguments import Refused, decode_arguments
from lutumpy.tools.calls import IssueReason, ToolCallIssue
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef, ToolOptions
from lutumpy.tools.results import ToolResult
from lutumpy.tools.schema import input_schema, reason_of

if TYPE_CHECKING:
    from lutumpy.rounds.target import Target

V = TypeVar("V")

WRAPPED = "value"

_ROOT = "root"
_SHOWN = 100
_DESCRIBE = (
    "Give the final answer by calling this tool, once and with all of it; an answer that is written as text is not read. "
    "Call other tools first where you need them, and this one alone, after their results."
)
_RECEIVED = "Answer received."


class _Read(NamedTuple):
    """The value, or why there is none."""

    value: Any = None
    error: str | None = None


class ValueReader(Generic[V]):
    """Reads values of one type out of answers.

    A type whose JSON Schema is an object is asked for as it is; any other as the property `value` of an object, since
    every API wants an object at the root. Both forms are read in either case.

    Args:
        value_type: The type: anything that pydantic has a JSON Schema for.

    Raises:
        DeclarationError: the type has no JSON Schema.
    """

    __slots__ = ("_about", "_attribute", "_knows_value", "_name", "_tool", "_tools", "spec")

    def __init__(self, value_type: Any) -> None:
        name = (
            re.sub(r"[^a-zA-Z0-9_-]+", "_", getattr(value_type, "__name__", ""))[:64].strip("_")
            or "answer"
        )
        model, schema, attribute = _asked_for(value_type, name)
        self.spec: OutputSpec = OutputSpec(name, schema)
        self._name: str = name
        # Where the value is in what was validated; `None` when it is that itself.
        self._attribute: str | None = attribute
        self._knows_value: bool = WRAPPED in schema["properties"] or bool(
            schema.get("additionalProperties")
        )
        self._about: str = inspect.cleandoc(_own_docstring(value_type))
        self._tool: CompiledTool = CompiledTool(
            definition=ToolDef(name, "", schema, None, ToolOptions()),
            input_type=model,
            output_type=NoneType,
            adapter=TypeAdapter(None),
            wrapped=False,
        )
        self._tools: dict[str, AnswerTool[V]] = {}

    def __call__(self, turn: AssistantTurn) -> TurnResult[V]:
        """The result of an answer: with the value, or with the reason why there is none. Never raises.

        The text has to be the JSON of the value, alone or in one Markdown code fence with nothing but white space around
        it. Of several pieces of text, as models write them around tools that the provider runs, the last may be that.
        """
        reason = _unfinished(turn)
        if reason is not None:
            return TurnResult(turn, None, reason)
        read = self.text(turn.text)
        texts = [b.text for b in turn.blocks if type(b) is TextBlock and b.text.strip()]
        # A bare number or word at the end of a text is no JSON document.
        if read.error is not None and len(texts) > 1 and unfenced(texts[-1])[:1] in ("{", "["):
            last = self.text(texts[-1])
            read = last if last.error is None else read
        return TurnResult(turn, read.value, read.error)

    def text(self, text: str) -> _Read:
        """The value of a text."""
        text = unfenced(text)
        if not text:
            return _Read(error="the answer is empty")
        return self._read(text)

    def arguments(self, text: str) -> _Read:
        """The value of a call's arguments; nothing at all means `{}` (rule C4)."""
        return self._read(text if text.strip() else "{}")

    def answer_tool(self, taken: Container[str]) -> AnswerTool[V]:
        """The tool that takes the value; its name is none of those taken."""
        name = next(n for n in _names() if n not in taken)
        tool = self._tools.get(name)
        if tool is None:
            description = f"{_DESCRIBE}\n\n{self._about}" if self._about else _DESCRIBE
            tool = self._tools[name] = AnswerTool(
                self, ToolSpec(name, description, self.spec.schema)
            )
        return tool

    def _read(self, text: str) -> _Read:
        try:
            data: Any = json.loads(text, parse_constant=refuse_constant)
        except (ValueError, RecursionError):
            return _Read(error=f"the answer is not JSON, but {_shown(text)}")
        wrapping = is_object(data) and data.keys() == {WRAPPED}
        forms: list[str] = []
        if self._attribute == WRAPPED:
            forms = [text] if is_object(data) else []
            forms.append(f'{{"{WRAPPED}":{text}}}')
            # Both forms failed: the reason is that of the form which it looks like.
            reported = 0 if wrapping else -1
        else:
            forms = [text] if is_object(data) else []
            if wrapping and is_object(data[WRAPPED]):
                inner = json.dumps(data[WRAPPED])
                # A type that ignores what it doesn't know would take the wrapped form for an empty object.
                forms = [*forms, inner] if self._knows_value else [inner]
            reported = 0
        refused: list[str] = []
        for form in forms:
            decoded = decode_arguments(self._tool, form)
            if not isinstance(decoded, Refused):
                found: Any = decoded.input
                return _Read(found if self._attribute is None else getattr(found, self._attribute))
            refused.append(decoded.detail)
        if not refused:
            return _Read(error=f"the answer has to be a JSON object, not {_shown(text)}")
        return _Read(error=f"the answer doesn't fit {self._name}: {refused[reported]}")


class AnswerTool(Generic[V]):
    """The tool whose arguments are the value of a structured turn, where an endpoint has no JSON schema output.

    A call of it is no call of the round.

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
        if offer is None or not offer.specs:
            return (
                ToolOffering((self.spec,), "specific", self.spec.name)
                if forced
                else ToolOffering((self.spec,))
            )
        if offer.mode == "required":
            return offer
        specs = (*offer.specs, self.spec)
        if offer.mode == "specific":
            return ToolOffering(specs, "specific", offer.forced, offer.parallel)
        return ToolOffering(specs, "required" if forced else "auto", None, offer.parallel)

    def takes(self, block: CallBlock) -> bool:
        """Whether a call is one of this tool."""
        return block.name == self.spec.name and block.kind == "function"

    def early(self, block: CallBlock) -> ToolCallIssue:
        """The issue of an answer that stands beside calls of other tools: those have to be answered first."""
        detail = (
            f"{block.name} was called together with other tools, so the answer was not taken. "
            f"Call {block.name} alone, after the results of the other tools."
        )
        return ToolCallIssue(
            ToolMetadata(block.id, block.name, block.arguments), "not_available", detail
        )

    def close(self, answer: OpenAnswer) -> tuple[TurnResult[V], OpenAnswer]:
        """The result of an answer that needs no tool, and what is written: every call of this tool has its result there.

        The first call that fits is the value. Where there is no call, the text is read.
        """
        turn, origin = answer.turn, answer.origin
        entries = list(answer.entries)
        received: ToolResult | None = None
        reads: list[_Read] = []
        value: Any = None
        for index, block in enumerate(turn.calls):
            if not self.takes(block):
                continue
            metadata = entries[index].metadata
            if received is not None:
                entries[index] = ToolCallIssue(
                    metadata, "not_available", "The answer was received already."
                )
                continue
            cut = _cut_call(turn, block, last=index == len(turn.calls) - 1)
            read = _Read(error=cut) if cut is not None else self._reader.arguments(block.arguments)
            reads.append(read)
            if read.error is None:
                value, received = read.value, ToolResult(metadata, _RECEIVED)
                continue
            reason: IssueReason = "invalid_arguments" if cut is None else "truncated"
            detail = f"{read.error[:1].upper()}{read.error[1:]}"
            failures = origin.failures(metadata.name, metadata.arguments)
            entries[index] = ToolCallIssue(metadata, reason, detail, failures)
        if not reads:
            return self._reader(turn), answer
        error = None if received is not None else reads[0].error
        results = () if received is None else (received,)
        return TurnResult(turn, value, error), ClosedAnswer(answer, entries, results)


class ClosedAnswer(OpenAnswer):
    """An answer whose calls are all answered already.

    Attributes:
        results: Those of the calls that are no issues.
    """

    __slots__ = ("results",)

    def __init__(
        self, answer: OpenAnswer, entries: list[Entry], results: tuple[ToolResult, ...]
    ) -> None:
        super().__init__(answer.turn, entries, answer.origin, answer.requested)
        self.results: tuple[ToolResult, ...] = results

    def write(
        self,
        target: Target,
        results: Iterable[Answer],
        *,
        decided: Mapping[str, ToolResult] | None = None,
        rebase: bool = False,
    ) -> None:
        """As for any answer."""
        super().write(target, [*self.results, *results], decided=decided, rebase=rebase)

    def _append(
        self,
        transcript: Transcript,
        turn: AssistantTurn,
        answers: list[ToolResult],
        receipt: Receipt,
        *,
        last: bool = False,
    ) -> None:
        # Where the value is there, the tool loop is finished (rule S4).
        super()._append(transcript, turn, answers, receipt, last=last or bool(self.results))


def unfenced(text: str) -> str:
    """`text` without white space around it, and without the one Markdown code fence that it consists of."""
    text = text.strip()
    if len(text) > 6 and text.startswith("```") and text.endswith("```"):
        language, newline, body = text[3:-3].partition("\n")
        if newline and re.fullmatch(r"\s*\w*\s*", language):
            return body.strip()
    return text


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def value_reader(value_type: Any) -> ValueReader[Any]:
    """The reader of a type; kept, as applications ask for the same few again and again."""
    try:
        # Equal unions may differ in the order of their members, and so in their bytes (rule A4).
        return _kept_reader(value_type, "" if inspect.isclass(value_type) else repr(value_type))
    except TypeError:
        if _hashable(value_type):
            raise
        return ValueReader(value_type)


def _asked_for(value_type: Any, name: str) -> tuple[type[BaseModel], dict[str, Any], str | None]:
    """The model that is validated, its schema, and where the value is in it."""
    fields: Any = {WRAPPED: (value_type, ...)}
    root: Any = {_ROOT: (value_type, ...)}
    model: Any = value_type
    try:
        is_model = (
            inspect.isclass(value_type)
            and get_origin(value_type) is None
            and issubclass(value_type, BaseModel)
        )
        if not is_model:
            model = create_model(name, __base__=RootModel, **root)
        schema, wrapped = input_schema(model)
        if not wrapped:
            return model, schema, None if is_model else _ROOT
        model = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        return model, input_schema(model)[0], WRAPPED
    except DeclarationError:
        raise
    except Exception as error:  # pydantic's, and those of the user's own schema methods
        raise DeclarationError(
            f"the value type {value_type!r} has no JSON Schema: {reason_of(error)}"
        ) from error


def _own_docstring(value_type: Any) -> str:
    """What its author says of a model; dataclasses and the like have docstrings that nobody wrote."""
    if (
        inspect.isclass(value_type)
        and get_origin(value_type) is None
        and issubclass(value_type, BaseModel)
    ):
        return value_type.__dict__.get("__doc__") or ""
    return ""


def _names() -> Iterable[str]:
    yield "answer"
    number = 2
    while True:
        yield f"answer_{number}"
        number += 1


def _unfinished(turn: AssistantTurn) -> str | None:
    """Why the text of an answer is not all of it."""
    if turn.finish_reason == "paused":
        return "the provider paused the answer; another turn goes on with it"
    return _cut(turn)


def _cut(turn: AssistantTurn) -> str | None:
    if turn.refusal is not None or turn.finish_reason == "refusal":
        return "the model refused to answer"
    if turn.cut or turn.finish_reason == "length":
        return f"the answer was cut off ({turn.provider_finish_reason or turn.finish_reason})"
    return None


def _cut_call(turn: AssistantTurn, block: CallBlock, *, last: bool) -> str | None:
    """Why a call is not all of it: an answer that was cut off was so in its last call (rule C2a)."""
    reason = _cut(turn) if last or block.incomplete else None
    return reason or ("the answer was cut off" if block.incomplete else None)


def _shown(text: str) -> str:
    text = text.strip().encode("utf-8", "replace").decode()
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")


def _hashable(value_type: Any) -> bool:
    try:
        hash(value_type)
    except TypeError:  # `Annotated` with unhashable metadata
        return False
    return True


@functools.lru_cache(maxsize=128)
def _kept_reader(value_type: Any, _spelled: str) -> ValueReader[Any]:
    return ValueReader(value_type)
