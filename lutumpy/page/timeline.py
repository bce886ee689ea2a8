"""The steps of a conversation, gathered as a reader walks it: who said what, and which result
belongs to which call.

It takes histories as they are. A result that doesn't stand where it should is shown where it
stands, and both it and its call say so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lutumpy.core.items import REJECTION_PREFIX
from lutumpy.models import ResultStatus
from lutumpy.page.model import STYLES, CallView, Noted, Piece, Place, ResultView, Step
from lutumpy.page.text import text_value
from lutumpy.plain.safe_text import safe_repr

__all__ = ["Timeline"]

NO_ID = "This result names no call."
UNKNOWN = "No call before it has this id."
REPEATED = "The call with this id has a result already."
LATE = "It does not follow its call directly."


class Timeline:
    """The steps so far.

    Attributes:
        steps: In the order of the conversation.
        places: What is shown for each place of the source.
        limit: Characters of one text.
        size: How many messages the source has.
    """

    def __init__(self, spell: Callable[[Place], str], limit: int) -> None:
        self.steps: list[Step] = []
        self.places: dict[Place, Noted] = {}
        self.limit: int = limit
        self.size: int = 0
        self._spell = spell
        self._anchors: set[str] = set()
        self._waiting: dict[str, list[CallView]] = {}
        self._known: dict[str, CallView] = {}

    def say(
        self, role: Any, pieces: Iterable[Piece], place: Place, tags: Iterable[str] = ()
    ) -> Step:
        """Begin a step."""
        name = role if isinstance(role, str) else "" if role is None else safe_repr(role)
        style, title = STYLES.get(name, ("other", f"Role: {name[:100]}" if name else "No role"))
        step = Step(f"step-{len(self.steps) + 1}", self._spell(place), number=len(self.steps) + 1)
        step.role, step.style, step.title = name, style, title
        step.pieces.extend(pieces)
        step.tags.extend(tags)
        self.steps.append(step)
        self.places.setdefault(place, step)
        return step

    def answering(self, place: Place) -> Step:
        """The step of an answer that goes on, or a new one: for an API whose answers are single
        items.
        """
        last = self.steps[-1] if self.steps else None
        if (
            last is None
            or last.style != "assistant"
            or last.strays
            or any(call.results for call in last.calls)
        ):
            return self.say("assistant", (), place)
        self.places.setdefault(place, last)
        self.extend(last, place)
        return last

    def extend(self, step: Step, place: Place) -> None:
        """`place` is shown in `step`, too."""
        self.places.setdefault(place, step)
        first = step.place.partition(" to ")[0]
        spelled = self._spell(place)
        if spelled != first:
            step.place = f"{first} to {spelled}"

    def call(
        self,
        step: Step,
        call_id: Any,
        name: Any,
        arguments: str,
        place: Place,
        kind: str = "function",
    ) -> CallView:
        """Add a call to a step."""
        value = text_value(arguments, self.limit, json_expected=kind == "function")
        view = CallView(self._anchor(place), self._spell(place))
        view.call_id, view.name, view.kind = _text(call_id), _text(name), kind
        view.arguments, view.asked = value, arguments
        step.calls.append(view)
        self._show(place, view)
        if view.call_id:
            self._waiting.setdefault(view.call_id, []).append(view)
            self._known[view.call_id] = view
        return view

    def answer(
        self,
        call_id: Any,
        content: str | list[Piece],
        place: Place,
        status: ResultStatus | None = None,
    ) -> ResultView:
        """Add a result: to its call if it follows that directly, else by itself."""
        view = ResultView(self._anchor(place), self._spell(place), call_id=_text(call_id))
        if isinstance(content, str):
            view.value = text_value(content, self.limit)
        else:
            view.pieces = tuple(content)
        rejected = isinstance(content, str) and content.startswith(REJECTION_PREFIX)
        view.status = "rejected" if rejected and status in (None, "error") else status or "ok"
        self._show(place, view)
        last = self.steps[-1] if self.steps else None
        waiting = self._waiting.get(view.call_id) if view.call_id else None
        if waiting:
            call = waiting.pop(0)
            view.call = call
            if last is not None and any(call is other for other in last.calls):
                call.results.append(view)
                self.extend(last, place[:1])
                return view
            call.elsewhere = view
            view.astray = LATE
        elif not view.call_id:
            view.astray = NO_ID
        else:
            view.call = self._known.get(view.call_id)
            view.astray = UNKNOWN if view.call is None else REPEATED
        if last is None or not (last.calls or last.strays):
            last = self.say("tool", (), place[:1])
        last.strays.append(view)
        self.extend(last, place[:1])
        return view

    def calls(self) -> list[CallView]:
        """Every call, in order."""
        return [call for step in self.steps for call in step.calls]

    def _anchor(self, place: Place) -> str:
        # Repeated places don't come from the readers, but an id that is there twice would break
        # every link to it.
        anchor = "at-" + "-".join([str(part) for part in place])
        if anchor in self._anchors:
            anchor = f"{anchor}-again-{len(self._anchors)}"
        self._anchors.add(anchor)
        return anchor

    def _show(self, place: Place, view: Noted) -> None:
        """A note about `place` is about `view`: of a step and what is in it, the latter."""
        if place not in self.places or isinstance(self.places[place], Step):
            self.places[place] = view


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else safe_repr(value)[:200]
