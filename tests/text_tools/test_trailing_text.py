"""Text behind a call's JSON: a sentence means nothing, a piece of JSON makes the call unreadable.

A call that is run has to be what the model wrote, all of it (rules C5, T1, T2).
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from text_toolkit import Tools, asked, parsed

from lutumpy import Finished, NeedsTools, ToolDef, Toolset, tool, tool_fn
from lutumpy.testing import Reply, ScriptedModel
from lutumpy.text_tools import CallSyntax, ParsedCall, TagToolParser, TextTools, text_formats
from lutumpy.text_tools.body_syntax import BodySyntax
from lutumpy.text_tools.guided_answer import GuidedAnswers

DELETE = '{"name": "delete", "args": {"path": "x"}}'
BEFORE = '{"name": "look", "args": {}}'
BARE = '{"path": "x"}'

# What stands before and behind a call, in every way of writing calls that there is.
PLACES: dict[str, tuple[Any, str, str, str]] = {
    "default": (TagToolParser(), "[TOOL_CALL]", DELETE, "[/TOOL_CALL]"),
    "array": (TagToolParser(), "[TOOL_CALL][", DELETE, "][/TOOL_CALL]"),
    "second of an array": (TagToolParser(), f"[TOOL_CALL][{BEFORE},", DELETE, "][/TOOL_CALL]"),
    "second of two": (TagToolParser(), f"[TOOL_CALL]{BEFORE},", DELETE, "[/TOOL_CALL]"),
    "behind an array": (TagToolParser(), "[TOOL_CALL]", f"[{DELETE}]", "[/TOOL_CALL]"),
    "fence": (TagToolParser(), "[TOOL_CALL]```json\n", DELETE, "\n```[/TOOL_CALL]"),
    "behind a fence": (TagToolParser(), "[TOOL_CALL]```\n", f"{DELETE}\n```", "[/TOOL_CALL]"),
    "in a code block": (TagToolParser(), "```\n[TOOL_CALL]", DELETE, "[/TOOL_CALL]\n```"),
    "no end tag": (TagToolParser(), "[TOOL_CALL]", DELETE, ""),
    "own tags": (TagToolParser(("[[", "]]")), "[[", DELETE, "]]"),
    "hermes": (TagToolParser.hermes(), "<tool_call>\n", DELETE, "\n</tool_call>"),
    "mistral": (TagToolParser.mistral(), "[TOOL_CALLS]delete[ARGS]", BARE, ""),
    "mistral, ended": (TagToolParser.mistral(), "[TOOL_CALLS]delete", BARE, "</s>"),
    "mistral, JSON": (TagToolParser.mistral(), "[TOOL_CALLS][", DELETE, "]"),
    "mistral, behind": (TagToolParser.mistral(), "[TOOL_CALLS]", f"[{DELETE}]", ""),
    "llama": (TagToolParser.llama(), "<function=delete>", BARE, "</function>"),
    "llama, python tag": (TagToolParser.llama(), "<|python_tag|>", DELETE, "<|eom_id|>"),
    "llama, second": (TagToolParser.llama(), f"<|python_tag|>{BEFORE}; ", DELETE, ""),
    "guided": (GuidedAnswers(), '{"answer": [', DELETE, "]}"),
    "guided, behind the array": (GuidedAnswers(), '{"answer": ', f"[{DELETE}]", "}"),
    "guided, behind all": (GuidedAnswers(), '{"answer": ', f"[{DELETE}]}}", ""),
}
RESTS = [
    ',"dry_run":true}}', '},"dry_run":true}}', '}},"dry_run":true}}', "}", "}}}", "]", "]}", "}]",
    '"dry_run": true}', '\n  "dry_run": true\n}', ', "dry_run": true', ',\n"a', ":1}", ", 5]}", ",",
    ' , "tags": ["x"]}}', '],"dry_run":true}', ", dry_run: true}", '"', ", }", ",,", ', ["x"]}',
]  # fmt: skip


def cuts(text: str) -> Iterator[list[str]]:
    for size in (1, 2, 5):
        yield [text[pos : pos + size] for pos in range(0, len(text), size)]


def read(parser: Any, text: str) -> tuple[str, list[ParsedCall]]:
    """What a text shows and calls, which must not depend on how it is cut (rules S1, T4)."""
    whole = parser.parse(text)
    for pieces in cuts(text):
        formatter = parser.stream_formatter()
        shown = "".join([formatter.feed(piece) for piece in pieces]) + formatter.flush()
        assert (shown, list(formatter.calls)) == (whole.text, list(whole.calls))
    return whole.text, list(whole.calls)


@pytest.mark.pure
@pytest.mark.parametrize("place", PLACES)
def test_what_may_be_the_rest_of_a_call_makes_it_a_format_error_C5_T2(place: str) -> None:
    parser, before, call, behind = PLACES[place]
    shown, found = read(parser, f"{before}{call}{behind}")
    assert [one.name for one in found if one.problem is None][-1] == "delete"
    around = shown  # the fences of a code block
    for rest in RESTS:
        if place == "own tags" and "]" in rest:
            continue  # the end tag begins there
        text = f"{before}{call}{rest}{behind}"
        shown, found = read(parser, text)
        assert shown in (around, around[:4]), text
        assert [one.name for one in found if one.problem is None] in ([], ["look"]), text
        told = next(one for one in found if one.name == "delete")
        assert told.problem is not None, text
        assert told.problem == "truncated" or rest.strip()[1:] in told.arguments, text
        assert "Write it again" in str(told.detail), text


@pytest.mark.parametrize(
    "rest", [" and so on", "\n[end]", "</function>", "\nThis looks it up, then."]
)
@pytest.mark.parametrize("place", ["default", "hermes", "llama", "behind a fence", "no end tag"])
def test_a_sentence_between_a_call_and_its_end_tag_is_dropped_T1(place: str, rest: str) -> None:
    parser, before, call, behind = PLACES[place]
    if place == "llama" and rest == "</function>":
        pytest.skip("that is the end tag")
    shown, [found] = read(parser, f"{before}{call}{rest}{behind}")
    assert (shown, found.name, found.problem) == ("", "delete", None)


@pytest.mark.parametrize(
    "rest", [' "dry_run": true', " dry_run=true", " Note: dry_run", " 5]", " true", " [1]", "["]
)
def test_a_sentence_with_marks_of_json_is_not_dropped_C5(rest: str) -> None:
    for text in (f"so{rest}", rest):
        if text == "so[" or (text.startswith("so") and rest in (" 5]", " true", " [1]")):
            continue  # a word before it, so it is prose
        _, [found] = read(TagToolParser(), f"[TOOL_CALL]{DELETE} {text}[/TOOL_CALL]")
        assert (found.name, found.problem) == ("delete", "malformed")


def test_text_behind_self_ending_calls_is_shown_T4() -> None:
    for rest in (" now", " - done", "; done", "\n\nIt is gone: x."):
        shown, [found] = read(TagToolParser.mistral(), f"[TOOL_CALLS]delete[ARGS]{BARE}{rest}")
        assert (shown, found.problem) == (rest, None)
        shown, [found] = read(GuidedAnswers(), f'{{"answer": [{DELETE}]}}{rest}')
        assert (shown, found.problem) == (rest, None)


def test_a_fence_inside_of_a_self_ending_call_is_not_shown_T4() -> None:
    text = f"[TOOL_CALLS]```json\n[{DELETE}]\n```"
    assert parsed(f"{text} so", TagToolParser.mistral()) == (" so", [("delete", BARE, None)])
    _, [found] = read(TagToolParser.mistral(), f'{text},"dry_run":true}}')
    assert found.problem == "malformed"


def test_words_that_may_be_a_key_behind_a_self_ending_call_are_told_C5() -> None:
    parser = TagToolParser.mistral()
    for rest in ('path": "x"}', "path: 5}", ' my path": "x"}', "path}", " 5]}", ' "path" x'):
        shown, [call] = read(parser, f"[TOOL_CALLS]delete[ARGS]{{}}{rest}")
        assert (shown, call.name, call.problem) == ("", "delete", "malformed"), rest
    for rest in (" so", " Note: it is gone", ' It\'s "gone".', "so", " a, b", " x [1] y"):
        shown, [call] = read(parser, f"[TOOL_CALLS]delete[ARGS]{{}}{rest}")
        assert (shown, call.problem) == (rest, None), rest
    own = TagToolParser(
        CallSyntax("CALL|", ("STOP",), self_ending=True), also=[CallSyntax("go|", ("og",))]
    )
    shown, found = read(own, f"CALL|{DELETE} and go|{BEFORE}og CALL|{DELETE} so STOP")
    assert (shown, len(found)) == (" and   so STOP", 3)


def test_calls_that_are_not_separated_behind_a_self_ending_one_are_told_C1() -> None:
    for text in (f"[TOOL_CALLS]{DELETE}{BEFORE}", f"[TOOL_CALLS][{DELETE}]\n[{BEFORE}]"):
        shown, found = read(TagToolParser.mistral(), text)
        assert (shown, [(one.name, one.problem) for one in found]) == (
            "",
            [("delete", "malformed")],
        )


def test_a_separator_of_ones_own_leads_to_a_call_or_to_a_format_error() -> None:
    parser = TagToolParser(CallSyntax("<call>", separator=",", self_ending=True))
    _, found = read(parser, f"<call>{BEFORE}, {DELETE}")
    assert [one.problem for one in found] == [None, None]
    for rest in (",", ', "dry_run": true}', ", done", ", 5"):
        shown, [call] = read(parser, f"<call>{DELETE}{rest}")
        assert (shown, call.problem) == ("", "malformed")


def test_more_arguments_behind_those_of_a_bare_name_are_told() -> None:
    parser = TagToolParser(CallSyntax("<call>", ("</call>",), name_end="|"))
    _, [call] = read(parser, f'<call>delete|{BARE}{{"dry_run": true}}</call>')
    assert (call.name, call.problem) == ("delete", "malformed")


def test_a_call_that_the_text_may_go_on_with_is_not_run_T2() -> None:
    """The text is cut where the rest of a call may have begun."""
    for text in (
        f'[TOOL_CALL][{DELETE}, "dry',
        f"[TOOL_CALL][{DELETE}, 5",
        f'[TOOL_CALL][{DELETE},"a"',
    ):
        _, [call] = read(TagToolParser(), text)
        assert (call.name, call.problem) == ("delete", "truncated")
    for text in (f"[TOOL_CALL]{DELETE},", f"[TOOL_CALL]{DELETE}}}"):
        _, [call] = read(TagToolParser(), text)
        assert (call.name, call.problem) == ("delete", "malformed")
    for text in (f"[TOOL_CALL][{DELETE}", f"[TOOL_CALL][{DELETE},", f"[TOOL_CALL]{DELETE}\n[/TOOL"):
        assert read(TagToolParser(), text)[1][0].problem is None
    for text in (f'{{"answer": [{DELETE}],', f'{{"answer": [{DELETE}], "dry'):
        assert [one.problem for one in read(GuidedAnswers(), text)[1]] == ["malformed"]
    assert read(GuidedAnswers(), f'{{"answer": [{DELETE}]')[1][0].problem is None


def test_what_cannot_be_read_reaches_back_to_the_last_call_C5_T2() -> None:
    early = '{"name": "delete", "args": {"paths": [{"p": 1}]}}'
    for body in (
        f'{early}, {{"p": 2}}]}}}}',
        f'{early}, {{"p" 2}}]}}}}',
        f"{early}{{",
        f'[{early}, {{"p": 2}}, "dry_run": true}}]',
        f'[{early}, {{"p" 2}}]}}}}]',
    ):
        _, [call] = read(TagToolParser(), f"[TOOL_CALL]{body}[/TOOL_CALL]")
        assert (call.name, call.problem) == ("delete", "malformed"), body
    for body in (f'[{early}, {{"p": 2', f'{early}, {{"p": 2', f'{early} {{"p": 2'):
        _, [call] = read(TagToolParser(), f"[TOOL_CALL]{body}")
        assert (call.name, call.problem) == ("delete", "truncated")
    _, found = read(TagToolParser(), f'[TOOL_CALL][{DELETE}, {{"name": "look" oops}}][/TOOL_CALL]')
    assert [(one.name, one.problem) for one in found] == [("delete", None), ("look", "malformed")]


RESTS_OF_ELEMENTS = [
    "<parameter=dry_run>true</parameter>", '<parameter name="dry_run">true</parameter></invoke>',
    "</function>", ", dry_run=True)", ")", "dry_run=True", "<dry_run>true</dry_run>", "'", " < ",
]  # fmt: skip
BODIES = [one for one in text_formats() if isinstance(one.syntaxes[0], BodySyntax)]


@pytest.mark.pure
@pytest.mark.parametrize("name", [one.name for one in BODIES if one.syntaxes[0].start])
def test_the_rest_of_a_call_in_any_other_format_makes_it_a_format_error_C5_T2(name: str) -> None:
    (syntax, *_) = next(one.syntaxes for one in BODIES if one.name == name)
    parser = TagToolParser.named(name)
    offered = [ToolDef("delete", "", {"type": "object", "properties": {"path": {}}})]
    text = syntax.spelled("delete", BARE)
    [call] = parser.parse(text, offered).calls
    assert (call.name, call.problem, json.loads(call.arguments)) == ("delete", None, {"path": "x"})
    end = max([text.rfind(one) for one in (*syntax.ends, "</delete>")])
    end = len(text) if end < 0 else end  # a format without an end tag
    for rest in [*RESTS, *RESTS_OF_ELEMENTS]:
        if rest.strip(" ,") in ("", "]"):
            continue  # commas and brackets between calls say nothing
        if rest in syntax.ends:
            continue  # the call's own end, behind which the answer's text stands
        for behind in (text[end:], ""):  # whole, and cut before the end tag
            broken = text[:end] + rest + behind
            found = parser.parse(broken, offered).calls
            run = [json.loads(one.arguments) for one in found if one.problem is None]
            # The element is an argument where each tool has tags of its own.
            assert run in ([], [{"path": "x", "dry_run": "true"}]), (broken, found)
            assert {one.name for one in found} == {"delete"}, (broken, found)
            pieces = [broken[pos : pos + 3] for pos in range(0, len(broken), 3)]
            formatter = parser.stream_formatter(offered)
            _ = [formatter.feed(piece) for piece in pieces], formatter.flush()
            assert tuple(formatter.calls) == found


def test_a_sentence_behind_elements_is_dropped_and_a_call_that_begins_is_its_own_T1_C1() -> None:
    parser = TagToolParser.named("qwen3_coder")
    call = "<function=delete>\n<parameter=path>\nx\n</parameter>\n</function>\n"
    for rest in ("", "This deletes it, then.", "so on\n"):
        _, [found] = read(parser, f"<tool_call>\n{call}{rest}</tool_call>")
        assert (found.name, found.problem) == ("delete", None)
    for rest in ("<function=look", "<function=look>\n<parameter=p>"):
        _, [first, second] = read(parser, f"<tool_call>\n{call}{rest}")
        assert (first.problem, second.problem) == (None, "truncated")
    _, found = read(parser, f"<tool_call>\n{call}<function=look></tool_call>")
    assert [one.problem for one in found] == [None, None]


# --- members of a call ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ('{"name": "delete", "args": {"path": "x"}, "dry_run": true}', "dry_run"),
        ('{"dry_run": true, "name": "delete", "args": {"path": "x"}}', "dry_run"),
        ('{"name": "delete", "path": "x"}', "path"),
        ('{"name": "delete", "args": {}, "id": "42"}', "id"),
        ('{"name": "delete", "args": {}, "type": "file"}', "type"),
        ('{"name": "delete", "args": {}, "ar\\u0067s": {"path": "x"}}', "ar"),
        ('{"name": "delete", "args": {}, "args": {"path": "x"}}', "more than one arguments"),
        ('{"name": "delete", "args": {}, "parameters": {"path": "x"}}', "more than one arguments"),
        ('{"name": "delete", "name": "look"}', "more than one name"),
    ],
)  # fmt: skip
def test_what_a_call_holds_beside_name_and_arguments_is_never_left_out_C5_T1(
    body: str, told: str
) -> None:
    for parser, text in (
        (TagToolParser(), f"[TOOL_CALL]{body}[/TOOL_CALL]"),
        (TagToolParser.hermes(), f"<tool_call>[{body}]</tool_call>"),
        (TagToolParser.mistral(), f"[TOOL_CALLS][{body}]"),
        (TagToolParser.llama(), f"<|python_tag|>{body}<|eom_id|>"),
        (GuidedAnswers(), f'{{"answer": [{body}]}}'),
    ):
        _, [call] = read(parser, text)
        assert call.problem == "malformed"
        assert told in str(call.detail)


def test_members_that_belong_to_the_format_are_let_through() -> None:
    body = '{"type": "function", "name": "delete", "parameters": {"path": "x"}}'
    assert parsed(f"<|python_tag|>{body}", TagToolParser.llama()) == ("", [("delete", BARE, None)])
    body = '{"name": "delete", "arguments": {"path": "x"}, "id": "D681PevKs"}'
    _, [call] = read(TagToolParser.mistral(), f"[TOOL_CALLS][{body}]")
    assert call.problem is None
    _, [call] = read(TagToolParser(), f"[TOOL_CALL]{body}[/TOOL_CALL]")
    assert call.problem == "malformed"  # ids belong to Mistral's format; here it is an argument


def test_a_guided_answer_with_two_answers_is_told() -> None:
    _, [call] = read(GuidedAnswers(), f'{{"answer": [{DELETE}], "answer": [{BEFORE}]}}')
    assert (call.name, call.problem) == ("delete", "malformed")


# --- in a round -----------------------------------------------------------------------------------


@tool_fn
def delete(path: str, dry_run: bool = False) -> str:
    """Delete a file.

    Args:
        path: Which.
        dry_run: Only say what would be deleted.
    """
    raise AssertionError("run")


class Files(Toolset):
    delete = tool(delete)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_call_that_closed_too_early_is_an_issue_of_the_round_S1_C5_T2(streamed: bool) -> None:
    text = '[TOOL_CALL]{"name":"delete","args":{"path":"x"}},"dry_run":true}}[/TOOL_CALL]'
    session = asked()
    turn = session.text_turn(TextTools(ScriptedModel([Reply(text=text)])), tools=Files)
    if streamed:
        with turn.stream_sync() as stream:
            outcome: Any = list(stream) and stream.outcome
    else:
        outcome = turn.collect_sync()
    assert isinstance(outcome, NeedsTools)
    assert outcome.round.calls == ()
    [issue] = outcome.round.issues
    assert (issue.reason, issue.metadata.name) == ("malformed_arguments", "delete")
    assert "',\"dry_run\":true}}'" in issue.detail
    outcome.round.commit(session, [])


def test_arguments_in_a_string_are_an_issue_whatever_follows_in_it_C5() -> None:
    for arguments in ('{"city": "Oslo"}', '{"city": "Oslo"}}, "days": 3}'):
        body = json.dumps({"name": "weather", "args": arguments})
        turn = asked().text_turn(
            TextTools(ScriptedModel([Reply(text=f"[TOOL_CALL]{body}[/TOOL_CALL]")])), tools=Tools
        )
        outcome = turn.collect_sync()
        assert not isinstance(outcome, Finished)
        assert [issue.reason for issue in outcome.round.issues] == ["malformed_arguments"]
        outcome.round.discard()


# --- whatever is broken ---------------------------------------------------------------------------

FUZZED: dict[str, tuple[Any, str, str]] = {
    "default": (TagToolParser(), "[TOOL_CALL]", "[/TOOL_CALL]"),
    "hermes": (TagToolParser.hermes(), "<tool_call>", "</tool_call>"),
    "mistral": (TagToolParser.mistral(), "[TOOL_CALLS]", ""),
    "mistral, ended": (TagToolParser.mistral(), "[TOOL_CALLS]", "</s>"),
    "bare": (TagToolParser.mistral(), "[TOOL_CALLS]delete[ARGS]", ""),
    "llama": (TagToolParser.llama(), "<function=delete>", "</function>"),
    "python tag": (TagToolParser.llama(), "<|python_tag|>", "<|eom_id|>"),
    "guided": (GuidedAnswers(), '{"answer": [', "]}"),
}
ARGUMENTS: list[dict[str, Any]] = [
    {},
    {"path": "x", "dry_run": True},
    {"p": {"q": [1, {"r": "}"}]}, "s": 'a,]"b', "t": [[], {}, -2.5]},
]


def corrupted(text: str, rng: random.Random) -> str:
    """`text` with one or two marks of JSON inserted, deleted, doubled or exchanged."""
    for _ in range(rng.choice((1, 1, 2))):
        kind = rng.randrange(4)
        marks = [pos for pos, char in enumerate(text) if char in '{}[]",:']
        if kind == 0 or not marks:
            pos = rng.randrange(len(text) + 1)
            text = text[:pos] + rng.choice('{}[]",:') + text[pos:]
            continue
        pos = rng.choice(marks)
        if kind == 1:
            text = text[:pos] + text[pos + 1 :]
        elif kind == 2:
            text = text[:pos] + text[pos] * rng.choice((2, 3)) + text[pos + 1 :]
        else:
            text = text[:pos] + rng.choice('{}[]",:') + text[pos + 1 :]
    return text


def is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def strict_calls(body: str, *, bare: bool) -> list[tuple[str, Any]]:
    """The calls of a body in which nothing is left over, however one reads it; else none."""
    try:
        value = json.loads(body, object_pairs_hook=lambda pairs: pairs)
    except ValueError:
        return []
    if bare:
        return [("delete", json.loads(body))] if body.lstrip().startswith("{") else []
    is_array = body.lstrip().startswith("[")
    objects = json.loads(body) if is_array else [json.loads(body)]
    found = []
    for pairs, loaded in zip(value if is_array else [value], objects, strict=True):
        keys = sorted(key for key, _ in pairs) if isinstance(loaded, dict) else []
        if keys in (["args", "name"], ["name"]) and isinstance(loaded["name"], str):
            found.append((loaded["name"], loaded.get("args", {})))
    return found


@pytest.mark.pure
@pytest.mark.parametrize("name", FUZZED)
def test_a_corrupted_block_runs_no_other_call_than_a_strict_reader_finds_C5_S1_T2(
    name: str,
) -> None:
    parser, start, end = FUZZED[name]
    bare = name in ("bare", "llama")
    rng = random.Random(name)
    run = 0
    for _ in range(700):
        arguments = rng.choice(ARGUMENTS)
        written = json.dumps(arguments, indent=rng.choice((None, 1)))
        body = written if bare else f'{{"name": "delete", "args": {written}}}'
        if not bare and name != "guided" and rng.random() < 0.3:
            body = f"[{body}]"
        body = corrupted(body, rng)
        text = start + body + end
        whole = parser.parse(text)
        if name == "guided":
            allowed = strict_calls(f"[{body}]", bare=False)
        else:
            # An array may be cut, a bracket behind a self-ending call is text, and `{}` is an
            # issue beside the call.
            cut = body.rstrip().removesuffix(",") if end == "" else body
            allowed = [
                call
                for read_as in (body, f"{cut}]", body.rstrip("["), body.removesuffix("{}"))
                for call in strict_calls(read_as, bare=bare)
            ]
        for call in whole.calls:
            # A round refuses unknown names, and arguments with characters that JSON hasn't.
            if call.problem is None and call.name == "delete" and is_json(call.arguments):
                assert (call.name, json.loads(call.arguments)) in allowed, text
                run += 1
        formatter = parser.stream_formatter()
        shown, pos = "", 0
        while pos < len(text):
            size = rng.randrange(1, 9)
            shown += formatter.feed(text[pos : pos + size])
            pos += size
        shown += formatter.flush()
        assert (shown, list(formatter.calls)) == (whole.text, list(whole.calls)), text
        assert whole.text.strip() in ("", "[") or all(call.problem for call in whole.calls), text
    assert run > 20
