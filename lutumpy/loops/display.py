"""A ready display of loops and of batches of them, on a terminal: `show_progress`."""

# What is shown follows from the events of the loops alone, so any number of loops may report to one
# display, from one thread or several; rich has a lock of its own.
#
#   one loop    round 2: find_order, refund   1,234 tokens
#   a batch     ━━━━━━━━━ 312/500  0:01:12  3 failed  1,023 rounds  812,330 tokens

from __future__ import annotations

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

from typing_extensions import Self

from lutumpy.loops.progress import (
    LoopEnded,
    LoopEvent,
    RequestStarted,
    RoundCommitted,
    RoundExecuted,
    RoundPlanned,
)

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

__all__ = ["ProgressDisplay", "show_progress"]


def show_progress(total: int | None = None, *, console: Console | None = None) -> ProgressDisplay:
    """A display of what loops do, on the terminal. Needs the extra `cli` (rich).

    One loop: `with show_progress() as show: await run_tools(..., on_progress=show)`. A batch:
    `with show_progress(500) as show:`, and for each conversation `with show.one() as each:` around
    `run_tools(..., on_progress=each)`, in as many tasks or threads as there are.

    Where the output isn't a terminal, only the last line of each loop or batch is written.

    Args:
        total: How many conversations there are; `None` for a single loop.
        console: Where it is shown; by default rich's console for standard error, so that what a
            program prints stays by itself.

    Raises:
        ImportError: The extra isn't installed.
        ValueError: `total` is negative.
    """
    if total is not None and total < 0:
        raise ValueError(f"total={total} is not a number of conversations")
    try:
        import rich.progress  # noqa: F401  # only who shows something needs it
    except ImportError as error:
        raise ImportError(
            'show_progress needs rich: python -m pip install ".[cli]" (in a clone)'
        ) from error
    return ProgressDisplay(total, console)


class ProgressDisplay:
    """What `show_progress` gives: a context manager, and itself an `on_progress` callback.

    Attributes:
        done: How many loops have ended, failed ones included.
        failed: How many of them ended in an error.
        rounds: Rounds that were committed, of all loops.
        tokens: Tokens of all loops, as far as they have reported.
    """

    def __init__(self, total: int | None, console: Console | None) -> None:
        self.done: int = 0
        self.failed: int = 0
        self.rounds: int = 0
        self.tokens: int = 0
        self._total = total
        self._lock = threading.Lock()
        self._progress: Progress = _make_progress(total, console)
        self._task = self._progress.add_task("", total=total, counts="")
        self._of_the_one_loop = _Reporter(self)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()

    def __call__(self, event: LoopEvent[Any]) -> None:
        """Show an event of the one loop."""
        self._of_the_one_loop(event)

    @contextmanager
    def one(self) -> Generator[Callable[[LoopEvent[Any]], None], None, None]:
        """The callback of one conversation of a batch.

        It counts as done at the end of the block; as failed too, where that raises.
        """
        reporter = _Reporter(self)
        try:
            yield reporter
        except BaseException:
            with self._lock:
                self.failed += 1
            raise
        finally:
            with self._lock:
                self.done += 1
            self._refresh("")

    def _add(self, rounds: int, tokens: int, words: str) -> None:
        with self._lock:
            self.rounds += rounds
            self.tokens += tokens
        self._refresh(words)

    def _refresh(self, words: str) -> None:
        counts = f"{self.rounds:,} rounds  {self.tokens:,} tokens"
        if self.failed:
            counts = f"{self.failed:,} failed  {counts}"
        done = None if self._total is None else self.done
        shown = words if self._total is None else ""
        self._progress.update(self._task, completed=done, description=shown, counts=counts)


class _Reporter:
    """Takes the events of one loop, and adds to the display what is new in each."""

    def __init__(self, display: ProgressDisplay) -> None:
        self._display = display
        self._tokens = 0
        self._rounds = 0

    def __call__(self, event: LoopEvent[Any]) -> None:
        new_tokens = event.usage.total_tokens - self._tokens
        self._tokens += new_tokens
        committed = self._rounds
        if isinstance(event, RoundCommitted):
            committed = event.round
        elif isinstance(event, LoopEnded):
            committed = event.rounds
        new_rounds, self._rounds = committed - self._rounds, committed
        self._display._add(new_rounds, new_tokens, _describe(event))


def _describe(event: LoopEvent[Any]) -> str:
    if isinstance(event, RequestStarted):
        return f"round {event.round}: asking the model"
    if isinstance(event, RoundPlanned):
        names = ", ".join([call.metadata.name for call in event.pending])
        return f"round {event.round}: {names or 'nothing to run'}"
    if isinstance(event, RoundExecuted):
        return f"round {event.round}: {len(event.results)} results"
    if isinstance(event, LoopEnded):
        return f"{event.result.stopped_by} after {event.rounds} rounds"
    return f"round {event.round}"


def _make_progress(total: int | None, console: Console | None) -> Progress:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    where = Console(stderr=True) if console is None else console
    # What a model wrote is shown as it is: no markup.
    words = TextColumn("{task.description}", markup=False)
    counts = TextColumn("{task.fields[counts]}", markup=False)
    if total is None:
        return Progress(SpinnerColumn(), words, counts, TimeElapsedColumn(), console=where)
    return Progress(BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), counts, console=where)
