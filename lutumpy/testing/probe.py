"""A probe: looks at the calls of a run before they are made, and can stop it."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias, Union

from lutumpy import Reject, RunNormally, Session, ToolDecision, ToolMetadata, hook_impl
from lutumpy.errors import ProbeStopped
from lutumpy.hooks import BaseToolCall
from lutumpy.plain.driving import is_async

__all__ = ["Probe", "ProbeCheck"]

ProbeCheck: TypeAlias = Callable[
    [Session, BaseToolCall], Union[str, Awaitable[Union[str, None]], None]
]
"""Is given the session, without the round that is open, and a call of that round; says what is
wrong in a sentence, or gives `None`. It may be async."""


class Probe:
    """A hook that holds each call of a run against checks before anything runs.

        hooks = Desk.hooks().with_hooks(Probe(session, only_one_refund))
        await run_tools(session, llm, tools=Desk, hooks=hooks)

    Where a check finds something, the run is stopped: a `HookError` whose `__cause__` is a
    `ProbeStopped`. Nothing of the round was run, and it isn't in the session.

    Args:
        session: The conversation of the run.
        checks: What is asked of each call, in order; the first finding counts.
        stop: `False` rejects the call instead: the model is told what is wrong, and the run goes
            on.
    """

    def __new__(cls, session: Session, *checks: ProbeCheck, stop: bool = True) -> Probe:
        """One whose hook is async where a check is."""
        kind: Any = _AsyncProbe if cls is Probe and any(map(is_async, checks)) else cls
        probe: Probe = super().__new__(kind)
        return probe

    def __init__(self, session: Session, *checks: ProbeCheck, stop: bool = True) -> None:
        self._session = session
        self._checks: tuple[Any, ...] = checks
        self._stop = stop

    @hook_impl
    def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> Any:
        """Decide a call; for the registry."""
        for check in self._checks:
            found = check(self._session, call)
            if found is not None:
                return self._decide(found, metadata)
        return RunNormally()

    def _decide(self, found: str, metadata: ToolMetadata) -> ToolDecision:
        if self._stop:
            raise ProbeStopped(f"{metadata.name}: {found}")
        return Reject(found)


class _AsyncProbe(Probe):
    @hook_impl
    async def any_tool_hook(self, metadata: ToolMetadata, call: BaseToolCall) -> Any:
        for check in self._checks:
            found = check(self._session, call)
            if inspect.isawaitable(found):
                found = await found
            if found is not None:
                return self._decide(found, metadata)
        return RunNormally()
