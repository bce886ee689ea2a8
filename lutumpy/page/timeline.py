"""The steps of a conversation, collected while a reader walks it: who said what, and which result
belongs to which call.

Histories are taken as they are. A result in the wrong place is shown in that place, and both it and
its call say so.
"""

# What is hard: a page must show broken histories as they are, and most are broken because calls
# and results don't match. Ids may be missing, repeated, or known only from a call much later.
#
# So nothing is sorted or paired afterwards. The reader goes through the source once, in order, and
# calls `add_step`, `add_call` and `add_result`. The timeline remembers two things about ids:
#
#   _waiting   id -> the calls with this id that have no result yet, oldest first
#   _known     id -> the last call with this id, answered or not
#
# They decide where a result goes:
#
#   its id is          the last step        the result is shown     `astray`
#   ---------------------------------------------------------------------------
#   of a waiting call  holds the call       with the call           ""
#   of a waiting call  is another one       by itself, linked       LATE
#   of a known call    (any)                by itself, linked       REPEATED
#   of no call         (any)                by itself               UNKNOWN
#   missing            (any)                by itself               NO_ID
#
# "By itself" means in the `strays` of the last step when that has calls or strays already, else in
# a new step of the role `tool`.
#
# Several calls with one id are answered in their order. Providers that number calls anew in every
# turn write such histories, and they are valid, so the queue comes before the test for REPEATED.

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from lutumpy.core.items import REJECTION_PREFIX
from lutumpy.models import ResultStatus
from lutumpy.page.model import STYLES, CallView, Noted, Piece, Place, ResultView, Step
from lutumpy.page.text import text_value
from lutumpy.plain.safe_text import safe_repr

__all__ = ["Timeline"]

# Shown beside a result that stands by itself.
NO_ID = "This result does not name a call."
UNKNOWN = "No call before it has this id."
REPEATED = "The call with this id has a result already."
LATE = "It does not follow its call directly."
PROMISED = "It came later than its turn, as the call had promised."


class Timeline:
    """The steps so far.

    Attributes:
        steps: In the order of the conversation.
        places: What is shown for each place of the source.
        limit: Characters of one text.
        size: How many messages the source has.
    """

    def __init__(self, write_place: Callable[[Place], str], limit: int) -> None:
        self.steps: list[Step] = []
        self.places: dict[Place, Noted] = {}
        self.limit: int = limit
        self.size: int = 0
        self._write_place = write_place
        self._anchors: set[str] = set()
        self._waiting: dict[str, list[CallView]] = {}
        self._known: dict[str, CallView] = {}

    def add_step(
        self, role: Any, pieces: Iterable[Piece], place: Place, tags: Iterable[str] = ()
    ) -> Step:
        """Begin a step: a message of `role`, with its text and tags.

        A role that isn't a text, or that the page doesn't know, is shown as it is.
        """
        name = _label_text(role)
        unknown = f"Role: {name[:100]}" if name else "No role"
        style, title = STYLES.get(name, ("other", unknown))
        step = Step(
            f"step-{len(self.steps) + 1}", self._write_place(place), number=len(self.steps) + 1
        )
        step.role, step.style, step.title = name, style, title
        step.pieces.extend(pieces)
        step.tags.extend(tags)
        self.steps.append(step)
        self.places.setdefault(place, step)
        return step

    def continue_answer(self, place: Place) -> Step:
        """The step of the answer that `place` belongs to, begun here if need be.

        For APIs that write one answer as several items in a row. An answer ends with its first
        result: what the model writes afterwards is the next one.
        """
        last = self.steps[-1] if self.steps else None
        if (
            last is None
            or last.style != "assistant"
            or last.strays
            or any(call.results for call in last.calls)
        ):
            return self.add_step("assistant", (), place)
        self.places.setdefault(place, last)
        self.extend_step(last, place)
        return last

    def extend_step(self, step: Step, place: Place) -> None:
        """Show `place` in `step`, too, and widen what the step says of where it is."""
        self.places.setdefault(place, step)
        first = step.place.partition(" to ")[0]
        spelled = self._write_place(place)
        if spelled != first:
            step.place = f"{first} to {spelled}"

    def add_call(
        self,
        step: Step,
        call_id: Any,
        name: Any,
        arguments: str,
        place: Place,
        kind: str = "function",
    ) -> CallView:
        """Add a call to a step; it waits for a result if it has an id."""
        value = text_value(arguments, self.limit, json_expected=kind == "function")
        view = CallView(self._make_anchor(place), self._write_place(place))
        view.call_id, view.name, view.kind = _label_text(call_id), _label_text(name), kind
        view.arguments, view.asked = value, arguments
        step.calls.append(view)
        self._register(place, view)
        if view.call_id:
            self._waiting.setdefault(view.call_id, []).append(view)
            self._known[view.call_id] = view
        return view

    def add_result(
        self,
        call_id: Any,
        content: str | list[Piece],
        place: Place,
        status: ResultStatus | None = None,
    ) -> ResultView:
        """Add a result: to its call if it directly follows that, else by itself (see the table)."""
        view = ResultView(
            self._make_anchor(place), self._write_place(place), call_id=_label_text(call_id)
        )
        if isinstance(content, str):
            view.value = text_value(content, self.limit)
        else:
            view.pieces = tuple(content)
        # A rejection goes to the provider as an error or as plain text; its first words tell.
        rejected = isinstance(content, str) and content.startswith(REJECTION_PREFIX)
        if rejected and status in (None, "error"):
            view.status = "rejected"
        else:
            view.status = status or "ok"
        self._register(place, view)
        last = self.steps[-1] if self.steps else None
        waiting = self._waiting.get(view.call_id) if view.call_id else None
        if waiting:
            call = waiting.pop(0)
            view.call = call
            if last is not None and any(call is other for other in last.calls):
                call.results.append(view)
                self.extend_step(last, place[:1])
                return view
            call.elsewhere = view
            view.astray = LATE
        elif not view.call_id:
            view.astray = NO_ID
        else:
            view.call = self._known.get(view.call_id)
            view.astray = UNKNOWN if view.call is None else REPEATED
        if last is None or not (last.calls or last.strays):
            last = self.add_step("tool", (), place[:1])
        last.strays.append(view)
        self.extend_step(last, place[:1])
        return view

    def add_late(
        self, call_id: str, content: str | list[Piece], place: Place, status: ResultStatus
    ) -> ResultView:
        """Add the late result of a call in a step of its own; both link to each other."""
        view = ResultView(self._make_anchor((*place, 0)), self._write_place(place), call_id=call_id)
        if isinstance(content, str):
            view.value = text_value(content, self.limit)
        else:
            view.pieces = tuple(content)
        view.status, view.astray = status, PROMISED
        view.call = self._known.get(call_id)
        if view.call is not None:
            view.call.elsewhere = view
        self.add_step("tool", (), place).strays.append(view)
        return view

    def calls(self) -> list[CallView]:
        """Every call, in order."""
        return [call for step in self.steps for call in step.calls]

    def _make_anchor(self, place: Place) -> str:
        # The readers never give a place twice. If one did, two elements with one id would break
        # every link to them.
        anchor = "at-" + "-".join([str(part) for part in place])
        if anchor in self._anchors:
            anchor = f"{anchor}-again-{len(self._anchors)}"
        self._anchors.add(anchor)
        return anchor

    def _register(self, place: Place, view: Noted) -> None:
        """Let notes about `place` go to `view`; what is inside a step wins over the step."""
        if place not in self.places or isinstance(self.places[place], Step):
            self.places[place] = view


def _label_text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else safe_repr(value)[:200]
