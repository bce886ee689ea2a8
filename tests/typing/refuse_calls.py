"""Each line marked `# refused` is an error for mypy --strict and pyright; no other line is.

Nothing of it is run.
"""

from typing import Any

from accept_calls import Closed, SomeCall, run
from accept_hooks import AppTools, FileText, Hits, ReadFile, Search
from typing_extensions import assert_never

from lutumpy import HandledTool, Session, ToolCall, ToolResult, ToolRound, ToolRoundPlan


def report(plan: ToolRoundPlan) -> None:
    for handled in plan.handled:
        if AppTools.read_file.matches(handled):
            handled.input.query  # refused
            handled.output.hits  # refused
    for rejected in plan.rejected:
        if AppTools.read_file.matches(rejected):
            rejected.call.input.query  # refused
            rejected.call.complete(Hits(hits=[]))  # refused
    AppTools.read_file.matches("read_file")  # refused
    AppTools.read_file.matches(plan)  # refused


def own(call: ToolCall[ReadFile, FileText]) -> HandledTool[Search, Hits]:
    return call.handled(FileText(text=""))  # refused


def bound(call: SomeCall) -> None:
    match call:
        case ToolCall(input=ReadFile() as read):
            read.query  # refused
        case ToolCall(input=Search(query=query)):
            query.hits  # refused


def forgotten(call: SomeCall) -> None:
    match call.input:
        case ReadFile():
            pass
        case never:
            assert_never(never)  # refused


def forgotten_by_matches(call: SomeCall) -> None:
    if Closed.read_file.matches(call):
        call.complete(Hits(hits=[]))  # refused
    else:
        assert_never(call)  # refused


def approve(round: ToolRound[SomeCall]) -> list[ToolResult]:
    for request in round.approvals:
        request.complete("yes")  # refused
        request.approve("yes")  # refused
        request.reject()  # refused
        run(request)  # refused
    return round.approvals  # refused


def unstable(session: Session, llm: Any) -> None:
    Closed.offer(prefix_stable="yes")  # refused
    session.text_turn(llm, prefix_stable=True)  # refused
    session.text_turn(llm, tools=Closed, prefix_stable=None)  # refused
