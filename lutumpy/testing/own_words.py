"""Words of a script's own answers: what a server has said, it takes back.

A script may answer with what no API has today: a kind of block or item that nobody knows. The rules
of the API would refuse it in the next request, as the API of today does. The one that the script
plays has said it, so it knows it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from lutumpy.errors import Problem

__all__ = ["OwnWords"]

# What an answer calls its parts: the values of `type`, or the keys that tell what a part is.
_SAID = re.compile(r'"type"\s*:\s*"(\w+)"|"(\w+)"\s*:\s*\{')
_QUOTED = re.compile(r"['\"](\w+)['\"]")


class OwnWords:
    """The words by which raw answers of a script call their parts."""

    __slots__ = ("_words",)

    def __init__(self) -> None:
        self._words: set[str] = set()

    def note(self, answer: Any) -> None:
        """Note what a script has answered; a `Reply` has no words of its own."""
        if isinstance(answer, (dict, list, tuple)):
            text = json.dumps(answer, default=repr)
        elif isinstance(answer, (str, bytes)):
            text = answer if isinstance(answer, str) else answer.decode(errors="replace")
        else:
            return
        for kind, key in _SAID.findall(text):
            self._words.add(kind or key)

    def excuse(self, problems: Iterable[Problem]) -> bool:
        """Whether a request is refused for such a word: the rules can't judge the rest then."""
        if not self._words:
            return False
        named = [_QUOTED.search(p.message) for p in problems if p.certainty == "refused"]
        return any(found is not None and found[1] in self._words for found in named)
