"""The conversations in a cassette, as sessions."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lutumpy import LutumpyError, Session
from lutumpy.apis import Api, serving
from lutumpy.errors import CassetteError
from lutumpy.models import AssistantTurn, Transcript
from lutumpy.rules.shape import RequestShape
from lutumpy.testing.cassettes.answers import events_of
from lutumpy.testing.cassettes.file import Exchange, describe, read_exchanges
from lutumpy.testing.snapshots import transcript_snapshot

__all__ = ["sessions_of_cassette"]


def sessions_of_cassette(path: str | os.PathLike[str]) -> list[Session]:
    """The conversations of a cassette, in the order of their last requests.

    Raises:
        CassetteError: the file can't be read, or has no conversation.
        TranscriptError: a request isn't a valid history.
    """
    found: list[tuple[str, Transcript, Api, Exchange]] = []
    for exchange in read_exchanges(Path(path)):
        api = describe(exchange.sent).get("api")
        if api is None or not isinstance(exchange.sent.body, Mapping) or exchange.status >= 300:
            continue
        history = _history_of(api, exchange.sent.body)
        text = transcript_snapshot(history)
        # What this request goes on from is in it. Its messages may be spelled otherwise there, as
        # where a mark for a cache has moved on.
        found = [row for row in found if row[2] != api or not text.startswith(row[0])]
        found.append((text, history, api, exchange))
    if not found:
        raise CassetteError(f"{path} has no conversation")
    return [_with_answer(history, api, exchange) for _, history, api, exchange in found]


def _shape(api: Api) -> RequestShape:
    shape: RequestShape = serving(api, "rules").SHAPE
    return shape


def _history_of(api: Api, body: Mapping[str, Any]) -> Transcript:
    shape = _shape(api)
    keys = () if shape.system_key is None else (shape.system_key, *shape.other_system_keys)
    system = next((body[key] for key in keys if key in body), None)
    return Transcript.from_messages(api, body[shape.messages_key], system)


def _with_answer(history: Transcript, api: Api, exchange: Exchange) -> Session:
    turn = _turn_of(api, exchange)
    # What it calls was never answered, so that answer isn't part of the conversation.
    if turn is not None and not turn.calls:
        history.append_turn(turn)
    return Session(history)


def _turn_of(api: Api, exchange: Exchange) -> AssistantTurn | None:
    adapter = serving(api, "adapter")
    try:
        if exchange.chunks is None:
            whole: AssistantTurn = adapter.response(json.dumps(exchange.response))
            return whole
        decoder = adapter.stream_decoder()
        for event in events_of(exchange.response):
            decoder.feed(_bare(event))
        turn: AssistantTurn = decoder.finish()
        return turn
    except (LutumpyError, ValueError, TypeError):
        return None  # an answer that broke off


def _bare(event: Any) -> Any:
    """An event without the envelope of a frame."""
    if isinstance(event, Mapping) and isinstance(event.get("event"), str):
        return event["data"] if "data" in event else {event["event"]: event.get("payload")}
    return event
