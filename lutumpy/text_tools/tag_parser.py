"""`TagToolParser`: calls as JSON between tags."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy.text_tools.instruction import call_instruction
from lutumpy.text_tools.protocol import CallStreamFormatter, ParsedText
from lutumpy.text_tools.scanner import ScanTags, TextScanner
from lutumpy.text_tools.syntax import HERMES, LLAMA_FUNCTION, LLAMA_PYTHON_TAG, MISTRAL, TOOL_CALL, CallSyntax
from lutumpy.tools.definition import ToolDef

__all__ = ["TagToolParser"]

_EXAMPLE = '{"parameter": "value"}'


class TagToolParser:
    """Reads calls that a model writes as JSON between tags, and tells it to write them so.

    Between the tags stands one call, or an array of calls; a Markdown fence may stand inside or around them. What stands in
    `<think>...</think>`, or in a code block that holds more than calls, is text (rules T1 to T3).

    Args:
        tags: Start and end tag, or a `CallSyntax`. They must not contain quotes, backslashes, braces, backticks or tildes.
        also: Further ways to write calls that are read too; the model isn't told of them.
        thinking: Pairs of texts around thinking.
        starts_thinking: The answer begins inside of the first of these pairs, as with templates that open the thinking in the
            prompt: nothing before its end is a call.

    Raises:
        ValueError: the tags can't be told apart from JSON, or from each other.
        TypeError: `tags` is no pair of texts.
    """

    def __init__(
        self,
        tags: tuple[str, str] | CallSyntax = TOOL_CALL,
        *,
        also: Sequence[CallSyntax] = (),
        thinking: Sequence[tuple[str, str]] = (("<think>", "</think>"),),
        starts_thinking: bool = False,
    ) -> None:
        syntax = tags if isinstance(tags, CallSyntax) else _pair(tags)
        if starts_thinking and not thinking:
            raise ValueError("starts_thinking=True needs to know the texts around thinking")
        self.syntax: CallSyntax = syntax
        self._scan_tags = ScanTags((syntax, *also), thinking)
        self._begins_in = thinking[0][1] if starts_thinking else None

    @classmethod
    def hermes(cls, *, starts_thinking: bool = False) -> TagToolParser:
        """For models trained on `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`: Hermes 2 Pro and later, Qwen 2.5
        and 3."""
        return cls(HERMES, starts_thinking=starts_thinking)

    @classmethod
    def mistral(cls, *, starts_thinking: bool = False) -> TagToolParser:
        """For Mistral's models: `[TOOL_CALLS]name[ARGS]{...}`, with `[CALL_ID]` or not, and the older
        `[TOOL_CALLS][{"name": ..., "arguments": {...}}]`.

        The end of the JSON is the end of the call. `[THINK]...[/THINK]` is thinking too.
        """
        pairs = (("[THINK]", "[/THINK]"), ("<think>", "</think>"))
        return cls(MISTRAL, thinking=pairs, starts_thinking=starts_thinking)

    @classmethod
    def llama(cls) -> TagToolParser:
        """For Llama 3.1 and later: `<function=name>{...}</function>`, and
        `<|python_tag|>{"name": ..., "parameters": {...}}` with `;` between calls.

        Calls without any tag, and those written as Python, are not read: nothing tells them from an answer.
        """
        return cls(LLAMA_FUNCTION, also=(LLAMA_PYTHON_TAG,))

    @property
    def tags(self) -> tuple[str, str]:
        """What the model is told to write before and behind a call; the second is empty where the JSON ends the call."""
        return self.syntax.tags

    def format_instruction(self, definitions: Sequence[ToolDef]) -> str:
        """What the model is told: how to call, and the tools."""
        return call_instruction(definitions, self.syntax.spelled("tool_name", _EXAMPLE), self.tags)

    def format_call(self, name: str, arguments: str) -> str:
        """A call as the model is told to write it; `arguments` is JSON text."""
        return self.syntax.spelled(name, arguments)

    def parse(self, text: str) -> ParsedText:
        """The calls in a whole answer, and its text without them. Never raises, whatever the text."""
        scanner = TextScanner(self._scan_tags, self._begins_in)
        shown = scanner.feed(text) + scanner.flush()
        calls = tuple(scanner.calls)
        return ParsedText(shown, calls, tuple([call.detail for call in calls if call.detail is not None]))

    def stream_formatter(self) -> CallStreamFormatter:
        """A new formatter for one answer, which knows its calls too."""
        return TextScanner(self._scan_tags, self._begins_in)

    def __repr__(self) -> str:
        return f"TagToolParser({self.tags!r})"


def _pair(tags: object) -> CallSyntax:
    match tags:
        case (str(start), str(end)):
            return CallSyntax(start, (end,))
    raise TypeError(f"tags= takes a start and an end tag, or a CallSyntax, not {tags!r}")
