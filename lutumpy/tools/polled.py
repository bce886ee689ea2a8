"""Calls whose results somebody has to ask for: what polls them, and what a poll finds (LR32)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol, TypeVar

from lutumpy.core.items import ToolMetadata
from lutumpy.plain.values import dataclass
from lutumpy.tools.questions import Asked

__all__ = ["Polled", "Poller", "poll_once", "polled_by", "poller_of"]

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Polled:
    """What became of a call by the time somebody asked.

    Attributes:
        state: `running`; `done`, with an output or an error; `asked`, where a person has to answer
            something; or `lost`: nobody knows of it any more, and what it did is unknown.
        wait: Seconds after which to ask again.
        output: Its output, as its code would have given it.
        error: What it failed with.
        asked: What a person has to answer.
    """

    state: Literal["running", "done", "asked", "lost"]
    wait: float = 5.0
    output: Any = None
    error: BaseException | None = None
    asked: Asked | None = None


class Poller(Protocol):
    """Asks for the results of calls that a tool has promised, by the handles of their promises.

    One that wants to know whose result it asks for has a method `poll_call` besides. It takes the
    `ToolMetadata` of the call before the arguments of `poll`, and is called in its place.
    """

    def interval(self, handle: Any) -> float:
        """Seconds between two polls, as long as no poll has said another number."""
        ...

    async def poll(
        self, handle: Any, answers: Mapping[str, Any] | None = None, *, holds: bool = False
    ) -> Polled:
        """Ask once.

        Args:
            handle: The handle of the promise.
            answers: What people have answered, by the keys of the questions; sent first.
            holds: Whether questions can be held for a person.

        Raises:
            Exception: Nobody could be asked, for now.
        """
        ...

    async def cancel(self, handle: Any) -> None:
        """Say that nobody waits for the result any more. What goes wrong is logged."""
        ...


async def poll_once(
    poller: Poller,
    call: ToolMetadata,
    handle: Any,
    answers: Mapping[str, Any] | None = None,
    *,
    holds: bool = False,
) -> Polled:
    """Ask once for the result of a call; arguments and errors as of `Poller.poll`."""
    poll_call: Any = getattr(poller, "poll_call", None)
    if poll_call is None:
        return await poller.poll(handle, answers, holds=holds)
    polled: Polled = await poll_call(call, handle, answers, holds=holds)
    return polled


def polled_by(run: F, poller: Poller) -> F:
    """Marks the code of a tool that may promise results, which `poller` asks for; gives the code.

    A tool that is marked may raise `Later` whether or not it was declared with `late=True`. The
    promise is known to nobody but whoever recorded it, so one that was not recorded is lost.
    """
    run.poller = poller  # type: ignore[attr-defined]
    return run


def poller_of(tool: Any) -> Poller | None:
    """What asks for the results of a tool; `None` where somebody delivers them."""
    found: Poller | None = getattr(tool.run, "poller", None)
    return found
