"""What users write, and mypy --strict and pyright accept. Nothing of it is run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from openai import OpenAI
from pydantic import BaseModel, Field, RootModel
from typing_extensions import assert_never, assert_type

from lutumpy import (
    AssistantTurn,
    CommitError,
    Complete,
    Finished,
    HandledTool,
    Model,
    NeedsTools,
    NoTools,
    Offer,
    Selector,
    Session,
    Skip,
    ToolAvailability,
    ToolCall,
    ToolCallIssue,
    ToolDecision,
    ToolDef,
    ToolFn,
    ToolInput,
    ToolMetadata,
    ToolRequirement,
    ToolResult,
    ToolRound,
    Toolset,
    Transcript,
    TurnResult,
    Usage,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call, Reply, ScriptedModel

# --- declarations


class Note(BaseModel):
    text: str


class Hits(BaseModel):
    pages: list[str]


class Index:
    pages: list[str]


@tool_input
class ReadNote(ToolInput[Note]):
    """Read a note."""

    name: str


@tool_input(name="find", output=Hits, timeout=2.5, effect="read")
class Find(BaseModel):
    query: Annotated[str, Field(description="What to look for.")]


@tool_input(name="forget")
class Forget(ToolInput[None]):
    name: str


@tool_input(name="forget_all", output=None)
class ForgetAll(BaseModel):
    sure: Literal[True]


class Left(BaseModel):
    kind: Literal["left"]


class Right(BaseModel):
    kind: Literal["right"]
    degrees: int


@tool_input(name="turn", output=str)
class Turn(RootModel[Left | Right]):
    """Turn."""


@tool_fn
def count(word: str, text: str) -> int:
    return text.count(word)


@tool_fn(name="look_around", idempotent=True)
async def look(where: str, depth: int = 1, *, index: Skip[Index]) -> Hits:
    return Hits(pages=[*index.pages[:depth], where])


# What a decorator returns is what it was given: a class, or a function to be called as before.
assert_type(ReadNote(name="a").name, str)
assert_type(ReadNote.model_validate({"name": "a"}), ReadNote)
assert_type(count("a", text="b"), int)
assert_type(look.definition, ToolDef)
input_model: type[BaseModel] = look.Input


async def functions() -> None:
    assert_type(await look("here", 2, index=Index()), Hits)
    plain: Callable[[str, str], int] = count
    plain("a", "b")
    some_tool: ToolFn[..., int] = count
    some_tool.name.upper()
    any_tool: list[ToolFn[..., Any]] = [count, look]
    any_tool.clear()


# --- toolsets


class NoteTools(Toolset):
    read_note = tool(ReadNote)
    forget = tool(Forget, off=True)


class AppTools(Toolset):
    find = tool(Find, output=Hits)
    turn = tool(Turn, output=str)
    count = tool(count)
    look = tool(look)
    forget_all = tool(ForgetAll, output=None)
    notes = nested(NoteTools)


class ListedTools(Toolset, tools=[count, look, ReadNote, Find]):
    notes = nested(NoteTools)


assert_type(ListedTools.selector(ReadNote), Selector[ListedTools, ReadNote, Note])
assert_type(ListedTools.selector(Find), Selector[ListedTools, Find, Any])
assert_type(ListedTools.selector("count"), Selector[ListedTools, Any, Any])
only_listed: ToolAvailability[ListedTools] = ToolAvailability.only(ListedTools.selector(look))


@ListedTools.hooks().on(ListedTools.selector(look))
async def look_hook(
    metadata: ToolMetadata, where: str, depth: int = 1, **_: Any
) -> ToolDecision[Any, Hits]:
    return Complete(Hits(pages=[where]))


def found_by_its_function(call: BaseToolCall) -> None:
    assert_type(ListedTools.selector(count).apply(call, count), int)


class MoreTools(AppTools):
    read_note_again = tool(ReadNote)


ReadNoteCall = ToolCall[ReadNote, Note]
FindCall = ToolCall[Find, Hits]
TurnCall = ToolCall[Turn, str]


class ClosedTools(Toolset[ReadNoteCall | FindCall | TurnCall]):
    read_note = tool(ReadNote)
    find = tool(Find, output=Hits)
    turn = tool(Turn, output=str)


def selectors() -> None:
    assert_type(NoteTools.read_note, Selector[NoteTools, ReadNote, Note])
    assert_type(NoteTools.forget, Selector[NoteTools, Forget, None])
    assert_type(AppTools.find, Selector[AppTools, Find, Hits])
    assert_type(AppTools.forget_all, Selector[AppTools, ForgetAll, None])
    assert_type(AppTools.notes[NoteTools.read_note], Selector[AppTools, ReadNote, Note])
    assert_type(AppTools.notes.read_note, Selector[AppTools, Any, Any])
    assert_type(MoreTools.read_note_again, Selector[MoreTools, ReadNote, Note])
    assert_type(MoreTools.find, Selector[MoreTools, Find, Hits])
    assert_type(AppTools.find.name, str)
    by_selector = {AppTools.find: 1, AppTools.notes.read_note: 2}
    by_selector[AppTools.notes[NoteTools.read_note]] = 3
    for definition in AppTools.definitions():
        assert_type(definition, ToolDef)
    for selector in AppTools.selectors():
        definition = selector.definition
    AppTools.definitions_for([AppTools.find, AppTools.notes.read_note])


# --- turns


async def one_turn(session: Session, llm: Model) -> None:
    turn = session.text_turn(
        llm,
        tools=AppTools,
        available=ToolAvailability.default_plus(AppTools.notes[NoteTools.forget]),
        require=ToolRequirement.specific(AppTools.find),
        describe={AppTools.find: "Look in public pages only.", AppTools.notes.read_note: "Read."},
        parallel=False,
        provider={
            AppTools.find: {"anthropic_messages": {"defer_loading": True, "x": [1, {"y": None}]}},
            AppTools.notes.read_note: {},
        },
        temperature=0.1,
        max_output_tokens=100,
        extra={"seed": 1},
    )
    outcome = await turn.collect()
    match outcome:
        case NeedsTools(round=round):
            assert_type(round, ToolRound[BaseToolCall])
            results: list[ToolResult | HandledTool[Any, Any]] = []
            for call in round.calls:
                if AppTools.find.matches(call):
                    assert_type(call.input, Find)
                    assert_type(call.input.query, str)
                    results.append(call.complete(Hits(pages=[])))
                elif AppTools.notes[NoteTools.read_note].matches(call):
                    results.append(call.handled(Note(text=call.input.name)))
                elif AppTools.turn.matches(call):
                    match call.input.root:
                        case Right(degrees=degrees):
                            results.append(call.complete(str(degrees)))
                        case Left():
                            results.append(call.reject("not to the left"))
                elif AppTools.look.matches(call):
                    assert_type(await call.call(index=Index()), Hits)
                    results.append(call.complete(await look(**call.arguments, index=Index())))
                elif AppTools.count.matches(call):
                    results.append(call.complete(count(**call.arguments)))
                elif AppTools.forget_all.matches(call):
                    results.append(call.complete(None))
                else:
                    assert_type(call.metadata, ToolMetadata)
                    results.append(call.fail(ValueError("not known")))
            results.extend(issue.reject("not today") for issue in round.issues)
            try:
                round.commit(session, results)
            except CommitError as error:
                print([problem.call_id for problem in error.problems])
                round.discard()
        case Finished(result=result):
            assert_type(result, TurnResult[None])
            assert_type(result.text, str)
            assert_type(result.usage, Usage)
            assert_type(result.refusal, str | None)


def every_call_is_handled(session: Session, llm: Model) -> None:
    outcome = session.text_turn(llm, tools=ClosedTools).collect_sync()
    if isinstance(outcome, Finished):
        print(outcome.result.text)
    else:
        assert_type(outcome, NeedsTools[ReadNoteCall | FindCall | TurnCall])
        for call in outcome.round.calls:
            if ClosedTools.read_note.matches(call):
                call.complete(Note(text=call.input.name))
            elif ClosedTools.find.matches(call):
                call.complete(Hits(pages=[call.input.query]))
            elif ClosedTools.turn.matches(call):
                call.with_input(Turn(Left(kind="left")))
            else:
                assert_never(call)
        issues: tuple[ToolCallIssue, ...] = outcome.round.issues
        print(issues, outcome.round.expect_one().metadata)


async def without_tools(session: Session, llm: Model) -> None:
    assert_type(await session.text_turn(llm).collect(), TurnResult[None])
    assert_type(session.text_turn(llm, temperature=1.0).collect_sync(), TurnResult[None])
    staged = await session.text_turn(llm).collect_staged()
    assert_type(staged, Finished[None])
    staged.commit(session)
    assert_type(session.turns(), list[AssistantTurn])


# --- clients of one's own


def own_client(client: OpenAI, transcript: Transcript) -> None:
    offer = ClosedTools.offer(
        require=ToolRequirement.at_least_one(), available=ToolAvailability.all()
    )
    assert_type(offer, Offer[ReadNoteCall | FindCall | TurnCall])
    body = OpenAIChat.request(transcript, offer, temperature=0.5)
    assert_type(body, dict[str, Any])
    reply = client.chat.completions.create(model="m", **body)
    outcome = offer.read(OpenAIChat.response(reply), transcript)
    assert_type(outcome, NeedsTools[ReadNoteCall | FindCall | TurnCall] | Finished[None])
    AnthropicMessages.request(transcript, NoTools.offer(), stream=True)
    OpenAIResponses.request(transcript)


# --- models and fields


models: list[Model] = [
    OpenAIChat("m"),
    OpenAIResponses(model="m", base_url="http://localhost", api_key="k"),
    AnthropicMessages("m", temperature=0.5),
    ScriptedModel([Reply(calls=[Call("find", {"query": "x"})])], api="anthropic_messages"),
]


class Plan(BaseModel):
    first: Selector[AppTools]
    then: list[Selector[AppTools]] = []


def planned(plan: Plan) -> ToolAvailability[AppTools]:
    return ToolAvailability.only(plan.first, *plan.then)
