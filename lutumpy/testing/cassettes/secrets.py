"""What must never be written into a file: keys in use, and texts that look like keys."""

# What is hard: a key has many places (headers, the query, a tool's result that the model reads, the
# model's answer) and several spellings there. So nothing is trusted to one of these alone:
#
#     headers of a request     none is written
#     headers of an answer     a list of those that are
#     bodies and queries       each text loses the keys in use, and what looks like a key
#     the file as it would be  if it still holds a key in use, also in pieces over the events of a
#                              stream, it isn't written
#
# A server that the provider calls has its key in the body, under a name that says so. What stands
# there is a mask in every request: a replay may have another key, or an empty one.
#
# A mask is put in place of a key when the file is written, and into each request before it is
# compared: where a program sends its key in a body, the recorded request has the mask, too.

from __future__ import annotations

import base64
import copy
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from lutumpy.plain.key_spellings import spell_key

__all__ = ["KEPT_HEADERS", "MASK", "SECRET_NAME", "Secrets"]

MASK = "[redacted]"
"""What is in place of a secret."""

KEPT_HEADERS: frozenset[str] = frozenset(
    "content-type request-id retry-after retry-after-ms x-amzn-errortype x-amzn-requestid "
    "x-request-id x-should-retry".split()
)
"""The headers of an answer that are written: what an SDK reads, and the ids of requests."""

SHORTEST = 8
"""Characters of the shortest key that is looked for. Shorter ones are words of a test, and would be
found in the middle of other words.
"""

SECRET_NAME = re.compile(r"auth|key|token|secret|cookie|passw|credential|signature", re.IGNORECASE)
"""What the names of headers, parameters and options have that hold keys."""

# Where a body has the key of a server, and what of it is the conversation: there, such a name is a
# word of a tool's.
_KEY_FIELDS = frozenset({"authorization", "authorization_token"})
_CONVERSATION = frozenset({"contents", "input", "instructions", "messages", "system"})

# Names of the SDKs' own, whose values say nothing of anybody.
_HARMLESS = re.compile(r"x-stainless-.*|idempotency-key", re.IGNORECASE)
_ENVIRONMENT = re.compile(r".*(_|^)(API_KEY|ACCESS_KEY|ACCESS_KEY_ID|TOKEN|SECRET|PASSWORD)\Z")
_SCHEME = re.compile(r"(?:Bearer|Basic|Token)\s+(.+)\Z", re.IGNORECASE)
_SIGNED = re.compile(r"AWS4\S* Credential=([^/\s,]+)|Signature=(\w+)")

_LOOKS = re.compile(
    "|".join(
        [
            r"(?<![\w+/=-])(?:sk|rk|pk)-[\w-]{8,}",  # OpenAI and its like, Anthropic
            r"\bAIza[\w-]{30,}",  # Google
            r"\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",  # AWS
            r"\bABSK[\w+/=]{20,}",  # Bedrock
            r"\bgh[pousr]_\w{20,}|\bgithub_pat_\w{20,}",
            r"\bhf_\w{20,}",
            r"\b(?:csk-|fw_|gsk_|nvapi-|pplx-|tgp_v1_|xai-)[\w-]{20,}",  # hosts of models
            r"\bya29\.[\w.-]{20,}",  # Google, for an hour
            r"\bxox[abprs]-[\w-]{10,}",
            r"\beyJ[\w-]{10,}\.eyJ[\w-]{10,}\.[\w-]+",  # JSON web tokens
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)",
            r"(?<=\bBearer )(?:(?=[^\s\"]*\d)[\w.~+/=-]{8,}|[\w.~+/=-]{20,})",
        ]
    )
)


