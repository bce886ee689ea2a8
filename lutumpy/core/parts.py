"""What a content part may hold.

Checked wherever one enters a transcript, so that all of it can be sent (rule K3b).

Refused is what no adapter could write: data that isn't bytes, a part that is a plain dictionary. A
part that only some providers refuse, such as an image of an unusual type, is accepted: each adapter
knows what its API takes, and replaces the rest by text (rule K7).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lutumpy.apis import serving
from lutumpy.core.items import FilePart, FoundTool, ImagePart, Part, RawPart, Role, TextPart
from lutumpy.errors import TranscriptError
from lutumpy.plain.json_values import clean_text, encode_text

if TYPE_CHECKING:
    from lutumpy.errors import Problem
    from lutumpy.rules.shape import PartPlace

__all__ = [
    "MOVED_HEADING",
    "PARTS",
    "attachments_heading",
    "attachments_note",
    "check_message_parts",
    "content_problem",
    "cut_arguments",
    "cut_text",
    "marked_system",
    "part_problem",
    "raw_value",
    "read_message_parts",
    "sendable",
    "shown_heading",
]

PARTS = (TextPart, ImagePart, FilePart, RawPart, FoundTool)
"""The classes of content parts."""

TRUNCATED = "TRUNCATED"
"""The key under which the beginning of arguments is sent that were too long."""

_ADDRESS = r"(?i:https?)://[^\s/?#][^\s]*"
_DETAILS = (None, "low", "high", "auto")


def content_problem(content: Any) -> str | None:
    """Why this can't be the content of a result; `None` if it is text or parts."""
    if isinstance(content, str):
        return None
    if not isinstance(content, (tuple, list)):
        return f"its content is {_type_name(content)}, not text or a tuple of content parts"
    for index, part in enumerate(content):
        if (problem := part_problem(part)) is not None:
            return f"part {index} of its content: {problem}"
    return None


def part_problem(part: Any, *, asks_rules: bool = True) -> str | None:
    """What is wrong with a content part, as a sentence; `None` for a good one.

    Args:
        part: Anything.
        asks_rules: Whether a part of one API is asked of the rules of that API.
    """
    if not isinstance(part, PARTS):
        return f"{_type_name(part)} is not a content part"
    if isinstance(part, FoundTool):
        return None  # checked where it was made
    if isinstance(part, RawPart):
        problem = _raw_problem(part) if asks_rules else None
    else:
        problem = _field_problem(part)
    return f"the {type(part).__name__} {problem}" if problem is not None else None


def _raw_problem(part: RawPart) -> str | None:
    """Why its own API takes a part in no place; `None` where there is a place that it is taken in.

    Elsewhere the text of such a part is sent.
    """
    value = part.value
    refused = _refusal(part.api, value, "result")
    if refused is None or _refusal(part.api, value, "message") is None:
        return None
    return f"is refused by {part.api}: {refused.message}"


def raw_value(part: RawPart, api: str, place: PartPlace) -> dict[str, Any] | None:
    """The value of a part as an API takes it in this place; `None` if it gets the text.

    Args:
        part: The part.
        api: The API that a request is made for.
        place: Where the part stands.
    """
    if part.api != api:
        return None
    value = part.value
    # A part was checked when it was pushed or committed, but not for this place, and one from a
    # dump by another release.
    return value if _refusal(api, value, place) is None else None


def _refusal(api: str, value: dict[str, Any], place: PartPlace) -> Problem | None:
    """Why an API refuses a value in this place."""
    check = getattr(serving(api, "rules"), "check_part", None)
    if check is None:
        return None
    found: list[Problem] = check(value, place)
    return next((problem for problem in found if problem.certainty != "discouraged"), None)


def _field_problem(part: TextPart | ImagePart | FilePart) -> str | None:
    # Programs may put anything into the fields, whatever the annotations say.
    if isinstance(part, TextPart):
        return None if isinstance(part.text, str) else f"has {_type_name(part.text)} as its text"
    if (part.data is None) == (part.url is None):
        return "needs either data or url"
    if part.data is not None and not isinstance(part.data, (bytes, bytearray)):
        found = _type_name(part.data)
        return f"has {found} as its data, which is bytes (of the file itself, not base64)"
    if part.data is not None and not (isinstance(part.media_type, str) and part.media_type):
        return "has data and no media_type, such as 'image/png'"
    named = {"url": part.url, "media_type": part.media_type}
    if isinstance(part, FilePart):
        named["filename"] = part.filename
    elif part.detail not in _DETAILS:
        return f"has {part.detail!r} as its detail, not 'low', 'high' or 'auto'"
    for name, value in named.items():
        if value is not None and not isinstance(value, str):
            return f"has {_type_name(value)} as its {name}, which is text"
    return None


def _type_name(value: Any) -> str:
    return "None" if value is None else type(value).__name__


