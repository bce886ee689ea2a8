"""What a request for a client of the user's own said, as data: what is dumped, copied or pickled
between `request` and `read` has it, so that the answer gets its record there too (rule PB1).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from lutumpy.core.dump_checks import expect
from lutumpy.core.prefix import DroppedReasoning, LeftOut, PrefixReport
from lutumpy.core.turn_origin import TurnOrigin
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import encode
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy.core.items import AssistantTurn
    from lutumpy.core.tool_specs import ToolOffering
    from lutumpy.core.turn_settings import TurnSettings

    # A name for checkers alone: protocols are slow to build.

    class RequestNote(Protocol):
        """What a request said, for the turn that answers it."""

        @property
        def api(self) -> str: ...

        def stamp(self, turn: AssistantTurn) -> AssistantTurn:
            """The same turn with the record of its request."""
            ...

        def for_fork(self, sent_requests: dict[Any, Any]) -> RequestNote:
            """The same note for a fork of the transcript, with the fork's `sent_requests`."""
            ...

        def as_data(self) -> NotedRequest:
            """The same note as a value, which can be dumped and pickled."""
            ...


__all__ = [
    "NotedRequest",
    "dropped_by_provider",
    "dump_noted",
    "is_same_offer",
    "load_noted",
    "offer_digest",
]

_CACHE_WORDS = ("begins", "restarts", "unknown")
_BY = ("lutumpy", "provider")
_TEXTS = ("appended", "changed", "waiting")
_FIELDS = frozenset({"api", "offer", "host", "model", "prefix", "seal", "settings", "turns"})
_REPORT_FIELDS = frozenset({*_TEXTS, "dropped", "left_out", "cache", "unverified"})


@dataclass(frozen=True, slots=True)
class NotedRequest:
    """What a request said, for the turn that answers it.

    Attributes:
        api: The API that it goes to.
        host: The authority of the address that it goes to, where known.
        model: The model that is asked, where known.
        settings: What it says anew; `None` for nothing.
        prefix: The digest of all that it sends before the answer, where reasoning is bound to that.
        seal: What shows that an answer holds such reasoning, where the turn doesn't say it is
            signed.
        report: What it changed.
        turns: The turns whose reasoning it sends, by the index of their entry or by ids of items:
            as the provider names what it left out.
    """

    api: str
    host: str | None
    model: str | None
    settings: TurnSettings | None
    prefix: str | None
    seal: str
    report: PrefixReport
    turns: Mapping[int | str, int]

    def stamp(self, turn: AssistantTurn) -> AssistantTurn:
        """The turn with the record of its request."""
        is_bound = self.seal.encode() in turn.native if self.seal else turn.signed
        prefix = self.prefix if is_bound else None
        report = self.report
        if turn.input_transformations:
            dropped = dropped_by_provider(turn.input_transformations, self.turns)
            report = replace(report, dropped=(*report.dropped, *dropped))
        origin = TurnOrigin(self.api, self.host, self.model or turn.model, prefix)
        return replace(turn, origin=origin, settings=self.settings, prefix=report)

    def for_fork(self, sent_requests: dict[Any, Any]) -> NotedRequest:
        """It is the same for a fork of the transcript."""
        return self

    def as_data(self) -> NotedRequest:
        """It is that already."""
        return self


def dropped_by_provider(
    entries: Sequence[Mapping[str, Any]], turns: Mapping[int | str, int]
) -> list[DroppedReasoning]:
    """What the provider says that it left out (rule PB11).

    Args:
        entries: Its words, as they came.
        turns: The turns whose reasoning the request sends, by entry or by ids of items.
    """
    found: list[DroppedReasoning] = []
    for entry in entries:
        reason, path, place = entry.get("reason"), entry.get("path"), entry.get("id")
        if not isinstance(place, str):
            # As `messages.4.content.0`.
            pieces = path.split(".") if isinstance(path, str) else []
            is_entry = len(pieces) > 1 and pieces[1].isdecimal() and len(pieces[1]) < 20
            place = int(pieces[1]) if is_entry else -1
        word = reason if isinstance(reason, str) else ""
        found.append(DroppedReasoning(turns.get(place, -1), word, "provider"))
    return found


def offer_digest(offering: ToolOffering | None) -> str | None:
    """What tells an offer among all others, in any process: equal ones have the same. `None` where
    it has no tools. What is deferred makes no difference.
    """
    if offering is None or not offering.specs:
        return None
    import hashlib  # rare, and slow to import

    from lutumpy.core.dump_settings import dump_spec

    asked = offering.deferring()
    lists = [asked.specs, asked.stable_specs, asked.deferred]
    specs = [None if specs is None else [dump_spec(spec) for spec in specs] for specs in lists]
    rest = [asked.mode, asked.forced, asked.parallel, asked.finder]
    return hashlib.sha256(encode([*rest, *specs])).hexdigest()


