"""`TagToolParser`: calls between tags, in every format that is known by name."""

from __future__ import annotations

from collections.abc import Sequence

from lutumpy import ToolDef
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.instruction import OWN_LISTING, ToolListing, call_instruction
from lutumpy.text_tools.protocol import CallStreamFormatter, ParsedText
from lutumpy.text_tools.result_form import ResultForm
from lutumpy.text_tools.scan_tags import ScanTags, Syntax, syntaxes_for
from lutumpy.text_tools.scanner import TextScanner
from lutumpy.text_tools.schema_values import known_tools
from lutumpy.text_tools.syntax import (
    HERMES,
    LLAMA_FUNCTION,
    LLAMA_PYTHON_TAG,
    MISTRAL,
    TOOL_CALL,
    CallSyntax,
)
from lutumpy.text_tools.thinking import MISTRAL_THINK, THINK

__all__ = ["TagToolParser"]

_EXAMPLE = '{"parameter": "value"}'


class TagToolParser:
    """Reads calls that a model writes between tags, and instructs it to.

    The text between the tags is one call, or an array of calls; a Markdown fence may be inside
    or around them. The text in `<think>...</think>` is the answer's reasoning. A code block that
    holds more than calls is text (rules T1 to T3).

    Args:
        tags: Start and end tag of JSON calls, or a syntax. Tags of a `CallSyntax` must
            not contain quotes, backslashes, braces, backticks or tildes.
        also: Further ways to write calls that are read; the instruction doesn't mention them.
        thinking: Pairs of texts around thinking.
        starts_thinking: The answer begins inside of the first of these pairs, as with templates
            that open the thinking in the prompt: everything before its end is thinking. If that
            end never comes, the whole answer is.
        listing: How the instruction lists the tools; name, description and JSON Schema of each on
            lines of their own by default.
        results: How results are written; by default each between `[TOOL_RESULT ...]` and
            `[/TOOL_RESULT]`, with its id, the tool's name and its status.

    Attributes:
        syntax: How the instruction says to write calls.
        listing: How the instruction lists the tools.
        results: How results are written; `None` for the default.
        thinking: The pairs of texts around thinking.
        starts_thinking: Whether answers begin inside of the first pair.

    Raises:
        ValueError: the tags can't be told apart from JSON, or from each other.
        TypeError: `tags` is not a pair of texts.
    """

    def __init__(
        self,
        tags: tuple[str, str] | Syntax = TOOL_CALL,
        *,
        also: Sequence[Syntax] = (),
        thinking: Sequence[tuple[str, str]] = THINK,
        starts_thinking: bool = False,
        listing: ToolListing | None = None,
        results: ResultForm | None = None,
    ) -> None:
        syntax = tags if isinstance(tags, (CallSyntax, BodySyntax)) else _make_syntax(tags)
        if starts_thinking and not thinking:
            raise ValueError("starts_thinking=True needs to know the texts around thinking")
        self.syntax: Syntax = syntax
        self.thinking: tuple[tuple[str, str], ...] = tuple(thinking)
        self.starts_thinking: bool = starts_thinking
        self.listing: ToolListing = OWN_LISTING if listing is None else listing
        self.results: ResultForm | None = results
        self._syntaxes: tuple[Syntax, ...] = (syntax, *also)
        self._scan_tags = ScanTags(self._syntaxes, self.thinking)
        # Only what has no types, or no tag before a call, is read by the offer.
        self._needs_offer = any(isinstance(one, BodySyntax) or one.opened for one in self._syntaxes)
        # The tags for the last offer, made once; one object, so that threads see both or neither.
        self._for_offer: tuple[Sequence[ToolDef], ScanTags] | None = None
        self._begins_in = self.thinking[0] if starts_thinking else None

    @classmethod
    def named(
        cls,
        name: str,
        *,
        also: Sequence[Syntax] = (),
        thinking: Sequence[tuple[str, str]] | None = None,
        starts_thinking: bool = False,
    ) -> TagToolParser:
        """For a format by its name, or by what vLLM, SGLang or llama.cpp call its parser.

        A server's name that means several formats reads all of them; `lutumpy text-formats` lists
        the names. `thinking=None` takes the texts that the format's models write. Tools are listed
        and results are written as their template does it (`TextFormat.listing`, `.results`).

        Raises:
            ValueError: no format has this name.
        """
        # Imported here: the table makes the syntaxes of every family.
        from lutumpy.text_tools.formats import find_formats

        formats = find_formats(name)
        syntaxes = list(dict.fromkeys([one for each in formats for one in each.syntaxes]))
        if thinking is None:
            thinking = list(dict.fromkeys([pair for each in formats for pair in each.thinking]))
        return cls(
            syntaxes[0],
            also=(*syntaxes[1:], *also),
            thinking=thinking,
            starts_thinking=starts_thinking,
            listing=formats[0].listing,
            results=formats[0].results,
        )

    @classmethod
    def hermes(
        cls,
        *,
        also: Sequence[Syntax] = (),
        thinking: Sequence[tuple[str, str]] = THINK,
        starts_thinking: bool = False,
    ) -> TagToolParser:
        """For models trained on `<tool_call>{"name": ..., "arguments": {...}}</tool_call>`.

        These are Hermes 2 Pro and later, Qwen 2.5 and 3. The arguments are those of
        `TagToolParser`.
        """
        return cls(HERMES, also=also, thinking=thinking, starts_thinking=starts_thinking)

    @classmethod
    def mistral(
        cls,
        *,
        also: Sequence[Syntax] = (),
        thinking: Sequence[tuple[str, str]] = MISTRAL_THINK,
        starts_thinking: bool = False,
    ) -> TagToolParser:
        """For Mistral's models: `[TOOL_CALLS]name[ARGS]{...}`, with or without `[CALL_ID]`.

        The older `[TOOL_CALLS][{"name": ..., "arguments": {...}}]` is read too. The end of the JSON
        is the end of the call. `[THINK]...[/THINK]` is thinking as well. The arguments are those of
        `TagToolParser`.
        """
        return cls(MISTRAL, also=also, thinking=thinking, starts_thinking=starts_thinking)

    @classmethod
    def llama(
        cls,
        *,
        also: Sequence[Syntax] = (),
        thinking: Sequence[tuple[str, str]] = THINK,
        starts_thinking: bool = False,
    ) -> TagToolParser:
        """For Llama 3.1 and later: `<function=name>{...}</function>`.

        `<|python_tag|>{"name": ..., "parameters": {...}}` with `;` between calls is read too. Calls
        without any tag, and calls written as Python, are not read: nothing tells them from an
        answer. The arguments are those of `TagToolParser`.
        """
        also = (LLAMA_PYTHON_TAG, *also)
        return cls(LLAMA_FUNCTION, also=also, thinking=thinking, starts_thinking=starts_thinking)

    @property
    def tags(self) -> tuple[str, str]:
        """The tags before and behind a call; the second is empty where the JSON ends the call."""
        return self.syntax.tags

    def marks(self, definitions: Sequence[ToolDef]) -> Sequence[str]:
        """The texts around calls by which a damaged one is told from other text."""
        tools = known_tools(definitions)
        found = [each for one in self._syntaxes for each in syntaxes_for(one, tools)]
        return [mark for syntax in found for mark in syntax.marks]

    def format_instruction(self, definitions: Sequence[ToolDef]) -> str:
        """The instruction: how to call tools, and which there are."""
        example = self.syntax.spelled("tool_name", _EXAMPLE)
        rule = self.syntax.rule if isinstance(self.syntax, BodySyntax) else ""
        return call_instruction(definitions, example, self.tags, rule, self.listing)

    def format_call(self, name: str, arguments: str) -> str:
        """A call as the instruction says to write it; `arguments` is JSON text."""
        return self.syntax.spelled(name, arguments)

    def parse(self, text: str, definitions: Sequence[ToolDef] | None = None) -> ParsedText:
        """The calls in a whole answer, and its text without them. Never raises, for any text.

        Args:
            text: The answer.
            definitions: The tools of the offer. Values without types are read by their schemas,
                and calls without tags by their names: without them, values are texts, and what
                has no tag is the answer's text.
        """
        scanner = TextScanner(self._tags_for(definitions), self._begins_in)
        shown = scanner.feed(text) + scanner.flush()
        calls = tuple(scanner.calls)
        errors = tuple([call.detail for call in calls if call.detail is not None])
        return ParsedText(shown, calls, errors, scanner.take_reasoning(), scanner.empty_blocks)

    def stream_formatter(self, definitions: Sequence[ToolDef] | None = None) -> CallStreamFormatter:
        """A new formatter for one answer, which also knows its calls; `parse` has the arguments."""
        return TextScanner(self._tags_for(definitions), self._begins_in)

    def _tags_for(self, definitions: Sequence[ToolDef] | None) -> ScanTags:
        if definitions is None or not self._needs_offer:
            return self._scan_tags
        known = self._for_offer
        if known is None or known[0] is not definitions:
            tags = ScanTags(self._syntaxes, self.thinking, known_tools(definitions))
            known = self._for_offer = (definitions, tags)
        return known[1]

    def __repr__(self) -> str:
        return f"TagToolParser({self.tags!r})"


def _make_syntax(tags: object) -> CallSyntax:
    match tags:
        case (str(start), str(end)):
            return CallSyntax(start, (end,))
    raise TypeError(f"tags= takes a start and an end tag, or a CallSyntax, not {tags!r}")