def sendable(part: ImagePart | FilePart) -> ImagePart | FilePart | None:
    """The part as an API might accept it: with bytes that aren't empty, or an http(s) address; else
    `None`.

    A data URL becomes bytes with their media type, because not every API accepts one as an address.
    An image gets the media type that its bytes show: OpenAI reads them whatever is stated, and
    Anthropic refuses every request with an image of another type [reported].
    """
    if part.url is not None and part.url[:5].lower() != "data:":
        return part if re.fullmatch(_ADDRESS, part.url) is not None else None
    found = part if part.url is None else _from_data_url(part)
    if found is None or not found.data:
        return None
    if isinstance(found, FilePart):
        return found
    from lutumpy.rules.media import image_type, type_of_image  # few conversations show anything

    shown = type_of_image(found.data)
    if shown is None or shown == image_type(found.media_type):
        return found
    return replace(found, media_type=shown)


def _from_data_url(part: ImagePart | FilePart) -> ImagePart | FilePart | None:
    head, comma, body = (part.url or "")[5:].partition(",")
    media_type, _, encoding = head.rpartition(";")
    if not comma or encoding.strip().lower() != "base64" or not (media_type or part.media_type):
        return None
    import base64  # rare

    try:
        data = base64.b64decode(body, validate=True)
    except ValueError:
        return None
    return replace(part, url=None, data=data, media_type=media_type or part.media_type)


def marked_system(text: str) -> str:
    """A text of the system's as a user's message has it, where an API takes none of the system's
    there.
    """
    return f"<system>\n{text}\n</system>"


def cut_text(text: str, limit: int) -> str:
    """`text`, or its beginning and a note of what was left out, in at most `limit` characters."""
    if len(text) <= limit:
        return text
    note = (
        f"\n[{len(text)} characters are more than the {limit} that the provider takes; "
        "the rest was left out]"
    )
    return text[: limit - len(note)] + note


def cut_arguments(text: str, limit: int) -> str:
    """Arguments that are too long to be sent back, as an object with their beginning as text (rule
    R3).
    """
    length = limit
    while True:
        # Inside a JSON string quotes and line ends take two characters, control characters six: so
        # try shorter beginnings until one fits.
        length = length * 3 // 4
        wrapped = encode_text({TRUNCATED: text[:length]})
        if len(wrapped) <= limit:
            return wrapped


def read_message_parts(role: Role, content: str | Sequence[str | Part]) -> tuple[Part, ...]:
    """The parts of a message that is pushed; raises `TranscriptError` for what has none."""
    if isinstance(content, str):
        return (TextPart(clean_text(content)),)
    if isinstance(content, Mapping) or not isinstance(content, Iterable):
        raise TranscriptError(
            f"a {role} message takes a text or a list of parts, not {type(content).__name__}; "
            "the transcript is unchanged"
        )
    parts = [_read_part(part) for part in content]
    # Providers refuse empty texts, and they say nothing.
    return tuple([part for part in parts if not isinstance(part, TextPart) or part.text])


def _read_part(part: str | Part) -> Part:
    text = part.text if isinstance(part, TextPart) else part
    return TextPart(clean_text(text)) if isinstance(text, str) else text


def check_message_parts(role: Role, parts: tuple[Part, ...], *, asks_rules: bool) -> None:
    """Raise `TranscriptError` for parts that no message of this role takes; see `part_problem`."""
    for part in parts:
        if (problem := part_problem(part, asks_rules=asks_rules)) is not None:
            raise TranscriptError(f"{problem}; the transcript is unchanged")
        if role != "user" and not isinstance(part, TextPart):
            raise TranscriptError(f"a {role} message takes text only; the transcript is unchanged")
    if not any(not isinstance(p, TextPart) or p.text.strip() for p in parts):
        raise TranscriptError(
            f"a {role} message needs content: providers refuse empty texts; "
            "the transcript is unchanged"
        )


# --- what a result shows beside its text ----------------------------------------------------------

MOVED_HEADING = r"\[(?:shown by the result of|\d+ attachments? of the result of call) [^\n]*:\]"
"""The heading of what a result shows beside its text, where an API takes only text in a result: it
stands in a message of the user behind the results. A pattern for the start of a text.
"""


def shown_heading(name: str) -> str:
    """The heading of what the result of a tool shows, where calls go by the tool's name."""
    return f"[shown by the result of {name}:]"


def attachments_heading(count: int, call_id: str, name: str) -> str:
    """The heading of so many attachments of a result, where calls have ids."""
    return f"[{_attachments(count, call_id, name)}:]"


def attachments_note(count: int, call_id: str, name: str) -> str:
    """What the result itself says of them."""
    what = _attachments(count, call_id, name)
    return f"[{what}: see the user message after the tool results]"


def _attachments(count: int, call_id: str, name: str) -> str:
    plural = "s" if count > 1 else ""
    return f"{count} attachment{plural} of the result of call {call_id} ({name})"
