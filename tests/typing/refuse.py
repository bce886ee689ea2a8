"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from __future__ import annotations

from accept import (
    AppTools,
    ClosedTools,
    Find,
    FindCall,
    Hits,
    Note,
    NoteTools,
    ReadNote,
    ReadNoteCall,
    Turn,
    count,
    look,
)
from pydantic import BaseModel
from typing_extensions import assert_never

from lutumpy import (
    Finished,
    Model,
    Reject,
    Session,
    ToolAvailability,
    ToolCall,
    ToolInput,
    ToolRequirement,
    ToolRound,
    Toolset,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.testing import ScriptedModel


def calls(read: ToolCall[ReadNote, Note], find: FindCall) -> None:
    read.complete(Hits(pages=[]))  # refused
    read.complete("a note")  # refused
    read.handled(Hits(pages=[]))  # refused
    read.with_input(Find(query="x"))  # refused
    read.input.query  # refused
    read.fail(3)  # refused
    read.metadata.name = "other"  # refused
    find.complete(None)  # refused


async def functions() -> None:
    count("a")  # refused
    count("a", 3)  # refused
    await look("here")  # refused
    await look("here", index="pages")  # refused
    look.Output  # refused


def offers(session: Session, llm: Model) -> None:
    only, forced = ToolAvailability.only, ToolRequirement.specific
    session.text_turn(llm, tools=AppTools, available=only(ClosedTools.find))  # refused
    session.text_turn(llm, tools=AppTools, require=forced(NoteTools.read_note))  # refused
    session.text_turn(llm, tools=AppTools, describe={ClosedTools.find: "Look."})  # refused
    session.text_turn(llm, tools=AppTools, describe={"find": "Look."})  # refused
    session.text_turn(llm, tools=AppTools, provider={ClosedTools.find: {}})  # refused
    session.text_turn(llm, tools=AppTools, provider={"find": {"openai_chat": {}}})  # refused
    session.text_turn(llm, tools=AppTools, provider={AppTools.find: {"openai_chat": 1}})  # refused
    AppTools.offer(provider={ClosedTools.find: {"openai_chat": {"x": 1}}})  # refused
    AppTools.offer(provider={AppTools.find: {"openai_chat": {"x": b""}}})  # refused
    session.text_turn(llm, available=ToolAvailability.only(AppTools.find))  # refused
    session.text_turn(llm, tools=AppTools, temprature=0.5)  # refused
    session.text_turn("gpt", tools=AppTools)  # refused
    session.text_turn(llm, tools=[AppTools.find])  # refused
    AppTools.offer(available=ToolAvailability.only(ClosedTools.find))  # refused
    AppTools.notes[ClosedTools.find]  # refused
    AppTools.serach  # refused


async def outcomes(session: Session, llm: Model) -> None:
    (await session.text_turn(llm).collect()).round  # refused
    outcome = await session.text_turn(llm, tools=ClosedTools).collect()
    outcome.round  # refused
    if isinstance(outcome, Finished):
        return
    for call in outcome.round.calls:
        if ClosedTools.read_note.matches(call):
            call.complete(Hits(pages=[]))  # refused
        elif ClosedTools.find.matches(call):
            call.input.name  # refused
        else:
            assert_never(call)  # refused
    outcome.round.text = ""  # refused
    outcome.round.commit(session)  # refused
    outcome.round.commit(session, ["done"])  # refused


def rounds(any_call: ToolRound[ReadNoteCall]) -> ToolRound[FindCall]:
    return any_call  # refused


@tool_fn
def half(number: int) -> float:
    return number / 2


@tool_fn(timout=3)  # refused
def third(number: int) -> float:
    return number / 3


@tool_input(name="wrong", effect="write")  # refused
class Wrong(ToolInput[None]):
    pass


class Undecorated(BaseModel):
    pass


class Declared(Toolset):
    of_an_instance = tool(Turn("left"))  # refused
    nested_class = nested(Undecorated)  # refused
    of_a_number = tool(3)  # refused


class Listed(Toolset, tools=[count, look]):
    pass


class OfNumbers(Toolset, tools=[3]):  # refused
    pass


Listed.selector(3)  # refused
AppTools.offer(available=ToolAvailability.only(Listed.selector(count)))  # refused


@Listed.hooks().on(Listed.selector(count))  # refused
def count_hook(metadata: object, word: int, text: str) -> Reject:
    return Reject("no")


OpenAIChat()  # refused
OpenAIChat("m", clinet=None)  # refused
ScriptedModel([], api=5)  # refused