class Secrets:
    """The keys of one program, as far as its requests and its environment show them.

    Args:
        redact: Gives what to write in place of a text; for what else is nobody's business.
    """

    def __init__(self, redact: Callable[[str], str] | None = None) -> None:
        self._redact = redact
        self._known: set[str] = set()
        self._pattern: re.Pattern[str] | None = None
        for name, value in os.environ.items():
            if _ENVIRONMENT.match(name.upper()):
                self.add(value)

    def add(self, value: str) -> None:
        """Take a text as a key."""
        if len(value) < SHORTEST or value == MASK:
            return
        encoded = base64.b64encode(value.encode("utf-8", "surrogatepass")).decode()
        new = {value, encoded} - self._known
        if new:
            self._known |= new
            longest_first = sorted(self._known, key=lambda text: (-len(text), text))
            self._pattern = re.compile("|".join(map(spell_key, longest_first)))

    def keys_alone(self) -> Secrets:
        """The same keys, without `redact`: for what that has been through already."""
        found = copy.copy(self)
        found._redact = None
        return found

    def add_of_request(self, url: str, headers: Mapping[str, str]) -> None:
        """Take the keys that a request sends along, in its headers and its address."""
        for name, value in headers.items():
            if SECRET_NAME.search(name) and not _HARMLESS.match(name):
                self._add_of_header(value)
        parts = urlsplit(url)
        for name, value in parse_qsl(parts.query):
            if SECRET_NAME.search(name):
                self.add(value)
        if parts.password:
            self.add(parts.password)

    def add_of_body(self, body: Any) -> None:
        """Take the keys that a request sends along for servers that the provider calls."""
        for fields, name in _key_fields(body):
            self._add_of_header(fields[name])

    def mask_body(self, body: Any) -> Any:
        """The body of a request without secrets."""
        masked = self.mask_value(body)
        for fields, name in _key_fields(masked):  # a copy, by now
            fields[name] = MASK
        return masked

    def _add_of_header(self, value: str) -> None:
        signed = _SIGNED.findall(value)
        for credential, signature in signed:
            self.add(credential or signature)
        found = _SCHEME.match(value)
        if not signed:
            self.add(found[1].strip() if found is not None else value.strip())

    @property
    def version(self) -> int:
        """A number that another key makes larger."""
        return len(self._known)

    # --- taking them out --------------------------------------------------------------------------

    def mask_text(self, text: str) -> str:
        """A text without secrets."""
        if self._pattern is not None:
            text = self._pattern.sub(MASK, text)
        text = _LOOKS.sub(MASK, text)
        return text if self._redact is None else self._redact(text)

    def mask_value(self, value: Any) -> Any:
        """A JSON value with each text in it, keys included, without secrets."""
        if isinstance(value, str):
            return self.mask_text(value)
        if isinstance(value, list):
            return [self.mask_value(entry) for entry in value]
        if isinstance(value, Mapping):
            return {self.mask_text(key): self.mask_value(entry) for key, entry in value.items()}
        return value

    def mask_line(self, line: str) -> str:
        """A line of an event stream without secrets: the JSON in it is read, since a key may be
        spelled with escapes there, and written anew if there was something to take out.
        """
        name, colon, rest = line.partition(":")
        is_event = bool(colon) and name in ("data", "event", "id", "retry", "")
        head, data = (name + colon, rest) if is_event else ("", line)
        text = data.strip()
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return self.mask_text(line)
        masked = self.mask_value(value)
        if masked == value:
            return line
        compact = json.dumps(masked, ensure_ascii=False, separators=(",", ":"))
        return head + data.replace(text, compact, 1)

    def mask_url(self, url: str) -> str:
        """Path and query of an address: keys in it are masked, the host is left out."""
        parts = urlsplit(url)
        query = [
            (name, MASK if SECRET_NAME.search(name) else value)
            for name, value in parse_qsl(parts.query, keep_blank_values=True)
        ]
        path = parts.path or "/"
        return self.mask_text(f"{path}?{urlencode(query, safe='[]')}" if query else path)

    # --- looking once more ------------------------------------------------------------------------

    def found_in(self, text: str, events: Iterable[Any] = ()) -> bool:
        """Whether a text that is about to be written still holds a key in use.

        Args:
            text: JSON of a line.
            events: The events of the stream in it, in which a key may come in pieces.
        """
        if self._pattern is None:
            return False
        if self._pattern.search(text):
            return True
        joined: dict[tuple[str | int, ...], list[str]] = {}
        for event in events:
            for path, piece in _texts(event, ()):
                joined.setdefault(path, []).append(piece)
        return any(self._pattern.search("".join(pieces)) for pieces in joined.values())


def _key_fields(body: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Where a body has keys of servers: the object, and the name in it."""
    waiting: list[Any] = [body]
    if isinstance(body, dict):
        waiting = [value for name, value in body.items() if name not in _CONVERSATION]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting += value
            continue
        if not isinstance(value, dict):
            continue
        waiting += value.values()
        yield from [(value, name) for name in value if _is_key(value, name)]
        headers = value.get("headers")
        if isinstance(headers, dict):
            named = [name for name in headers if SECRET_NAME.search(name)]
            yield from [(headers, name) for name in named if isinstance(headers[name], str)]


def _is_key(fields: Mapping[str, Any], name: str) -> bool:
    return name.lower() in _KEY_FIELDS and isinstance(fields[name], str)


def _texts(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _texts(entry, (*path, key))
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _texts(entry, (*path, index))
