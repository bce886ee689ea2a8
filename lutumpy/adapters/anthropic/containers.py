"""The container in which code that the provider ran for an answer was executed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from lutumpy.core.items import AssistantTurn
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

__all__ = ["Container", "container_of", "with_container_named"]


@dataclass(frozen=True, slots=True)
class Container:
    """Where the provider runs code; its files stay until it expires.

    Attributes:
        id: What a later request names it by: `extra={"container": container.id}`.
        expires_at: When it is gone, with its time zone; `None` if the answer didn't say.
    """

    id: str
    expires_at: datetime | None = None


def container_of(turn: AssistantTurn) -> Container | None:
    """The container that an answer of this API names, or `None`; anything odd counts as none."""
    # Most answers have none, and need not be decoded.
    if b'"container"' not in turn.residue:
        return None
    found: Any = json_values.decode(turn.residue).get("container")
    fields = found if isinstance(found, dict) else {"id": found}
    container_id = fields.get("id")
    if not isinstance(container_id, str) or not container_id:
        return None
    return Container(container_id, _read_time(fields.get("expires_at")))


def with_container_named(extra: Mapping[str, Any], container: bytes) -> Mapping[str, Any]:
    """Parameters whose `container`, if it loads skills and names none, names this one."""
    own = extra.get("container")
    if not isinstance(own, Mapping) or own.get("id"):
        return extra
    return {**extra, "container": {**own, "id": json_values.decode(container)}}


def _read_time(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        # Python 3.10 doesn't read `Z`.
        return datetime.fromisoformat(value.replace("Z", "+00:00"))
    except ValueError:
        return None
