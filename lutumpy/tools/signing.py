"""What tells that a plan or a ticket was not changed since it was written: a digest, and a
signature.

The digest notices accidents; anybody can compute it. The signature proves that the holder of a key
wrote it (rules P15, LR14). Both are of its canonical JSON, so that a store may spell it otherwise.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any

from lutumpy.errors import PlanError
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass

__all__ = ["Signer", "check_digest", "check_signature", "seal"]

ALGORITHM = "HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Signer:
    """A key that plans and tickets are signed with.

    Attributes:
        key: Its id, which the signature names. Keep ids apart, so that keys can be replaced.
        secret: The key itself: random bytes, 32 of them or more; shown nowhere.

    Raises:
        TypeError: the id is not text, or the secret not bytes. `ValueError` where one is empty.
    """

    key: str
    secret: bytes = field(repr=False)

    def __post_init__(self) -> None:
        key: Any = self.key
        secret: Any = self.secret
        if not isinstance(key, str) or not isinstance(secret, bytes):
            raise TypeError(
                f"a signer has an id of text and a secret of bytes, not {type(key).__name__} and "
                f"{type(secret).__name__}"
            )
        if not key or not secret:
            raise ValueError("the id and the secret of a signer can't be empty")


def seal(dump: dict[str, Any], signer: Signer | None) -> None:
    """Add the digest of a plan or a ticket, and its signature."""
    dump["digest"] = _digest_of(_canonical(dump))
    if signer is not None:
        value = _sign(_canonical(dump), signer.secret)
        dump["signature"] = {"alg": ALGORITHM, "key": signer.key, "value": value}


def check_signature(dump: Mapping[str, Any], keys: Mapping[str, bytes], what: str = "plan") -> None:
    """Raise `PlanError` unless one of the keys has signed the plan, or `what` it is, as it is."""
    signature = dump.get("signature")
    if not isinstance(signature, Mapping):
        raise PlanError(
            "unsigned",
            f"the {what} is not signed, and a signature is asked for; nothing was loaded",
        )
    key = signature.get("key")
    secret = keys.get(key) if isinstance(key, str) else None
    if secret is None or signature.get("alg") != ALGORITHM:
        raise PlanError(
            "unsigned",
            f"the {what} is signed with the key {safe_repr(key)} and "
            f"{safe_repr(signature.get('alg'))}; known are the "
            f"keys {', '.join(map(repr, keys)) or 'none'} with {ALGORITHM}; nothing was loaded",
        )
    value = signature.get("value")
    content = {name: dump[name] for name in dump if name != "signature"}
    expected = _sign(_check_canonical(content, what), secret)
    # What else is in the signature is signed by nobody, so nothing else may.
    if len(signature) != 3 or not isinstance(value, str) or not _equal(value, expected):
        raise PlanError(
            "tampered",
            f"the {what} is not the one that the key {key!r} has signed; nothing was loaded",
        )


def check_digest(dump: Mapping[str, Any], what: str = "plan") -> None:
    """Raise `PlanError` unless the plan, or `what` it is, has the digest of what it says."""
    content = {name: dump[name] for name in dump if name not in ("digest", "signature")}
    expected = _digest_of(_check_canonical(content, what))
    digest = dump.get("digest")
    if not isinstance(digest, str) or not _equal(digest, expected):
        raise PlanError(
            "tampered", f"the {what} was changed after it was written; nothing was loaded"
        )


def _digest_of(canonical: bytes) -> str:
    return f"sha256:{hashlib.sha256(canonical).hexdigest()}"


def _sign(canonical: bytes, secret: bytes) -> str:
    return hmac.new(secret, canonical, "sha256").hexdigest()


def _equal(found: str, expected: str) -> bool:
    return hmac.compare_digest(found.encode("utf-8", "replace"), expected.encode())


def _canonical(content: Mapping[str, Any]) -> bytes:
    """One form for all spellings of the same JSON; 1.0 and 1 are the same number.

    Raises as `json_values.canonical` does.
    """
    return json_values.canonical(content).encode()


def _check_canonical(content: Mapping[str, Any], what: str) -> bytes:
    """As `_canonical`, of what a stranger wrote; `PlanError` where that is no JSON."""
    try:
        return _canonical(content)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        raise PlanError("format", f"the {what} is not JSON: {error}; nothing was loaded") from error


def to_json(data: Any) -> Any:
    """The JSON value of a dump in any form; raises `PlanError` for text that isn't JSON."""
    if not isinstance(data, (str, bytes)):
        return data
    try:
        return json.loads(data, parse_constant=json_values.refuse_constant)
    except (ValueError, RecursionError) as error:
        raise PlanError("format", f"the plan is not JSON: {error}; nothing was loaded") from error
