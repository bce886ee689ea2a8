"""A session as JSON values and back, for `Session.dump()` and `Session.load()` (rule R4); `VERSION`
names the format.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from lutumpy.core.dump_checks import WRONG, expect
from lutumpy.core.dump_items import dump_item, dump_usage, load_item, load_usage
from lutumpy.core.items import AssistantTurn, Message, ToolResults, Usage
from lutumpy.core.transcript import Transcript
from lutumpy.costs import Unsettled
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import explain_misfit, safe_repr

if TYPE_CHECKING:
    from lutumpy.core.noted_request import NotedRequest

FORMAT = "lutumpy.session"
VERSION = 4
READABLE = (1, 2, 3, 4)
"""Versions that can be loaded. Version 2 added the original entries of items (`verbatim`), version
3 the origins of turns and what was in force (`origin`, `settings`), version 4 calls whose results
come later (`promise`, `late`, `open_calls`)."""

_UNSETTLED_NAMES = ("api", "model", "response_id", "request_id")


class Loaded(NamedTuple):
    """What a dump holds.

    Attributes:
        transcript: The transcript.
        usage: What it cost.
        unsettled: The requests whose cost is unknown.
        refused: What was known to be refused of it; `None` in dumps of earlier releases.
        intact: Whether its items are as they were written.
    """

    transcript: Transcript
    usage: Usage
    unsettled: tuple[Unsettled, ...]
    refused: list[list[str]] | None
    intact: bool


def dump_session(
    transcript: Transcript, usage: Usage, unsettled: tuple[Unsettled, ...], refused: list[list[str]]
) -> dict[str, Any]:
    """A session as JSON values.

    Args:
        transcript: Its transcript.
        usage: What it cost.
        unsettled: The requests whose cost is unknown.
        refused: What the providers are known to refuse of it as it stands.
    """
    dumped = dump_transcript(transcript)
    return {
        "format": FORMAT,
        "version": VERSION,
        "usage": dump_usage(usage),
        "unsettled": [dump_unsettled(request) for request in unsettled],
        **dumped,
        "refused": refused,
        "digest": _digest(dumped["items"], refused),
    }


def _digest(items: Any, refused: Any) -> str:
    """A digest of what the rules were asked about. It tells apart a dump that is as it was written
    from one that was edited; whoever wants to forge one can.
    """
    import hashlib  # slow to import

    return hashlib.sha256(json_values.as_written([items, refused]).encode()).hexdigest()


def load_session(data: Any) -> Loaded:
    """Read a dump, or its JSON text.

    Raises:
        TranscriptError: the data isn't a dump, or is one of a version that this release doesn't
            know.
    """
    if isinstance(data, (str, bytes)):
        try:
            # A text file written on Windows may begin with a byte order mark. In bytes `json`
            # accepts it.
            data = json.loads(data.removeprefix("\ufeff") if isinstance(data, str) else data)
        except (ValueError, RecursionError) as error:
            raise TranscriptError(f"the dump is not JSON: {error}; nothing was loaded") from error
    if not isinstance(data, Mapping):
        raise TranscriptError(
            f"a dump is a JSON object, not {type(data).__name__}; nothing was loaded"
        )
    version = data.get("version")
    if type(version) is not int or version not in READABLE:
        readable = " and ".join([str(known) for known in READABLE])
        raise TranscriptError(
            f"the dump has the version {safe_repr(version)}, this release reads {readable}; "
            "nothing was loaded"
        )
    if data.get("format", FORMAT) != FORMAT:
        raise TranscriptError(
            f"the dump has the format {safe_repr(data['format'])}, not {FORMAT!r}; "
            "nothing was loaded"
        )
    refused = data.get("refused")
    if refused is not None and not (isinstance(refused, list) and all(map(_is_pair, refused))):
        raise TranscriptError(
            "the dump is invalid: refused is not a list of pairs of text; nothing was loaded"
        )
    transcript = load_transcript(data)
    try:
        usage = load_usage(data.get("usage"))
        unsettled = load_unsettled(data.get("unsettled", []))
    except TranscriptError as error:
        raise TranscriptError(f"the dump is invalid: {error}; nothing was loaded") from error
    intact = refused is not None and data.get("digest") == _digest(data["items"], refused)
    return Loaded(transcript, usage, unsettled, refused, intact)


def _is_pair(value: Any) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(isinstance(entry, str) for entry in value)
    )


def dump_transcript(transcript: Transcript) -> dict[str, Any]:
    """The transcript as JSON values."""
    return {"items": [dump_item(item) for item in transcript], **transcript._beside_items()}


def load_transcript(data: Mapping[str, Any]) -> Transcript:
    """The transcript of a dump.

    Raises:
        TranscriptError: the data isn't a valid transcript; the message says which item is wrong.
    """
    # Items go through the methods that build any transcript, so that the same checks hold. A turn
    # with calls waits for the results that must follow it, since both are added together.
    transcript = Transcript()
    if "open_calls" in data:
        _restore_open_calls(transcript, data["open_calls"])
    items = data.get("items")
    if not isinstance(items, list):
        raise TranscriptError(
            f"the dump is invalid: items is {type(items).__name__}, not list; nothing was loaded"
        )
    pending: AssistantTurn | None = None
    for index, raw in enumerate(items):
        try:
            item = load_item(expect(raw, dict, f"items[{index}]"))
            if pending is not None:
                if not isinstance(item, ToolResults):
                    raise TranscriptError(
                        "the turn before has calls, and their results don't follow"
                    )
                _check_results(pending, item)
                transcript.append_turn(pending, item)
                pending = None
            elif isinstance(item, AssistantTurn):
                if any(call.answerable for call in item.calls):
                    pending = item
                else:
                    transcript.append_turn(item)
            elif isinstance(item, Message):
                if item.late is None:
                    transcript._append(item, asks_rules=False)
                else:
                    transcript.append_late((item,), counted=False)
            else:
                raise TranscriptError("results without a turn before them")
        except (TranscriptError, *WRONG) as error:
            what = explain_misfit(error)
            raise TranscriptError(
                f"items[{index}] of the dump is invalid: {what}; nothing was loaded"
            ) from error
    if pending is not None:
        raise TranscriptError(
            "the last turn of the dump has calls without results; nothing was loaded"
        )
    _restore_counts(transcript, data)
    return transcript


def _restore_open_calls(transcript: Transcript, data: Any) -> None:
    """Add the open calls whose rounds aren't among the items. Raises as `load_transcript`."""
    from lutumpy.core.dump_promises import load_open_calls

    try:
        transcript._keep_open(load_open_calls(data))
    except (TranscriptError, *WRONG) as error:
        raise TranscriptError(
            f"the dump is invalid: open_calls: {error}; nothing was loaded"
        ) from error


