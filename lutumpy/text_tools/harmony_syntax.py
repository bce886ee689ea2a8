"""Messages with channels, as gpt-oss writes them: thinking, calls and the answer, each headed."""

# `<|channel|>analysis<|message|>...<|end|>` is thinking, a header with `to=functions.name` heads a
# call, and every other message is the answer's text. The recipient may be in the header of the
# role as well: `<|start|>assistant to=functions.name<|channel|>commentary<|message|>{}<|call|>`.

from __future__ import annotations

import re
from collections.abc import Mapping

from lutumpy.plain.values import dataclass
from lutumpy.text_tools.body_block import BodyBlock, BodyTags
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.json_scanner import JsonScanner
from lutumpy.text_tools.protocol import ParsedCall
from lutumpy.text_tools.schema_values import KnownTools
from lutumpy.text_tools.tag_search import TagSearch

__all__ = ["HarmonyBlock", "HarmonySyntax"]

_MESSAGE = "<|message|>"
_RECIPIENT = re.compile(r"\bto=(?:functions\.)?([\w.-]+)")
_MESSAGE_SEARCH = TagSearch([_MESSAGE])
_LONGEST_HEADER = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class HarmonySyntax(BodySyntax):
    """The calls among messages with channels."""

    start: str = "<|channel|>"
    ends: tuple[str, ...] = ("<|call|>", "<|end|>", "<|return|>")
    around: tuple[str, ...] = ("<|call|>", "<|end|>", "<|return|>")
    escapes: bool = True

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts around and in a message."""
        return (self.start, *self.ends, _MESSAGE)

    def quotes(self, tools: KnownTools) -> Mapping[str, str]:
        """Those of JSON."""
        return {'"': '"'}

    def spelled(self, name: str, arguments: str) -> str:
        """A call written this way; `arguments` is JSON text."""
        header = f"<|channel|>commentary to=functions.{name} <|constrain|>json"
        return f"{header}{_MESSAGE}{arguments}<|call|>"

    def read(self, body: str, tools: KnownTools, *, whole: bool) -> list[ParsedCall] | None:
        """The call in a header and what follows it."""
        header, _, written = body.partition(_MESSAGE)
        recipient = _RECIPIENT.search(header)
        name = "" if recipient is None else recipient.group(1)
        written = written.strip()
        scanner = JsonScanner(0, calls=False)
        stop = scanner.feed(written, 0)
        if written.startswith("{") and scanner.done and not written[stop:].strip():
            return [ParsedCall(name, written)]
        if not written and whole:
            return [ParsedCall(name, "{}")]
        if not whole and not scanner.done and scanner.broken is None:
            return [self.cut(name, written)]
        return [self.unreadable(name, written, "its arguments are not a JSON object")]


class HarmonyBlock(BodyBlock):
    """A message: its header, and the arguments where it is a call."""

    __slots__ = ("_header", "_header_length")

    def __init__(self, tags: BodyTags, *, quoted: bool) -> None:
        super().__init__(tags, quoted=quoted)
        self._header: list[str] = []
        self._header_length = 0
        self._state = self._in_header

    def finish(self, rest: str) -> None:
        """The text has ended in the message."""
        if self._state != self._in_header:
            super().finish(rest)
            return
        self._header.append(rest)
        self.raw.append(rest)
        recipient = _RECIPIENT.search("".join(self._header))
        if recipient is None:
            self._end_as_text()
        else:
            self._end_with([self._tags.syntax.cut(recipient.group(1), "")])

    def _in_header(self, text: str, pos: int) -> int:
        found = _MESSAGE_SEARCH.search(text, pos)
        stop = _MESSAGE_SEARCH.beginning(text, pos) if found is None else found.start()
        # Counted in characters, so that it doesn't matter where the text is cut.
        most = pos + _LONGEST_HEADER - self._header_length
        if stop > most:
            self._end_as_text()
            return self._take(text, pos, most)
        self._header.append(text[pos:stop])
        self._header_length += stop - pos
        if found is None:
            return self._take_and_wait(text, pos, stop)
        self._take(text, pos, found.end())
        header = "".join(self._header)
        if _RECIPIENT.search(header) is not None:
            self._state = self._outside
        else:
            self._end_with([])
            self.thinking_end = "<|end|>" if "analysis" in header else ""
        return found.end()
