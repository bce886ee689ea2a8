"""A content part that one API alone takes, with a text for all others."""

# What is hard here
# -----------------
# The value is committed, and a committed item never changes. So it is kept as JSON bytes, like the
# native form of a turn: nobody can change them, parts can be compared and hashed, and the bytes of
# two requests are equal. `value` reads them anew each time.
#
# Other APIs get a text (rule K7). Where the program gave none, it is made of what the value says:
#
#     [search_result left out: Opening hours, https://example.org/hours; its text:]
#     Monday to Friday, 9 to 5.
#
# The first line names the kind and whatever identifies it. The texts follow in their order.

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from lutumpy.apis import Api, api_row
from lutumpy.plain import json_values
from lutumpy.plain.strict_json import copy_json
from lutumpy.plain.values import dataclass

__all__ = ["RawPart", "texts_and_data"]

_NAMES = ("title", "name", "tool_name", "filename", "source", "url", "file_url", "file_id")
"""Fields that say what a value is, in the order in which they are shown."""

_MOST_OF_NAME = 300

# Long base64, alone or in a data URL.
_DATA = r"(?:data:[^,]{0,200},)?[A-Za-z0-9+/=_-]{1000,}\Z"


@dataclass(frozen=True, slots=True)
class RawPart:
    """A content part that one API alone takes, as that API spells it; every other gets a text.

    Its own API is sent the value as it is: in results, and in a user's message if it may be
    there. Where its API doesn't take it (in a result that is an error, as an example), the text is
    sent.

        RawPart("my_api", {"type": "map", "place": "Oslo"}, text="A map of Oslo.")

    The value is copied. What the API is known to refuse is found when the part is pushed or
    committed.

    Args:
        api: The API, by its name in `lutumpy.apis`.
        value: A JSON object.
        text: What other APIs are sent. Left out, or blank, it is made of the value: what kind it
            is, its title or address, and the texts in it.

    Raises:
        UnknownApiError: there is no such API.
        TypeError: `value` is not a mapping, or something in it isn't JSON; `text` is not a text.
        ValueError: it holds `NaN`, an infinity or itself, or is nested deeper than 100 levels.

    Attributes:
        api: The API.
        data: The value as JSON bytes.
        text: What other APIs are sent; never blank.
    """

    api: Api
    data: bytes
    text: str

    def __init__(self, api: Api, value: Mapping[str, Any], text: str | None = None) -> None:
        if not isinstance(api, str):
            raise TypeError(f"RawPart takes the name of an API, not {type(api).__name__}")
        api_row(api)
        if not isinstance(value, Mapping):
            raise TypeError(f"the value of a RawPart is a JSON object, not {type(value).__name__}")
        if text is not None and not isinstance(text, str):
            raise TypeError(f"the text of a RawPart is a text, not {type(text).__name__}")
        copied = copy_json(value, "the value of a RawPart")
        if text is None or not text.strip():
            text = _describe_value(copied)
        object.__setattr__(self, "api", api)
        object.__setattr__(self, "data", json_values.encode(copied))
        object.__setattr__(self, "text", json_values.clean_text(text))

    @property
    def value(self) -> dict[str, Any]:
        """The value, a new copy each time."""
        found: dict[str, Any] = json_values.decode(self.data)
        return found

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_line

        # The value itself is the provider's, and may be large.
        return brief_line("RawPart of", self.api[:40], brief(self.text))


def texts_and_data(part: RawPart) -> Iterator[str | int]:
    """What the value of a part holds, for estimates of its tokens: its texts, and the number of
    bytes of what is base64.
    """
    waiting: list[Any] = [part.value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, str):
            yield len(value) * 3 // 4 if re.match(_DATA, value) else value


# --- as text --------------------------------------------------------------------------------------


def _describe_value(value: dict[str, Any]) -> str:
    """A text in place of a value: what was left out, and the texts in it."""
    kind = value.get("type")
    found = dict(_find_names(value))
    names = [found[key] for key in _NAMES if key in found]
    head = f"{kind if isinstance(kind, str) and kind.strip() else 'part'} left out"
    if names:
        head += f": {', '.join(dict.fromkeys(names))}"
    texts = "\n".join(_find_texts(value))
    return f"[{head}; its text:]\n{texts}" if texts else f"[{head}]"


def _find_names(value: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """What identifies a value, from the outside in; objects in lists are of another subject."""
    for inner in reversed(value.values()):
        if isinstance(inner, dict):
            yield from _find_names(inner)
    for key in _NAMES:
        name = value.get(key)
        # The address of a data URL is the data itself.
        if isinstance(name, str) and name.strip() and name[:5].lower() != "data:":
            yield key, name[:_MOST_OF_NAME]


def _find_texts(value: Any) -> Iterator[str]:
    """The texts in a value, in their order."""
    if isinstance(value, list):
        for inner in value:
            yield from _find_texts(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            is_text = key in ("text", "content") or (key == "data" and value.get("type") == "text")
            if isinstance(inner, str):
                if is_text and inner.strip():
                    yield inner
            else:
                yield from _find_texts(inner)
