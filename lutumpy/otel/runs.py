"""The span of a whole loop, and what its requests cost together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Lock

from opentelemetry.trace import Span

from lutumpy import Usage
from lutumpy.otel import names
from lutumpy.otel.metrics import list_tokens
from lutumpy.otel.names import Names

__all__ = ["RunSpan", "add_to_run", "conversation_of_run", "within_run"]

# Tools that run at the same time, and in threads, have copies of the context and share the run.
_CURRENT: ContextVar[RunSpan | None] = ContextVar("lutumpy_otel_run", default=None)


class RunSpan:
    """The span of a loop while it runs.

    Attributes:
        span: OpenTelemetry's span.
        conversation: The id that the run was given for its conversation, or the run around it;
            `None` for none.
    """

    def __init__(self, span: Span, outer: RunSpan | None, conversation: str | None) -> None:
        if conversation is None and outer is not None:
            conversation = outer.conversation
        self.span: Span = span
        self.conversation: str | None = conversation
        self._outer = outer
        self._usage = Usage()
        self._lock = Lock()

    @property
    def usage(self) -> Usage:
        """What the requests of the run have cost so far, those of runs inside it included."""
        return self._usage

    def add(self, usage: Usage) -> None:
        """Count what a request cost; those of wrapped models are counted already."""
        with self._lock:
            self._usage += usage
        if self._outer is not None:
            self._outer.add(usage)

    def ended(self, rounds: int, stopped_by: str) -> None:
        """Note how a loop ended: after how many rounds, and by what."""
        self.span.set_attribute(names.LOOP_ROUNDS, rounds)
        self.span.set_attribute(names.LOOP_STOPPED_BY, stopped_by)

    def note_usage(self, chosen: Names) -> None:
        """Write the sums down, under names that no back end adds up again."""
        if self.span.is_recording():
            for name, count in list_tokens(self._usage, chosen).items():
                self.span.set_attribute(f"{names.AGGREGATED_USAGE}.{name}", count)


@contextmanager
def within_run(span: Span, conversation: str | None = None) -> Iterator[RunSpan]:
    """The run of this span; what is asked in the block is counted to it."""
    run = RunSpan(span, _CURRENT.get(), conversation)
    token = _CURRENT.set(run)
    try:
        yield run
    finally:
        _CURRENT.reset(token)


def conversation_of_run() -> str | None:
    """The id that the run was given for its conversation, if there is one."""
    run = _CURRENT.get()
    return None if run is None else run.conversation


def add_to_run(usage: Usage) -> None:
    """Count what a request cost to the run that it is part of, if there is one."""
    run = _CURRENT.get()
    if run is not None:
        run.add(usage)
