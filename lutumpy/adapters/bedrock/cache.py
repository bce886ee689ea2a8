"""Cache points, at the end of what the next request begins with.

A cache point is a block of its own, behind the tools, the system's texts or the blocks that it
covers. The API reads them in that order, and can keep what comes before each point.
"""

# Where a point is, with `cache="auto"`:
#
#   | place    | where                                | not when                                  |
#   |----------|--------------------------------------|-------------------------------------------|
#   | messages | in the last user message before      | `extra` holds `messages`; on Nova, behind |
#   |          | anything ephemeral                   | anything but a text                       |
#   | system   | behind the last text before anything | `extra` holds `system`                    |
#   |          | ephemeral                            |                                           |
#   | tools    | behind the last tool                 | on Nova, which refuses it there           |
#
# At most four with those of the user, the longest prefix first. None at all on models that are
# known to take none, and none beside a point of the user's that lasts an hour: what is kept for
# longer has to come first, and ours are kept for five minutes.

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.plain.json_values import decode, encode
from lutumpy.rules.bedrock.limits import MAX_CACHE_POINTS

__all__ = ["POINT", "FreePoints", "mark_message"]

POINT: dict[str, Any] = {"cachePoint": {"type": "default"}}


class FreePoints:
    """How many points a request can still take.

    Args:
        extra: The user's own parameters.
        messages: The encoded messages; what was read from a history may have points of its own.
        system: The encoded `system`.

    Attributes:
        left: That many; it is counted down by whoever sets one.
    """

    __slots__ = ("left",)

    def __init__(self, extra: Mapping[str, Any], messages: list[bytes], system: bytes) -> None:
        config = extra.get("toolConfig")
        own = _find_points(config.get("tools") if isinstance(config, Mapping) else None)
        for name, sent in (("system", [system]), ("messages", messages)):
            if name in extra:
                own += _find_points(extra[name])
                continue
            for data in sent:
                if b'"cachePoint":' in data:
                    found = decode(data)
                    own += _find_points(found if name == "system" else [found])
        lasting = any(point.get("ttl") not in (None, "5m") for point in own)
        self.left: int = 0 if lasting else MAX_CACHE_POINTS - len(own)


def _find_points(value: Any) -> list[Mapping[str, Any]]:
    """The points in tools, system blocks or messages."""
    found: list[Mapping[str, Any]] = []
    for block in value if isinstance(value, (list, tuple)) else ():
        if not isinstance(block, Mapping):
            continue
        point = block.get("cachePoint")
        if isinstance(point, Mapping):
            found.append(point)
        found += _find_points(block.get("content"))
    return found


def mark_message(whole: bytes, stable: bytes, *, only_behind_text: bool) -> bytes | None:
    """A message with a point behind the blocks that stay, or `None` where it takes none.

    Args:
        whole: The message.
        stable: The message as it was before anything ephemeral was put into it.
        only_behind_text: The model isn't known to take a point behind other blocks.
    """
    message = decode(whole)
    content, kept = message.get("content"), decode(stable).get("content")
    if not isinstance(content, list) or not isinstance(kept, list) or not kept:
        return None
    last = kept[-1]
    if not isinstance(last, dict) or "cachePoint" in last:
        return None
    if only_behind_text and "text" not in last:
        return None
    end = len(kept)
    return encode({**message, "content": [*content[:end], POINT, *content[end:]]})
