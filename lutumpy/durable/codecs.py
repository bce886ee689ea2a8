"""What a store does to content before it is written, and after it was read: encryption, mostly."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import Any, Protocol

from lutumpy.durable.columns import CODED, Content, Raw, storable
from lutumpy.errors import StoreError

__all__ = ["Codec", "as_stored", "decode_rows"]


class Codec(Protocol):
    """Encodes what conversations consist of: items, records, messages, events, the errors of runs.

    Ids, digests, numbers and moments are not encoded: a store looks for them. A codec is called
    from any thread, for several values at once. What has no mark of a codec is read as it is, so a
    store may get one later.
    """

    def encode(self, content: bytes) -> bytes:
        """What is written in place of these bytes of UTF-8. It says itself with which key."""
        ...

    def decode(self, data: bytes) -> bytes:
        """The content that `encode` was given, with whichever key that was.

        Raises:
            Exception: it is nothing that this codec has encoded; `StoreError` is made of it.
        """
        ...


def as_stored(value: Any, codec: Codec | None) -> Any:
    """A parameter as it is handed to a database."""
    if type(value) is Raw:
        return str(value)
    if type(value) is not Content:
        return storable(value)
    if codec is None:
        return str(value)
    return CODED + b64encode(codec.encode(value.encode())).decode("ascii")


def decode_rows(rows: Sequence[tuple[Any, ...]], codec: Codec) -> list[tuple[Any, ...]]:
    """Rows with their content decoded.

    Raises:
        StoreError: `codec`: the codec can't decode one.
    """
    return [tuple([_decode(value, codec) for value in row]) for row in rows]


def _decode(value: Any, codec: Codec) -> Any:
    if not isinstance(value, str) or not value.startswith(CODED):
        return value
    try:
        return codec.decode(b64decode(value[len(CODED) :], validate=True)).decode()
    except Exception as error:
        raise StoreError(
            "codec", f"a row of the store can't be decoded: {type(error).__name__}"
        ) from error
