"""A conversation of Messages made ready for one request, as its model takes it at its host."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from lutumpy.adapters.anthropic.carriers import Carriers, carriers_of
from lutumpy.adapters.anthropic.decode import API
from lutumpy.adapters.anthropic.encode import MessagesEncoder
from lutumpy.adapters.anthropic.original import content_of, kind_of
from lutumpy.adapters.destination import Destination, destination_of
from lutumpy.adapters.prepared import Prepared
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.core.items import Message, TextPart
from lutumpy.core.transcript import Transcript
from lutumpy.rules.anthropic import models as anthropic_models

__all__ = ["Dialect", "dialect_of", "encoder_of", "note_headers", "with_reminders_placed"]


class Dialect(NamedTuple):
    """What a model takes at a host, worked out once for all requests.

    Attributes:
        carriers: What may be said in the middle of a conversation.
        binds: Its reasoning is bound to what was sent before.
        needs_record: It takes no reasoning of models that bind none.
        prefill: Whether it takes the assistant's as the last message.
        headers: The beta names of each request.
        destination: Who gets the requests.
    """

    carriers: Carriers
    binds: bool
    needs_record: bool
    prefill: bool
    headers: tuple[str, ...]
    destination: Destination

    def key(self, as_blocks: bool) -> str:
        """Under which name a transcript keeps its encoded form."""
        flags = (*self.carriers, as_blocks, self.needs_record)
        return f"{API}:{''.join([str(int(flag)) for flag in flags])}{self.destination.key}"


@lru_cache(maxsize=256)
def dialect_of(model: str | None, host: str | None) -> tuple[Dialect, str, str]:
    """The dialect, and the keys of the encoded forms without and with blocks for texts.

    Where the host isn't known, it is taken for the vendor's; nothing is known of who can open what.
    """
    destination = destination_of(host, model)
    host = host or anthropic_models.HOST
    needs_record = anthropic_models.needs_record(model)
    is_vendor = host == anthropic_models.HOST
    dialect = Dialect(
        carriers_of(model, host),
        anthropic_models.binds_reasoning(model),
        needs_record,
        anthropic_models.takes_prefill(model),
        (anthropic_models.BINDING_CONTROLS,) if is_vendor and needs_record else (),
        destination,
    )
    # Nobody says whether a text equals its one block, so where that matters it is always one.
    return dialect, dialect.key(needs_record), dialect.key(True)


def encoder_of(
    transcript: Transcript,
    model: str | None,
    as_blocks: bool = False,
    host: str | None = None,
) -> MessagesEncoder:
    """The encoded form of a transcript, as a model takes it at a host; see `MessagesEncoder`."""
    dialect, plain, blocks = dialect_of(model, host)
    with_blocks = as_blocks or dialect.needs_record
    return transcript.encoded(
        blocks if as_blocks else plain,
        lambda: MessagesEncoder(
            dialect.carriers, with_blocks, dialect.needs_record, dialect.destination
        ),
    )


def with_reminders_placed(encoder: MessagesEncoder) -> MessagesEncoder:
    """The encoder, where texts for one turn may be at the end; else a copy that has them as a
    user's message, which leaves again (rule S4).

    They follow a message of the user's, or the result of a tool that the provider has run [DOC].
    """
    if encoder.last == "user" or not encoder.entries:
        return encoder
    blocks = content_of(encoder.entries[-1])
    if blocks and kind_of(blocks[-1]).endswith("_tool_result"):
        return encoder
    twin = encoder.copy()
    texts, twin.state.reminders = twin.state.reminders, []
    twin.reminds = False
    for text in texts:
        twin.add(Message("system", (TextPart(text),), ephemeral=True))
    return twin


def note_headers(
    prepared: Prepared[MessagesEncoder], record: RequestRecord, dialect: Dialect
) -> None:
    """Note the beta names that the request needs."""
    state = prepared.encoder.state
    headers = {**state.headers, **dict.fromkeys((*prepared.closing.headers, *dialect.headers))}
    if state.reminders:
        headers[anthropic_models.CLEAR_AT] = None
    record.headers = {"anthropic-beta": ",".join(headers)}
