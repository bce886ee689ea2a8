"""Which results of a history answer which calls, and what is where it shouldn't be."""

# What is hard: calls needn't have ids, and results needn't name them. Older servers give no ids,
# newer ones do; many programs send `tool_name` alone. So a result belongs to a call of the message
# before it
#
#     1. by its `tool_call_id`, if a call has this id
#     2. by its `tool_name`, in the order of the calls of this name, unless ids say otherwise
#     3. by its place, if it names nothing and there are as many results as calls

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from lutumpy.rules.ollama.shapes import refusal
from lutumpy.rules.problem import Problem, items, mapping, text

__all__ = ["Answers", "Named", "call_named", "check_sequence", "match_results", "result_named"]


class Named(NamedTuple):
    """By what a call or a result is known."""

    id: str | None
    name: str | None


class Answers(NamedTuple):
    """Which results answer which calls.

    Attributes:
        of_calls: For each call the number of its result, or `None`.
        loose: The numbers of the results that answer none.
    """

    of_calls: list[int | None]
    loose: list[int]


def call_named(call: Any) -> Named:
    """By what an entry of `tool_calls` is known."""
    body = mapping(call) or {}
    function = mapping(body.get("function")) or {}
    return Named(text(body.get("id")) or None, text(function.get("name")))


def result_named(message: Mapping[str, Any]) -> Named:
    """By what a message with a result is known; older programs write `name`."""
    name = text(message.get("tool_name")) or text(message.get("name"))
    return Named(text(message.get("tool_call_id")) or None, name or None)


def match_results(calls: Sequence[Named], results: Sequence[Named]) -> Answers:
    """Which of the results right behind a message answer its calls."""
    found: list[int | None] = [None] * len(calls)
    left = list(range(len(results)))

    def settle(fits: Any) -> None:
        for number, call in enumerate(calls):
            if found[number] is None:
                place = next((at for at in left if fits(call, results[at])), None)
                if place is not None:
                    found[number] = place
                    left.remove(place)

    known = {call.id for call in calls if call.id is not None}
    settle(lambda call, result: call.id is not None and call.id == result.id)
    # An id that no call has is none that the model gave: the name counts.
    settle(lambda call, result: result.id not in known and call.name == result.name is not None)
    if len(calls) == len(results):
        settle(lambda call, result: result.id not in known and result.name is None)
    return Answers(found, left)


def check_sequence(messages: Any) -> list[Problem]:
    """The problems of calls and their results."""
    found: list[Problem] = []
    entries = items(messages)
    index = 0
    while index < len(entries):
        message = mapping(entries[index]) or {}
        end = index + 1
        while end < len(entries) and (mapping(entries[end]) or {}).get("role") == "tool":
            end += 1
        calls = items(message.get("tool_calls")) if message.get("role") == "assistant" else ()
        first = index if message.get("role") == "tool" else index + 1
        found += _check_group(index, calls, entries[first:end], first)
        index = end
    return found


def _check_group(
    index: int, calls: Sequence[Any], results: Sequence[Any], first: int
) -> list[Problem]:
    named = [call_named(call) for call in calls]
    answering = [result_named(result) for result in results]
    answers = match_results(named, answering)
    found: list[Problem] = []
    for number, place in enumerate(answers.of_calls):
        if place is None:
            where = f"messages[{index}].tool_calls[{number}]"
            message = "Invalid tool usage: mismatch between tool calls and tool results"
            found.append(_about(refusal(_OPEN, where, message, "some"), named[number]))
    answered = {named[number] for number, at in enumerate(answers.of_calls) if at is not None}
    for place in answers.loose:
        own = answering[place]
        is_second = any(_is_same(own, call) for call in answered)
        message = f"Unexpected tool call id {own.id or own.name or ''} in tool results"
        rule = "ollama.single_result" if is_second else "ollama.call_for_result"
        problem = refusal(rule, f"messages[{first + place}]", message, "some")
        found.append(_about(problem, own))
    return found


_OPEN = "ollama.results_after_calls"


def _is_same(result: Named, call: Named) -> bool:
    if result.id is not None and call.id is not None:
        return result.id == call.id
    return result.name == call.name


def _about(problem: Problem, named: Named) -> Problem:
    from dataclasses import replace

    ids = () if named.id is None else (named.id,)
    tools = () if not named.name else (named.name,)
    return replace(problem, call_ids=ids, tools=tools)
