"""What a test may expect of the calls in a conversation, typed by the tools.

expect(session, called(Desk.refund, times=1), never_called(Desk.cancel_order))
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field, replace
from typing import Any, Generic, Protocol, cast

from typing_extensions import TypeVar

from lutumpy import LutumpyError, Selector, Session, Toolset
from lutumpy.models import (
    AssistantTurn,
    Message,
    ResultBlock,
    ResultStatus,
    ToolMetadata,
    ToolResults,
    Transcript,
)
from lutumpy.plain import json_values, values
from lutumpy.plain.preview import shorten

__all__ = [
    "Expectation",
    "SessionCall",
    "called",
    "calls",
    "expect",
    "never_called",
]

I = TypeVar("I", default=Any)

_SHOWN = 100


@values.dataclass(frozen=True, slots=True)
class SessionCall(Generic[I]):
    """A call of a conversation, with what became of it.

    Attributes:
        round: In which answer of the model it is, from 1.
        name: The tool's name, as the model wrote it.
        arguments: The arguments, as the model wrote them.
        status: What became of it; an issue is `rejected`, and `promised` what is still open.
        result: What the model was told of it at last.
        id: Its id.
        input: The arguments as the tool's input; `None` where they don't fit it, or no selector was
            given.
    """

    round: int
    name: str
    arguments: str
    status: ResultStatus
    result: str
    id: str
    input: I | None = field(default=None)

    @property
    def value(self) -> Any:
        """The result as JSON; the text itself where it isn't any."""
        try:
            return json_values.decode(self.result)
        except (ValueError, RecursionError):
            return self.result

    def __str__(self) -> str:
        arguments, result = [" ".join(text.split()) for text in (self.arguments, self.result)]
        shown = f"{self.name}({shorten(arguments, _SHOWN)})"
        return f"{self.round}. {shown} {self.status}: {shorten(result, _SHOWN)}"


def calls(
    session: Session | Transcript, selector: Selector[Any, I, Any] | None = None
) -> tuple[SessionCall[I], ...]:
    """The calls of a conversation in order, of all tools or of one.

    Args:
        session: The conversation.
        selector: The tool; its calls have their input, typed.
    """
    transcript = session.transcript if isinstance(session, Session) else session
    found: list[SessionCall[I]] = []
    number, turn = 0, None
    for item in transcript:
        if isinstance(item, AssistantTurn):
            number, turn = number + 1, item
        elif isinstance(item, Message):
            if item.late is not None:
                _note_late(found, item.late.result)
        elif isinstance(item, ToolResults) and turn is not None:
            blocks = [call for call in turn.calls if call.answerable]
            for block, result in zip(blocks, item.results, strict=False):
                if selector is not None and block.name != selector.name:
                    continue
                make_metadata = ToolMetadata if block.kind == "function" else ToolMetadata.of_text
                metadata = make_metadata(block.id, block.name, block.arguments)
                found.append(
                    SessionCall(
                        number,
                        block.name,
                        block.arguments,
                        result.status,
                        result.text,
                        block.id,
                        None if selector is None else _input_of(selector, metadata),
                    )
                )
    return tuple(found)


def _note_late(found: list[SessionCall[I]], late: ResultBlock) -> None:
    """Put a result that came later in the place of its promise."""
    for index, call in enumerate(found):
        if call.id == late.call_id and call.status == "promised":
            found[index] = replace(call, status=late.status, result=late.text)
            return


def _input_of(selector: Selector[Any, I, Any], metadata: ToolMetadata) -> I | None:
    toolset = cast("type[Toolset[Any]]", selector.toolset)
    try:
        found: I = toolset.parse(metadata).input
    except LutumpyError:
        return None
    return found


class Expectation(Protocol):
    """What `expect` takes: a function that says what is wrong with a conversation, `None` for
    nothing.
    """

    def __call__(self, session: Session | Transcript, /) -> str | None:
        """What is wrong, in a sentence."""
        ...


@values.dataclass(frozen=True, slots=True)
class _Called(Generic[I]):
    selector: Selector[Any, I, Any]
    times: int | None
    before: Selector[Any, Any, Any] | None
    where: Callable[[I], bool] | None
    status: ResultStatus | None

    def __call__(self, session: Session | Transcript, /) -> str | None:
        every = calls(session)
        places = [place for place, call in enumerate(every) if call.name == self.selector.name]
        typed = calls(session, self.selector)
        found = [place for place, call in zip(places, typed, strict=True) if self._fits(call)]
        what = f"{self.selector.name} {self._described()}".rstrip()
        if self.times is None and not found:
            return f"{what} was not called; {_listed(every)}"
        if self.times is not None and len(found) != self.times:
            wanted = _times(self.times)
            return f"{what} was called {_times(len(found))}, not {wanted}; {_listed(every)}"
        if self.before is not None and found:
            others = [place for place, call in enumerate(every) if call.name == self.before.name]
            if not others or found[0] > others[0]:
                return f"{what} was not called before {self.before.name}; {_listed(every)}"
        return None

    def _fits(self, call: SessionCall[I]) -> bool:
        if self.status is not None and call.status != self.status:
            return False
        if self.where is None:
            return True
        return call.input is not None and self.where(call.input)

    def _described(self) -> str:
        parts = [f"with status {self.status!r}"] if self.status is not None else []
        parts += ["with such an input"] if self.where is not None else []
        return " and ".join(parts)


def called(
    selector: Selector[Any, I, Any],
    *,
    times: int | None = None,
    before: Selector[Any, Any, Any] | None = None,
    where: Callable[[I], bool] | None = None,
    status: ResultStatus | None = None,
) -> Expectation:
    """That a tool was called.

    Args:
        selector: The tool, as `Desk.refund`.
        times: How often; at least once when left out.
        before: A tool whose first call comes behind the first such call of this one.
        where: What its input is like; calls that don't fit the input don't count.
        status: What became of it; see `ResultStatus`.
    """
    return _Called(selector, times, before, where, status)


def never_called(
    selector: Selector[Any, I, Any], *, where: Callable[[I], bool] | None = None
) -> Expectation:
    """That a tool was not called, or not with such an input. A call that was rejected counts."""
    return _Called(selector, 0, None, where, None)


def expect(session: Session | Transcript, *expectations: Expectation) -> None:
    """Hold a conversation against what is expected of it.

    Raises:
        AssertionError: something isn't so; the message has everything that isn't.
    """
    wrong = [text for text in [expected(session) for expected in expectations] if text is not None]
    if wrong:
        raise AssertionError("\n".join(wrong))


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _listed(found: Sequence[SessionCall[Any]]) -> str:
    if not found:
        return "there were no calls"
    return "the calls were:\n" + "\n".join([f"  {call}" for call in found])
