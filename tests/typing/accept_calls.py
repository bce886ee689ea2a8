"""Narrowing calls, and what became of them, by `matches` and by `match`.

Both checkers accept it; nothing is run.
"""

from typing import Any

from accept_hooks import AppTools, DataTools, FileText, GetUser, Hits, ReadFile, Search
from pydantic import BaseModel
from typing_extensions import assert_never, assert_type

from lutumpy import (
    ApprovalRequest,
    HandledTool,
    RejectedToolCall,
    Selector,
    Session,
    ToolAvailability,
    ToolCall,
    ToolResult,
    ToolRound,
    ToolRoundPlan,
    Toolset,
    tool,
)
from lutumpy.hooks import BaseToolCall

SomeCall = ToolCall[ReadFile, FileText] | ToolCall[Search, Hits]


class Closed(Toolset[SomeCall]):
    read_file = tool(ReadFile)
    search = tool(Search, output=Hits)


# --- `matches` on calls, handled and rejected ones.
# Before it, a handled one is `HandledTool[Any, Any]`.


def report(plan: ToolRoundPlan) -> None:
    for handled in plan.handled:
        assert_type(handled, HandledTool[Any, Any])
        if AppTools.read_file.matches(handled):
            assert_type(handled, HandledTool[ReadFile, FileText])
            assert_type(handled.input.path, str)
            assert_type(handled.output.text, str)
        elif AppTools.data[DataTools.get_user].matches(handled):
            assert_type(handled.input, GetUser)
        elif AppTools.shout.matches(handled):
            assert_type(handled, HandledTool[BaseModel, str])
        assert_type(handled.metadata.name, str)
    for rejected in plan.rejected:
        assert_type(rejected.call, BaseToolCall)
        assert_type(rejected.selector, Selector[Any, Any, Any])
        if AppTools.read_file.matches(rejected):
            assert_type(rejected, RejectedToolCall[ToolCall[ReadFile, FileText]])
            assert_type(rejected.call.input.path, str)
        elif AppTools.search.matches(rejected.call):
            assert_type(rejected.call.input.query, str)


def own(call: ToolCall[ReadFile, FileText]) -> HandledTool[ReadFile, FileText]:
    HandledTool(call.metadata, call.input, FileText(text=""))
    RejectedToolCall(call.metadata, call, "no", "policy")
    return call.handled(FileText(text=""))


# --- `match`. Both checkers know what is bound inside the pattern; pyright alone narrows the call
# around it, which accept_match_pyright.py shows. So for mypy, bind what is needed, or match the
# input.


def bound(call: BaseToolCall) -> str:
    match call:
        case ToolCall(input=ReadFile(path=path)):
            assert_type(path, str)
            return path
        case ToolCall(input=Search() as search):
            assert_type(search, Search)
            return search.query
        case ToolCall(metadata=metadata):
            return metadata.name
    return ""


def of_a_union(call: SomeCall) -> str:
    match call:
        case ToolCall(input=ReadFile() as read):
            assert_type(read, ReadFile)
            return read.path
        case ToolCall(input=Search() as search):
            assert_type(search, Search)
            return search.query
    return ""


def by_input(call: SomeCall) -> str:
    """Proves that every input class is handled, in both checkers."""
    match call.input:
        case ReadFile(path=path):
            return path
        case Search(query=query):
            return query
        case never:
            assert_never(never)


def run(call: SomeCall) -> ToolResult:
    """To complete a call, and to prove that every tool is handled: `matches`."""
    if Closed.read_file.matches(call):
        return call.complete(FileText(text=call.input.path))
    if Closed.search.matches(call):
        return call.complete(Hits(hits=[call.input.query]))
    assert_never(call)


# --- Requests for approval stand beside the calls, so the proof above holds for every round.


def answer(round: ToolRound[SomeCall]) -> list[ToolResult]:
    assert_type(round.calls, tuple[SomeCall, ...])
    assert_type(round.approvals, tuple[ApprovalRequest, ...])
    return [*map(run, round.calls), *map(approve, round.approvals)]


def answer_plan(plan: ToolRoundPlan[SomeCall]) -> list[ToolResult]:
    return [*map(run, plan.pending), *[request.reject("no") for request in plan.approvals]]


def approve(request: ApprovalRequest) -> ToolResult:
    assert_type(request.server_label, str)
    assert_type(request.arguments, dict[str, Any])
    if request.server_label == "wiki":
        return request.approve()
    return request.complete(False)


def of_any_tool(call: BaseToolCall) -> str:
    """A hook for calls of every tool tells them apart."""
    if isinstance(call, ApprovalRequest):
        assert_type(call, ApprovalRequest)
        return call.server_label
    return call.metadata.name


# --- A list of tools that stays the same.

Closed.offer(available=ToolAvailability.only(Closed.search), prefix_stable=True)


def stable(session: Session, llm: Any) -> None:
    session.text_turn(llm, tools=Closed, prefix_stable=True)
    session.structured_turn(llm, FileText, tools=Closed, prefix_stable=True)
