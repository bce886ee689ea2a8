"""The log as server-sent events of our own, for pages without a library."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from lutumpy.durable import StoredEvent
from lutumpy.durable.log import LoopEnded, RunFailed, RunStopped, RunWaits
from lutumpy.durable.shown import dump_event
from lutumpy.plain import json_values
from lutumpy.web.frames import Frame
from lutumpy.web.show import Show, ShownLog

__all__ = ["EventSource"]


class EventSource:
    """The events of a conversation, one for one: `id:` is its number, `event:` its name (rule W12).

    A browser's `EventSource` comes again with `Last-Event-ID`, and goes on behind it. Pieces of an
    answer that are gone by then are in its `Completed`. Where `show` hides tools, it is given the
    log from its beginning: what waits names calls that it has to know.

    Args:
        scope: The conversation's id.
        show: What is shown.
        after: The number of the last event that the watcher has seen.

    Attributes:
        ended: Whether the run has ended. The log may go on: whoever follows it needn't stop.
    """

    headers: Mapping[str, str] = {
        "content-type": "text/event-stream",
        "cache-control": "no-cache",
        "x-accel-buffering": "no",
    }
    """The headers of the response."""

    def __init__(self, scope: str, *, show: Show | None = None, after: int = 0) -> None:
        self.ended: bool = False
        self._shown = ShownLog(Show() if show is None else show)
        self._after = after

    def feed(self, stored: StoredEvent, *, superseded: bool = False) -> tuple[Frame, ...]:
        """An event as it is sent; nothing where it was seen, or isn't shown."""
        if stored.seq <= self._after:
            self._shown.note(stored.load())
            return ()
        shown = self._shown.apply(stored.load())
        if shown is None:
            return ()
        is_end = isinstance(shown, (LoopEnded, RunWaits, RunFailed, RunStopped))
        self.ended = is_end and not superseded
        dumped: dict[str, Any] = dict(dump_event(shown))
        name = str(dumped.pop("event"))
        if name == "Delta":
            name, dumped = str(dumped["kind"]), dict(dumped["values"])
        place = {"task": stored.task, "round": stored.round, "at": stored.at.isoformat()}
        text = json.dumps(json_values.clean({**dumped, **place}), ensure_ascii=False)
        frame = f"id: {stored.seq}\nevent: {name}\ndata: {text}\n\n"
        return (Frame(stored.seq, frame.encode("utf-8", "replace")),)