def is_same_offer(asked: ToolOffering | str | None, offering: ToolOffering | None) -> bool:
    """Whether an offer is the one that a request was made with, or equal but for what is deferred.

    Args:
        asked: The offer of the request, or the digest of that.
        offering: The offer.
    """
    if isinstance(asked, str):
        return asked == offer_digest(offering)
    if asked is None or not asked.specs or offering is None or not offering.specs:
        return not (asked and asked.specs) and not (offering and offering.specs)
    return asked.deferring().equals(offering.deferring())


def dump_noted(offer: str | None, noted: NotedRequest) -> dict[str, Any]:
    """A noted request as JSON values; what it doesn't say is left out.

    Args:
        offer: The digest of its offer.
        noted: The request.
    """
    from lutumpy.core.dump_settings import dump_settings

    fields = {
        "offer": offer,
        "host": noted.host,
        "model": noted.model,
        "prefix": noted.prefix,
        "seal": noted.seal or None,
        "settings": None if noted.settings is None else dump_settings(noted.settings),
        "turns": [[place, turn] for place, turn in noted.turns.items()] or None,
        "report": _dump_report(noted.report) or None,
    }
    return {
        "api": noted.api,
        **{name: value for name, value in fields.items() if value is not None},
    }


def _dump_report(report: PrefixReport) -> dict[str, Any]:
    lists: dict[str, list[Any]] = {name: list(getattr(report, name)) for name in _TEXTS}
    lists["dropped"] = [[gone.turn, gone.reason, gone.by] for gone in report.dropped]
    lists["left_out"] = [[left.turn, left.what, left.why] for left in report.left_out]
    lists["unverified"] = list(report.unverified)
    return {"cache": report.cache, **{name: found for name, found in lists.items() if found}}


def load_noted(data: Any, turns: int) -> tuple[str | None, NotedRequest]:
    """The digest of a request's offer, and the request.

    Args:
        data: What `dump_noted` made.
        turns: How many turns the transcript has.

    Raises:
        TranscriptError: the data isn't that. What has another shape may raise one of
            `dump_items.WRONG`.
    """
    from lutumpy.core.dump_settings import load_settings

    fields: dict[str, Any] = dict(expect(data, dict, "it"))
    report = _load_report(fields.pop("report", {"cache": "unknown"}), turns)
    if unknown := sorted(fields.keys() - _FIELDS):
        raise TranscriptError(f"unknown fields: {', '.join(unknown)}")
    for name in ("offer", "host", "model", "prefix", "seal"):
        if name in fields:
            expect(fields[name], str, name)
    places: dict[int | str, int] = {}
    for place, turn in expect(fields.get("turns", []), list, "turns"):
        if type(place) is not int:
            expect(place, str, "the place of a turn")
        places[place] = _check_turn(turn, turns)
    settings = fields.get("settings")
    noted = NotedRequest(
        expect(fields.get("api"), str, "api"),
        fields.get("host"),
        fields.get("model"),
        None if settings is None else load_settings(settings),
        fields.get("prefix"),
        fields.get("seal", ""),
        report,
        places,
    )
    return fields.get("offer"), noted


def _load_report(data: Any, turns: int) -> PrefixReport:
    fields = expect(data, dict, "report")
    if unknown := sorted(fields.keys() - _REPORT_FIELDS):
        raise TranscriptError(f"report has unknown fields: {', '.join(unknown)}")
    if fields.get("cache") not in _CACHE_WORDS:
        raise TranscriptError(f"report.cache is {fields.get('cache')!r:.100}")
    lists = {name: expect(found, list, name) for name, found in fields.items() if name != "cache"}
    texts = {
        name: tuple([expect(text, str, f"an entry of {name}") for text in lists.get(name, [])])
        for name in _TEXTS
    }
    dropped: list[DroppedReasoning] = []
    for turn, reason, by in lists.get("dropped", []):
        if by not in _BY:
            raise TranscriptError(f"reasoning was dropped by {by!r:.100}")
        _check_turn(turn, turns, least=-1 if by == "provider" else 0)
        dropped.append(DroppedReasoning(turn, expect(reason, str, "a reason"), by))
    left_out = [
        LeftOut(_check_turn(turn, turns), expect(what, str, "what"), expect(why, str, "why"))
        for turn, what, why in lists.get("left_out", [])
    ]
    unverified = tuple([_check_turn(turn, turns) for turn in lists.get("unverified", [])])
    return PrefixReport(
        dropped=tuple(dropped),
        left_out=tuple(left_out),
        cache=fields["cache"],
        unverified=unverified,
        **texts,
    )


def _check_turn(turn: Any, turns: int, least: int = 0) -> int:
    if type(turn) is not int or not least <= turn < turns:
        raise TranscriptError(f"it names the turn {turn!r:.100} of {turns}")
    return turn
