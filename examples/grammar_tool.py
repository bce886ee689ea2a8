"""Tools that take a text in place of JSON: the model writes an expression, held to a grammar.

A calculator takes sums in a Lark grammar, and an alarm clock a time that a regular expression
allows. OpenAI's models are held to both while they write. Models and hosts that know no such tools
are offered functions with one string, so the program is the same everywhere: what doesn't match the
regular expression never reaches the clock, and the calculator reads its text with care anyway.

Run:    python examples/grammar_tool.py            a scripted model, no key
        python examples/grammar_tool.py --live     OpenAI, with OPENAI_API_KEY;
                                                   --model NAME for another model
Prints: each call as the text that the model wrote, with its result, and the answer.
"""

from __future__ import annotations

import argparse
import ast
import operator
from collections.abc import Callable
from fractions import Fraction

from typing_extensions import assert_never

from lutumpy import (
    AdapterError,
    Finished,
    Lark,
    Model,
    NeedsTools,
    Regex,
    Session,
    Skip,
    ToolCall,
    ToolError,
    ToolResult,
    Toolset,
    text_tool,
    tool,
)
from lutumpy.adapters.openai import OpenAIResponses
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8

SUMS = Lark(
    r"""
start: term (("+" | "-") term)*
term: factor (("*" | "/") factor)*
factor: NUMBER | "(" start ")"
NUMBER: /[0-9]+(\.[0-9]+)?/
"""
)
OPERATORS: dict[type[ast.operator], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(node: ast.expr) -> Fraction:
    """The value of a sum. A grammar isn't enforced everywhere, so nothing else is taken."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return Fraction(str(number))
        case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
            return OPERATORS[type(op)](evaluate(left), evaluate(right))
    raise ToolError("only numbers, + - * / and parentheses can be calculated")


@text_tool(format=SUMS, effect="read")
def calculate(expression: str) -> float:
    """Calculate a sum exactly.

    Args:
        expression: Numbers with + - * / and parentheses, without spaces.
    """
    try:
        return float(evaluate(ast.parse(expression, mode="eval").body))
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError) as error:
        raise ToolError(f"{expression!r} has no value: {type(error).__name__}") from error


@text_tool(format=Regex("([01][0-9]|2[0-3]):[0-5][0-9]"))
def set_alarm(time: str, *, alarms: Skip[list[str]]) -> str:
    """Set an alarm for today.

    Args:
        time: Hours and minutes, as 07:30.
    """
    alarms.append(time)
    return f"The alarm rings at {time}."


class Desk(Toolset[ToolCall[str, float] | ToolCall[str, str]]):
    calculate = tool(calculate)
    set_alarm = tool(set_alarm)


def run(call: ToolCall[str, float] | ToolCall[str, str], alarms: list[str]) -> ToolResult:
    """Run one call. Its input is the text, whatever form the API gave it."""
    try:
        if Desk.calculate.matches(call):
            return call.complete(call.call_sync())
        if Desk.set_alarm.matches(call):
            return call.complete(call.call_sync(alarms=alarms))
    except ToolError as error:
        return call.fail(error)
    assert_never(call)


def talk(llm: Model, question: str, alarms: list[str]) -> str:
    """Ask until there is an answer."""
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match session.text_turn(llm, tools=Desk).collect_sync():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=tool_round):
                results = [run(call, alarms) for call in tool_round.calls]
                for call, done in zip(tool_round.calls, results, strict=True):
                    print(f"{call.metadata.name}: {call.input} -> {done.content}")
                for issue in tool_round.issues:
                    print(f"{issue.metadata.name}: {issue.detail}")
                tool_round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(
        calls=[
            Call.of_text("calculate", "(17.5+3*4)/2"),
            Call.of_text("set_alarm", "quarter to nine"),
        ]
    ),
    Reply(calls=[Call.of_text("set_alarm", "08:45")]),
    Reply(text="It takes 14.75 hours, and the alarm is set for 08:45."),
]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-5-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model
    if options.live:
        llm = OpenAIResponses(options.model)
    else:
        llm = ScriptedModel(SCRIPT, api="openai_responses")
    alarms: list[str] = []
    question = "How long are 17.5 hours and three shifts of four, halved? Wake me at 8:45."
    try:
        print(talk(llm, question, alarms))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")
    print(f"alarms: {', '.join(alarms)}")


if __name__ == "__main__":
    main()
