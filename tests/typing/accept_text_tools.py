"""Text tools: everything here is accepted by mypy --strict and pyright. Nothing of it is run."""

from collections.abc import Sequence

from accept_streams import Open
from typing_extensions import assert_type

from lutumpy import NeedsTools, Session, ToolDef
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import ScriptedModel
from lutumpy.text_tools import (
    CallSyntax,
    ParsedCall,
    ParsedText,
    StreamFormatter,
    TagToolParser,
    TextTools,
    ToolCallParser,
)


class Shown:
    def feed(self, chunk: str) -> str:
        return chunk

    def flush(self) -> str:
        return ""


class Own:
    tags = ("<", ">")

    def format_instruction(self, definitions: Sequence[ToolDef]) -> str:
        return "".join([d.name + str(d.input_schema) for d in definitions])

    def parse(self, text: str) -> ParsedText:
        return ParsedText(text, [ParsedCall("a", "{}")], ["no"])

    def stream_formatter(self) -> Shown:
        return Shown()


parsers: list[ToolCallParser] = [
    Own(),
    TagToolParser(),
    TagToolParser(("<a>", "</a>")),
    TagToolParser(
        CallSyntax("<a>", ("</a>",)), also=[CallSyntax("<b>", ("</b>",))], starts_thinking=True
    ),
    TagToolParser.hermes(),
    TagToolParser.mistral(),
    TagToolParser.llama(),
]
formatter: StreamFormatter = TagToolParser().stream_formatter()
assert_type(TagToolParser().parse(""), ParsedText)
assert_type(TagToolParser().tags, tuple[str, str])


async def talk(session: Session) -> None:
    for llm in (
        TextTools(OpenAIChat(model="m"), parser=Own()),
        TextTools(AnthropicMessages("m"), guided=True),
        TextTools(ScriptedModel([])),
    ):
        outcome = await session.text_turn(llm, tools=Open).collect()
        if isinstance(outcome, NeedsTools):
            for call in outcome.round.calls:
                if Open.read.matches(call):
                    assert_type(call.input.path, str)
        async with session.text_turn(llm, tools=Open).stream() as stream:
            async for _ in stream:
                pass