def _restore_counts(transcript: Transcript, data: Mapping[str, Any]) -> None:
    """Add what a dump says beside its items: failed calls, and which ephemerals were sent. Raises
    as `load_transcript`.
    """
    try:
        failures = _load_failures(expect(data.get("failures", []), list, "failures"))
        sent = expect(data.get("ephemerals_sent", 0), int, "ephemerals_sent")
        held = expect(data.get("held", False), bool, "held")
        count = sum([1 for item in transcript if isinstance(item, Message) and item.ephemeral])
        if not 0 <= sent <= count:
            raise TranscriptError(f"of {count} ephemerals {sent} were sent")
        # Some dumps say of none that they are held: a turn's record had taken all of them (PB14).
        transcript._restore(failures, sent, held and sent > 0)
        if "request" in data:
            transcript.note_request(*_load_note(data["request"], len(transcript.turns())))
    except (TranscriptError, *WRONG) as error:
        raise TranscriptError(f"the dump is invalid: {error}; nothing was loaded") from error


def _load_note(data: Any, turns: int) -> tuple[str | None, NotedRequest]:
    from lutumpy.core.noted_request import load_noted  # few dumps have one

    try:
        return load_noted(data, turns)
    except (TranscriptError, *WRONG) as error:
        raise TranscriptError(f"request: {explain_misfit(error)}") from error


def _load_failures(entries: list[Any]) -> dict[tuple[str, str], int]:
    failures: dict[tuple[str, str], int] = {}
    for name, arguments, count in entries:
        key = (
            expect(name, str, "a failure's tool"),
            expect(arguments, str, "a failure's arguments"),
        )
        if expect(count, int, "a failure's count") < 1 or key in failures:
            raise TranscriptError(f"failures of {name!r} are counted as {count}, or twice")
        failures[key] = count
    return failures


def _check_results(turn: AssistantTurn, results: ToolResults) -> None:
    """Check that each result has the tool and the kind of its call.

    Ids are compared when both are added.
    """
    calls = [call for call in turn.calls if call.answerable]
    for call, result in zip(calls, results.results, strict=False):
        if (call.name, call.kind) != (result.name, result.kind):
            raise TranscriptError(
                f"the result of call {call.id!r} is of another tool: "
                f"{result.name!r} ({result.kind})"
            )


def dump_unsettled(request: Unsettled) -> dict[str, Any]:
    """A request whose cost is unknown, as JSON values."""
    named = {name: getattr(request, name) for name in _UNSETTLED_NAMES}
    return {**named, "estimate": None if request.estimate is None else dump_usage(request.estimate)}


def load_unsettled(data: Any) -> tuple[Unsettled, ...]:
    """The requests of a dump whose cost is unknown.

    Raises `TranscriptError` if it isn't a list of them.
    """
    return tuple(
        [_load_request(entry, index) for index, entry in enumerate(expect(data, list, "unsettled"))]
    )


def _load_request(data: Any, index: int) -> Unsettled:
    where = f"unsettled[{index}]"
    fields = expect(data, dict, where)
    api, model, response_id, request_id = [
        None if fields.get(name) is None else expect(fields[name], str, f"{where}.{name}")
        for name in _UNSETTLED_NAMES
    ]
    estimate = fields.get("estimate")
    return Unsettled(
        api, model, response_id, request_id, None if estimate is None else load_usage(estimate)
    )
