"""Values that can't be written as JSON: half characters, and numbers that JSON doesn't know."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.problem import Certainty, Problem, is_array

# The standard library's encoder, as the rules use nothing else: it is asked only whether it can.
_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, check_circular=False).encode
_SURROGATE = re.compile("[\ud800-\udfff]")

NOT_JSON: Mapping[str, str] = {
    "chat": "We could not parse the JSON body of your request.",
    "responses": "We could not parse the JSON body of your request.",
    "anthropic": "The request body is not valid JSON",
}
HALF_CHARACTER: Mapping[str, tuple[str, Certainty]] = {
    "chat": (NOT_JSON["chat"], "some"),
    "responses": (NOT_JSON["responses"], "some"),
    "anthropic": ("The request body is not valid JSON: no low surrogate in string", "refused"),
}
"""Users report that a lone surrogate breaks every later request to Anthropic; of OpenAI it is
likely.
"""


@dataclass(frozen=True, slots=True)
class EncodingWords:
    """What an API says to values that can't be written as JSON.

    Attributes:
        not_json: To a number that JSON doesn't know.
        half_character: To a lone surrogate.
        certainty: How sure a refusal of the latter is.
        kind: `error.type` of the answer.
    """

    not_json: str
    half_character: str
    certainty: Certainty = "some"
    kind: str = "invalid_request_error"


def check_encoding(
    api: str, messages: Any, where: str, words: EncodingWords | None = None
) -> list[Problem]:
    """Strings with a lone surrogate, numbers that are infinite or none, and values that JSON
    doesn't know.

    Args:
        api: How the ids of the API's rules begin, as `chat`.
        messages: The list of messages or items.
        where: How positions of this API begin, with `{}` for the index.
        words: What the API says; may be left out for those whose words are here.
    """
    if words is None:
        words = EncodingWords(NOT_JSON[api], *HALF_CHARACTER[api])
    found: list[Problem] = []
    if not is_array(messages) or encodable_at_once(messages):
        return found
    for index, message in enumerate(messages):
        if isinstance(message, (dict, list)) and not encodable(message):
            found += _find_problems(api, message, where.format(index), index, words)
    return found


def encodable(value: Any, *, half_characters: bool = False) -> bool:
    """Whether a value can be sent unchanged. One nested too deeply to find out counts as sendable.

    Args:
        value: Anything.
        half_characters: Whether lone surrogates may be in it: JSON can spell them, UTF-8 can't.
    """
    try:
        text = _encode(value)
        if not half_characters:
            text.encode()
    except RecursionError:
        return True
    except (ValueError, TypeError):
        return False
    return True


def encodable_at_once(values: Any) -> bool:
    """Whether all values of a list are known to be sendable unchanged: the quick answer for nearly
    all lists, for one run of the encoder. `False` where they have to be asked one by one.
    """
    try:
        _encode(values).encode()
    except (RecursionError, ValueError, TypeError):
        return False
    return True


def _find_problems(
    api: str, message: Any, where: str, index: int, words: EncodingWords
) -> list[Problem]:
    found: list[Problem] = []
    rule = f"{api}.encoding"
    for path, value, is_key in _walk_leaves(message, (index,)):
        if isinstance(value, str) and _SURROGATE.search(value):
            text, certainty = words.half_character, words.certainty
            path = path[:-1] if is_key else path
        elif not _is_json(value):
            text, certainty = words.not_json, "refused"
        else:
            continue
        found.append(Problem(rule, where, text, certainty, kind=words.kind, path=path))
    return found


def _is_json(value: Any) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, (str, int))


def _walk_leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any, bool]]:
    """Every key, and every value that isn't a container, with its path; `json` nests no deeper than
    Python recurses.
    """
    stack: list[tuple[Path, Any]] = [(path, value)]
    while stack:
        at, node = stack.pop()
        if isinstance(node, Mapping):
            for key, inner in node.items():
                if isinstance(key, str):
                    yield (*at, key), key, True
                stack.append(((*at, key), inner))
        elif isinstance(node, Sequence) and not isinstance(node, (str, bytes)):
            stack += [((*at, number), inner) for number, inner in enumerate(node)]
        else:
            yield at, node, False
