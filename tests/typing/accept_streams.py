"""Streams and typed answers: mypy --strict and pyright accept all of it. Nothing of it is run."""

from pydantic import BaseModel
from typing_extensions import assert_never, assert_type

from lutumpy import (
    Finished,
    NeedsTools,
    Session,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallReady,
    ToolInput,
    Toolset,
    TurnResult,
    tool,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat


class Text(BaseModel):
    text: str


@tool_input(name="read")
class Read(ToolInput[Text]):
    path: str


@tool_input(name="find")
class Find(ToolInput[list[str]]):
    words: str


class Open(Toolset):
    read = tool(Read)
    find = tool(Find)


class Closed(Toolset[ToolCall[Read, Text] | ToolCall[Find, list[str]]]):
    read = tool(Read)
    find = tool(Find)


async def streamed(session: Session, llm: OpenAIChat) -> None:
    async with session.text_turn(llm, tools=Closed).stream() as stream:
        async for event in stream:
            match event:
                case TextDelta(text=text):
                    assert_type(text, str)
                case ToolCallDelta(id=call_id, name=name, arguments=fragment):
                    assert_type((call_id, name, fragment), tuple[str, str, str])
                case ToolCallReady(call=call):
                    if Closed.read.matches(call):
                        assert_type(call.input, Read)
                    elif Closed.find.matches(call):
                        assert_type(call.input, Find)
                    else:
                        assert_never(call)
                case _:
                    pass
    match stream.outcome:
        case NeedsTools(round=round):
            for one in round.calls:
                assert_type(one, ToolCall[Read, Text] | ToolCall[Find, list[str]])
        case Finished(result=result):
            assert_type(result.text, str)


def plain(session: Session, llm: OpenAIChat) -> None:
    with session.text_turn(llm).stream_sync() as stream:
        for _ in stream:
            pass
    assert_type(stream.outcome, TurnResult[None])


def own_stream(session: Session) -> None:
    reader = Open.offer().reader(OpenAIChat.stream_decoder(), session)
    for event in reader.feed({}):
        if isinstance(event, ToolCallReady) and Open.read.matches(event.call):
            assert_type(event.call.input, Read)
    outcome = reader.finish()
    if isinstance(outcome, NeedsTools):
        outcome.round.discard()


async def typed(session: Session, llm: OpenAIChat) -> None:
    result = await session.structured_turn(llm, Text).collect()
    assert_type(result, TurnResult[Text])
    async with session.structured_turn(llm, Text, tools=Open).stream() as stream:
        pass
    if isinstance(stream.outcome, Finished) and stream.outcome.result.value is not None:
        assert_type(stream.outcome.result.value, Text)
