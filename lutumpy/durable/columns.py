"""What is in a column of a database, and what it means: texts, JSON, keys and moments."""

# Three things are done to a text on its way into a column:
#
#   content  JSON that conversations consist of. A store with a codec encodes it (`codecs.py`); the
#            driver does that, so no operation knows of it
#   keys     ids of conversations, calls and messages. An index of Postgres holds 2.7 kB in a row,
#            and proxies make ids of many thousand characters: a long one is replaced by its
#            beginning and its digest, and the column `long_name` beside has the whole of it
#   others   NUL and halves of surrogate pairs are escaped, as a database can't hold them
#
# What is read back may be anything: somebody wrote to the database by hand, or a disk failed. So
# each reader here raises a `StoreError` of the kind `damaged` where it finds something else.

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from lutumpy.durable.types import Counts
from lutumpy.errors import StoreError
from lutumpy.execution import UnresolvedCall

if TYPE_CHECKING:
    pass

__all__ = [
    "CODED",
    "LONGEST_KEY",
    "Content",
    "Raw",
    "damaged",
    "dump_counts",
    "key_of",
    "load_counts",
    "long_name_of",
    "moment",
    "moment_or_none",
    "name_of",
    "original",
    "read",
    "read_call",
    "read_mapping",
    "read_plan",
    "storable",
    "whole",
    "write",
]

LONGEST_KEY = 200
"""How many characters a key has at most: two of them, and a number, fit into a row of an index even
where each character is escaped."""

CODED = "coded:"
"""What a text that a codec has encoded begins with."""

_ESCAPED = "escaped:"
_HEAD = 100
_SHORTENED = re.compile(r".{100}#sha256:[0-9a-f]{64}\Z", re.DOTALL)
_LENGTH_SHORTENED = _HEAD + len("#sha256:") + 64


# --- content -----------------------------------------------------------------------------------


class Content(str):
    """JSON text of a conversation, which a store's codec encodes."""

    __slots__ = ()


class Raw(str):
    """A text as it stands in a column, escaped or not."""

    __slots__ = ()


def write(value: Any) -> Content:
    """A value as content.

    Raises:
        ValueError: it isn't JSON; likewise `TypeError`.
    """
    return Content(json.dumps(value, separators=(",", ":"), allow_nan=False))


def read(text: Any) -> Any:
    """The value of a column with JSON; `StoreError` where it holds something else."""
    try:
        return json.loads(text)
    except (ValueError, TypeError, RecursionError) as error:
        if isinstance(text, str) and text.startswith(CODED):
            raise StoreError(
                "codec", "a row of the store was written with a codec, and this store has none"
            ) from error
        raise StoreError("damaged", f"a row of the store is not JSON: {error}") from error


def damaged(what: str, error: Exception | None = None) -> StoreError:
    """The error for a column that holds something else than `what`."""
    why = "" if error is None else f": {error!r}"
    return StoreError("damaged", f"a row of the store holds no {what}{why}")


def _reading(what: str, make: Callable[[], Any]) -> Any:
    """What `make` gives; `StoreError` where that can't be made of a column."""
    try:
        return make()
    except StoreError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, OSError) as error:
        raise damaged(what, error) from error


def read_mapping(text: Any, what: str, *names: str) -> Mapping[str, Any]:
    """The mapping of a column, which has these texts at least."""
    value = read(text)
    if not isinstance(value, dict):
        raise damaged(what)
    for name in names:
        if not isinstance(value.get(name), str):
            raise damaged(f"{what} with a {name}")
    return value


def read_plan(text: Any) -> Mapping[str, Any]:
    """The plan of a column: what stores look at in it is there."""
    plan = read_mapping(text, "plan", "digest")
    calls = plan.get("calls")
    is_whole = isinstance(calls, list) and all(
        isinstance(call, dict)
        and isinstance(call.get("call_id"), str)
        and isinstance(call.get("standing"), str)
        for call in calls
    )
    if not is_whole:
        raise damaged("calls of a plan")
    return plan


def read_call(text: Any) -> UnresolvedCall:
    """The call of unknown outcome in a column."""
    value = read(text)
    call: UnresolvedCall = _reading("call", lambda: UnresolvedCall.load(value))
    return call


def dump_counts(counts: Counts) -> Content:
    failures = [list(failure) for failure in counts.failures]
    return write(
        {
            "rounds": counts.rounds,
            "tokens": counts.tokens,
            "failures": failures,
            "value_retries": counts.value_retries,
        }
    )


def load_counts(text: Any) -> Counts:
    data = read(text)

    def make() -> Counts:
        failures: Sequence[Sequence[Any]] = data["failures"]
        found = tuple([(tool, arguments, whole(count)) for tool, arguments, count in failures])
        # Rows of earlier releases know no retries.
        retries = whole(data.get("value_retries", 0))
        return Counts(whole(data["rounds"]), whole(data["tokens"]), found, retries)

    counts: Counts = _reading("counts of a run", make)
    return counts


# --- numbers and moments -----------------------------------------------------------------------


def whole(value: Any) -> int:
    """A number of a column, which SQLite lets be anything."""
    if type(value) is not int:
        raise damaged("whole number")
    return value


def moment(seconds: Any) -> datetime:
    """The moment of a column with seconds since 1970."""
    found: datetime = _reading("moment", lambda: datetime.fromtimestamp(seconds, timezone.utc))
    return found


def moment_or_none(seconds: Any) -> datetime | None:
    return None if seconds is None else moment(seconds)


# --- keys and texts ----------------------------------------------------------------------------


def key_of(text: str) -> str:
    """A text as a column of an index holds it: itself, or its beginning and its digest.

    No two texts have one key: a short one that looks like the key of a long one is replaced, too.
    """
    looks_short = len(text) == _LENGTH_SHORTENED and _SHORTENED.match(text) is not None
    if len(text) <= LONGEST_KEY and not looks_short:
        return text
    digest = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{text[:_HEAD]}#sha256:{digest}"


def long_name_of(text: str, key: str) -> str | None:
    """What the column `long_name` beside a key holds: the text, where the key isn't it."""
    return None if key == text else text


def name_of(key: Any, long_name: Any) -> str:
    """The text of which a key was made."""
    return original(key if long_name is None else long_name)


def storable(value: Any) -> Any:
    """A parameter as every database takes it: a text without NUL and halves of surrogate pairs.

    Programs and models choose ids, and a model may write anything.
    """
    if not isinstance(value, str) or _is_plain(value):
        return value
    return _ESCAPED + json.dumps(value)


def _is_plain(text: str) -> bool:
    if "\0" in text or text.startswith((_ESCAPED, CODED)):
        return False
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def original(text: Any) -> str:
    """The text that `storable` escaped; the reverse of it."""
    if not isinstance(text, str):
        raise damaged("text")
    if not text.startswith(_ESCAPED):
        return text
    found = read(text[len(_ESCAPED) :])
    if not isinstance(found, str):
        raise damaged("text")
    return found
