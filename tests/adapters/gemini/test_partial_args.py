"""Arguments that arrive value by value: a call runs with all that was sent, or it is an issue."""

from __future__ import annotations

import itertools
import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from counting import calls_made
from each_case import each
from google.genai import types
from profiles import examples

from lutumpy import DynamicTool, NeedsTools, ToolCall, ToolCallIssue, Toolset, Transcript
from lutumpy.adapters.gemini import Gemini
from lutumpy.doctor import check_messages

ANYTHING = {"type": "object", "properties": {}, "additionalProperties": True}
Tools = Toolset.of("Tools", [DynamicTool("look", "Look.", ANYTHING)])

Entries = list["ToolCall[Any, Any] | ToolCallIssue"]


def chunk(*parts: Any, finish: Any = None) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"role": "model", "parts": list(parts)}}
    return {"candidates": [{**candidate, **({"finishReason": finish} if finish else {})}]}


def call_part(**fields: Any) -> dict[str, Any]:
    return {"functionCall": fields}


def read(*parts: Any, finish: str = "STOP") -> tuple[Entries, list[dict[str, Any]]]:
    """What becomes of the calls of a stream, in order, and the parts of the next request's answer;
    these are checked by the rules.
    """
    transcript = Transcript()
    transcript.push_user("Go.")
    reader = Tools.offer().reader(Gemini.stream_decoder(), transcript)
    for part in parts:
        reader.feed(chunk(part))
    reader.feed(chunk({"text": ""}, finish=finish))
    outcome = reader.finish()
    assert isinstance(outcome, NeedsTools)
    tool_round = outcome.round
    entries: Entries = [*tool_round.calls, *tool_round.issues]
    results = [call.complete("done") for call in tool_round.calls]
    tool_round.commit(transcript, results)
    sent = Gemini.request(transcript, Tools.offer(), model="gemini-3-pro")
    assert check_messages("gemini_generate_content", sent["contents"]) == []
    content = sent["contents"][1]
    found = [part for part in content["parts"] if "functionCall" in part]
    assert all(isinstance(part["functionCall"].get("args", {}), dict) for part in found)
    assert not any("partialArgs" in part["functionCall"] for part in found)
    return entries, found


def streamed(*pieces: Any, **first: Any) -> tuple[Entries, list[dict[str, Any]]]:
    """One call whose arguments arrive in these pieces, and a whole one after it."""
    return read(
        call_part(name="look", willContinue=True, **first),
        *[call_part(partialArgs=[piece], willContinue=True) for piece in pieces],
        call_part(),
        call_part(name="look", args={"sibling": 1}),
    )


def arguments_of(*pieces: Any, **first: Any) -> Any:
    """The arguments with which the call runs; its issue where it doesn't."""
    entries, _ = streamed(*pieces, **first)
    values = [entry.input.values for entry in entries if isinstance(entry, ToolCall)]
    assert values[-1] == {"sibling": 1}
    return values[0] if len(values) == 2 else entries[-1]


def number(path: Any, value: float = 1) -> dict[str, Any]:
    return {"jsonPath": path, "numberValue": value}


def text(path: Any, value: str, goes_on: bool = False) -> dict[str, Any]:
    return {"jsonPath": path, "stringValue": value, **({"willContinue": True} if goes_on else {})}


REFUSED: dict[str, list[Any]] = {
    "no dollar": [number("a")],
    "the whole": [number("$")],
    "an array's element": [number("$[0]")],
    "two dots": [number("$.a..b")],
    "an open bracket": [number("$.a[")],
    "a name without quotes": [number("$[a]")],
    "a wildcard": [number("$.*")],
    "every element": [number("$.a[*]")],
    "from the end": [number("$.a[-1]")],
    "a slice": [number("$.a[0:1]")],
    "two names": [number("$['a','b']")],
    "a filter": [number("$.a[?@.b]")],
    "a leading zero": [number("$.a[00]")],
    "foreign digits": [number("$.a[\u0660]")],
    "open quotes": [number("$['a]")],
    "an unknown escape": [number(r"$['\x']")],
    "half an escape": [number(r"$['\u12']")],
    "half a character": [number(r"$['\ud800']")],
    "half a character as it is": [number("$.\ud800")],
    "a text behind": [number("$.a b")],
    "an empty path": [number("")],
    "no path": [{"numberValue": 1}],
    "a path that is a number": [number(5)],
    "a gap": [number("$.a[0]"), number("$.a[2]")],
    "a first element that is missing": [number("$.a[1]")],
    "an index beyond everything": [number("$.a[999999999]")],
    "an index of many digits": [number(f"$.a[{'9' * 5000}]")],
    "too deep": [number("$" + ".a" * 400)],
    "an object in an array": [number("$.a[0]"), number("$.a.b")],
    "an array in an object": [number("$.a.b"), number("$.a[0]")],
    "a branch in a value": [number("$.a"), number("$.a.b")],
    "a value in place of a branch": [number("$.a.b"), number("$.a")],
    "two values": [number("$.a", 1), number("$.a", 2)],
    "the same twice": [number("$.a"), number("$['a']")],
    "a text after its end": [text("$.a", "x"), text("$.a", "y")],
    "a number for a text": [text("$.a", "x", True), number("$.a")],
    "a null for a text": [text("$.a", "x", True), {"jsonPath": "$.a", "nullValue": None}],
    "a text without an end": [text("$.a", "x", True)],
    "a value that never came": [{"jsonPath": "$.a", "willContinue": True}],
    "a text in the middle of which is nothing": [
        text("$.a", "x", True),
        {"jsonPath": "$.a", "willContinue": True},
        text("$.a", "y"),
    ],
    "no value": [{"jsonPath": "$.a"}],
    "two values in one": [{"jsonPath": "$.a", "stringValue": "x", "numberValue": 1}],
    "an unknown kind": [{"jsonPath": "$.a", "structValue": {"b": 1}}],
    "a kind beside an unknown one": [{"jsonPath": "$.a", "stringValue": "x", "listValue": [1]}],
    "a text as a number": [{"jsonPath": "$.a", "numberValue": "1"}],
    "a number as a text": [{"jsonPath": "$.a", "stringValue": 1}],
    "a truth as a number": [{"jsonPath": "$.a", "numberValue": True}],
    "a number as a truth": [{"jsonPath": "$.a", "boolValue": 1}],
    "a strange null": [{"jsonPath": "$.a", "nullValue": "x"}],
    "a number that goes on": [{"jsonPath": "$.a", "numberValue": 1, "willContinue": True}],
    "not finite": [number("$.a", float("nan"))],
    "no object": ["x"],
    "nothing": [None],
}


@pytest.mark.parametrize("beside", [[], [number("$.fine")]])
@each("pieces", REFUSED.values())
def test_pieces_that_have_no_place_are_an_issue_C1_C2_R3(
    pieces: list[Any], beside: list[Any]
) -> None:
    entries, sent = streamed(*beside, *pieces)
    sibling, issue = entries
    assert isinstance(sibling, ToolCall)
    assert isinstance(issue, ToolCallIssue)
    assert (issue.reason, issue.metadata.name) == ("malformed_arguments", "look")
    assert issue.detail
    # What the model wrote goes back as a text, in an object.
    wrong, right = [part["functionCall"] for part in sent]
    assert right["args"] == {"sibling": 1}
    if "numberValue" not in str(pieces) or "nan" not in str(pieces):
        assert len(json.loads(wrong["args"]["INVALID_JSON"])) == len(beside) + len(pieces)


def test_the_detail_names_the_piece_and_what_is_wrong_with_it_C3() -> None:
    issue = arguments_of(number("$.a"), number("$.a[5]"))
    assert "piece 2 ($.a[5]) leads into something that is not an array" in issue.detail
    assert "Call the tool again" in issue.detail
    issue = arguments_of(number("$." + "long" * 100 + "["))
    assert len(issue.detail) < 400


def test_every_element_of_a_long_array_arrives() -> None:
    pieces = [number(f"$.a[{index}]", index) for index in range(12_000)]
    entries, _ = read(
        call_part(name="look", willContinue=True), call_part(partialArgs=pieces), call_part()
    )
    [found] = entries
    assert isinstance(found, ToolCall)
    assert found.input.values == {"a": list(range(12_000))}


PLACED: list[tuple[Any, list[Any]]] = [
    ({"a.b": 1}, [number("$['a.b']")]),
    ({"a": [{"x": 1}]}, [number("$.a[0]['x']")]),
    ({"it's": 1}, [number(r"$['it\'s']")]),
    ({'a"b': 1}, [number("$['a\"b']")]),
    ({'a"b': 1}, [number(r'$["a\"b"]')]),
    ({"a'b": 1}, [number('$["a\'b"]')]),
    ({"a\\b": 1}, [number(r"$['a\\b']")]),
    ({"a\\": {"b": 1}}, [number(r"$['a\\']['b']")]),
    ({"a\nb\t": 1}, [number(r"$['a\nb\t']")]),
    ({"a/b": 1}, [number(r"$['a\/b']")]),
    ({"\u00e9": 1}, [number(r"$['\u00e9']")]),
    ({"\U0001f600": 1}, [number(r"$['\ud83d\ude00']")]),
    ({"\u00e9\u6771": 1}, [number("$.\u00e9\u6771")]),
    ({"": 1}, [number("$['']")]),
    ({"[0]": 1}, [number("$['[0]']")]),
    ({"0": 1}, [number("$['0']")]),
    ({"content-type": 1, "$ref": 1}, [number("$.content-type"), number("$.$ref")]),
    ({"a": {"b": [1]}}, [number("$ .a [ 'b' ] [ 0 ]")]),
    ({"a": [1, 2]}, [number("$.a[1]", 2), number("$.a[0]", 1)]),
    ({"a": [[1], [2]]}, [number("$.a[0][0]", 1), number("$.a[1][0]", 2)]),
    ({"a": None}, [{"jsonPath": "$.a", "nullValue": None}]),
    ({"a": None}, [{"jsonPath": "$.a", "nullValue": 0}]),
    ({"a": None}, [{"json_path": "$.a", "null_value": "NULL_VALUE"}]),
    ({"a": False, "b": ""}, [{"jsonPath": "$.a", "boolValue": False}, text("$.b", "")]),
    ({"a": "xyz"}, [text("$.a", "x", True), text("$.a", "y", True), text("$['a']", "z")]),
    (
        {"a": "xy", "b": "p"},
        [text("$.a", "x", True), text("$.b", "p", True), text("$.a", "y"), text("$.b", "")],
    ),
    ({"a": "x"}, [{"jsonPath": "$.a", "willContinue": True}, text("$.a", "x")]),
    ({"a": 3}, [{"jsonPath": "$.a", "willContinue": True}, number("$.a", 3.0)]),
    ({"a": 1.5, "b": 2**60}, [number("$.a", 1.5), number("$.b", 2**60)]),
    ({"a": "\U0001f600"}, [text("$.a", "\ud83d", True), text("$.a", "\ude00")]),
    (
        {"a": 1},
        [{"jsonPath": "$.a", "numberValue": 1, "stringValue": None, "nullValue": None}],
    ),
]  # fmt: skip


@pytest.mark.parametrize(("expected", "pieces"), PLACED)
def test_pieces_that_have_a_place_are_the_arguments(expected: Any, pieces: list[Any]) -> None:
    assert arguments_of(*pieces) == expected


def test_members_that_came_whole_stand_beside_the_pieces() -> None:
    given = {"a": {"x": 1}}
    assert arguments_of(number("$.b", 2), args=given) == {**given, "b": 2}
    entries, _ = read(
        call_part(name="look", args=given, willContinue=True),
        call_part(partialArgs=[number("$.b")], willContinue=True),
        call_part(args={"c": 3}),
    )
    [found] = entries
    assert isinstance(found, ToolCall)
    assert found.input.values == {**given, "b": 1, "c": 3}


@pytest.mark.parametrize("path", ["$.a", "$.a.x", "$.a.y", "$.a[0]"])
def test_no_piece_changes_a_member_that_came_whole(path: str) -> None:
    assert isinstance(arguments_of(number(path), args={"a": {"x": 1}}), ToolCallIssue)
    entries, _ = read(
        call_part(name="look", willContinue=True),
        call_part(partialArgs=[number(path)], willContinue=True),
        call_part(args={"a": {"x": 1}}),
    )
    assert isinstance(entries[0], ToolCallIssue)


@pytest.mark.parametrize("wrong", [[1], "x", 5])
def test_arguments_that_are_no_object_beside_pieces_are_an_issue(wrong: Any) -> None:
    assert isinstance(arguments_of(number("$.a"), args=wrong), ToolCallIssue)


@pytest.mark.parametrize("wrong", ["x", 5, True, [[1]], ["x"]])
def test_pieces_that_are_no_list_of_objects_are_an_issue(wrong: Any) -> None:
    entries, _ = read(call_part(name="look", partialArgs=wrong))
    assert isinstance(entries[0], ToolCallIssue)


def test_a_cut_call_is_truncated_C2a() -> None:
    entries, _ = read(
        call_part(name="look", willContinue=True),
        call_part(partialArgs=[text("$.a", "x", True)], willContinue=True),
        finish="MAX_TOKENS",
    )
    [issue] = entries
    assert isinstance(issue, ToolCallIssue)
    assert issue.reason == "truncated"


def test_an_answer_in_one_piece_is_read_the_same_way_S1() -> None:
    whole = call_part(name="look", args={"a": 1}, partialArgs=[number("$.b", 2)])
    transcript = Transcript()
    transcript.push_user("Go.")
    for part, fits in ((whole, True), (call_part(name="look", partialArgs=[number("b")]), False)):
        streamed_entries, _ = read(part)
        outcome = Tools.offer().read(Gemini.response(chunk(part, finish="STOP")), transcript)
        assert isinstance(outcome, NeedsTools)
        assert len(outcome.round.calls) == fits == isinstance(streamed_entries[0], ToolCall)
        if fits:
            assert outcome.round.calls[0].input.values == {"a": 1, "b": 2}
        outcome.round.discard()


@pytest.mark.parametrize(
    "between",
    [{"text": "Hm."}, {"text": "Hm.", "thought": True}, {"executableCode": {"code": "1"}}],
)
def test_what_comes_in_between_does_not_end_a_call(between: Any) -> None:
    entries, _ = read(
        call_part(name="look", willContinue=True),
        call_part(partialArgs=[number("$.a")], willContinue=True),
        between,
        call_part(partialArgs=[number("$.b")], willContinue=True),
        call_part(),
        {"text": "So."},
    )
    [found] = entries
    assert isinstance(found, ToolCall)
    assert found.input.values == {"a": 1, "b": 1}


def test_what_came_in_between_stands_behind_the_call() -> None:
    decoder = Gemini.stream_decoder()
    for part in (
        {"text": "One "},
        call_part(name="look", willContinue=True),
        {"text": "two "},
        {"text": "three."},
        call_part(partialArgs=[number("$.a")]),
        {"text": " Four."},
    ):
        decoder.feed(chunk(part))
        partial = decoder.partial()
        assert partial is not None
    decoder.feed(chunk(finish="STOP"))
    turn = decoder.finish()
    kinds = [type(block).__name__ for block in turn.blocks]
    assert kinds == ["TextBlock", "CallBlock", "TextBlock"]
    assert turn.text == "One two three. Four."


@pytest.mark.parametrize(
    "ended", [[call_part(name="look")], [call_part(name="look", willContinue=True), call_part()]]
)
def test_a_call_that_pieces_follow_though_it_had_ended_is_an_issue(ended: list[Any]) -> None:
    sibling = call_part(name="look", args={"n": 1})
    entries, _ = read(sibling, *ended, call_part(partialArgs=[number("$.a")]), call_part())
    call, issue = entries
    assert isinstance(call, ToolCall)
    assert isinstance(issue, ToolCallIssue)
    assert issue.reason == "malformed_arguments"
    assert "after they had ended" in issue.detail
    # One that came whole isn't harmed by pieces of a call whose name was lost.
    entries, _ = read(sibling, call_part(partialArgs=[number("$.a")]), call_part())
    assert [type(entry) for entry in entries] == [ToolCall, ToolCallIssue]


@pytest.mark.parametrize("repeated", [{"name": "look"}, {"name": "look", "id": "c1"}, {"id": "c1"}])
def test_a_name_or_id_that_is_repeated_begins_no_call_S2(repeated: dict[str, Any]) -> None:
    entries, _ = read(
        call_part(name="look", id="c1", willContinue=True),
        call_part(**repeated, partialArgs=[number("$.a")], willContinue=True),
        call_part(**repeated, partialArgs=[number("$.b")], willContinue=False),
    )
    [found] = entries
    assert isinstance(found, ToolCall)
    assert found.input.values == {"a": 1, "b": 1}


def test_calls_of_one_name_with_other_ids_are_told_apart_S2() -> None:
    entries, _ = read(
        call_part(name="look", id="c1", partialArgs=[number("$.a")], willContinue=True),
        call_part(name="look", id="c2", partialArgs=[number("$.b")], willContinue=True),
        call_part(),
    )
    assert [e.input.values for e in entries if isinstance(e, ToolCall)] == [{"a": 1}, {"b": 1}]


def test_pieces_of_the_sdk_are_read_as_those_of_the_wire() -> None:
    decoder = Gemini.stream_decoder()
    pieces = [text("$.a", "x"), {"jsonPath": "$.b", "nullValue": None}, number("$.c", 2.0)]
    for part in (call_part(name="look", willContinue=True), call_part(partialArgs=pieces)):
        decoder.feed(types.GenerateContentResponse.model_validate(chunk(part)))
    decoder.feed(chunk(finish="STOP"))
    [found] = decoder.finish().calls
    assert (json.loads(found.arguments), found.problem) == ({"a": "x", "b": None, "c": 2}, None)


@pytest.mark.pure
@pytest.mark.slow
def test_putting_arguments_together_takes_linear_work_S3() -> None:
    def work(count: int) -> int:
        pieces = [text("$.t", "x" * 20, True) for _ in range(count)]
        pieces += [number(f"$.a[{index}].b", index) for index in reversed(range(count))]
        decoder = Gemini.stream_decoder()

        def put_together() -> None:
            decoder.feed(chunk(call_part(name="look", willContinue=True)))
            for piece in [*pieces, text("$.t", "")]:
                decoder.feed(chunk(call_part(partialArgs=[piece], willContinue=True)))
            decoder.feed(chunk(call_part(), finish="STOP"))
            assert decoder.finish().calls[0].problem is None

        return calls_made(put_together)

    work(10)  # what is loaded at first use
    assert work(1_600) < 8.5 * work(200)


# --- random trees ---------------------------------------------------------------------------------

NAMES = ["a", "b", "a.b", "it's", 'q"', "\\", "\u00e9", "\U0001f600", "0", "x y", "", "[0]", "\n"]


def random_value(luck: random.Random, depth: int = 0) -> Any:
    """A JSON value whose containers aren't empty, as pieces can't say these."""
    kind = luck.randrange(8) if depth < 3 else luck.randrange(5)
    if kind == 0:
        return luck.choice(["", "x", "long text " * 3, "\U0001f600", "\u00e9"])
    if kind < 5:
        return luck.choice([None, True, False, 0, -1, 7, 1.5, 2**40])
    if kind == 5:
        return [random_value(luck, depth + 1) for _ in range(luck.randrange(1, 4))]
    return random_object(luck, depth + 1)


def random_object(luck: random.Random, depth: int = 0) -> dict[str, Any]:
    names = luck.sample(NAMES, luck.randrange(1, 4))
    return {name: random_value(luck, depth) for name in names}


def spell_step(luck: random.Random, step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    if step.isidentifier() and luck.random() < 0.6:
        return f".{step}"
    quoted = json.dumps(step, ensure_ascii=luck.random() < 0.5)
    if luck.random() < 0.5:
        return f"[{quoted}]"
    return "['" + quoted[1:-1].replace('\\"', '"').replace("'", "\\'") + "']"


def cut_values(luck: random.Random, value: Any, path: str = "$") -> Iterator[list[dict[str, Any]]]:
    """The pieces of each scalar, in their order."""
    if isinstance(value, (dict, list)):
        entries = value.items() if isinstance(value, dict) else enumerate(value)
        for step, inner in entries:
            yield from cut_values(luck, inner, path + spell_step(luck, step))
    elif isinstance(value, str):
        cuts = sorted(luck.randrange(len(value) + 1) for _ in range(luck.randrange(3)))
        ends = [0, *cuts, len(value)]
        texts = [value[i:j] for i, j in itertools.pairwise(ends)]
        yield [text(path, each, number < len(texts) - 1) for number, each in enumerate(texts)]
    elif value is None:
        yield [{"jsonPath": path, "nullValue": luck.choice([None, "NULL_VALUE"])}]
    elif isinstance(value, bool):
        yield [{"jsonPath": path, "boolValue": value}]
    else:
        yield [number(path, luck.choice([value, float(value)]))]


def shuffled_pieces(luck: random.Random, value: Any) -> list[dict[str, Any]]:
    """The pieces in any order in which those of one text follow each other."""
    waiting = list(cut_values(luck, value))
    pieces = []
    while waiting:
        queue = luck.choice(waiting)
        pieces.append(queue.pop(0))
        waiting = [each for each in waiting if each]
    return pieces


def parts_of(luck: random.Random, pieces: list[Any]) -> list[dict[str, Any]]:
    first = call_part(name="look", willContinue=True)
    parts = [first]
    while pieces:
        count = luck.randrange(1, 4)
        part = call_part(partialArgs=pieces[:count], willContinue=True)
        parts.append(part)
        pieces = pieces[count:]
    return [*parts, call_part()] if luck.random() < 0.7 else parts


def spoil(luck: random.Random, pieces: list[Any]) -> list[Any]:
    """The pieces with one that is wrong, so that it can be seen: a text that says more than the
    model wrote can't.
    """
    place = luck.randrange(len(pieces))
    piece = dict(pieces[place])
    path = piece["jsonPath"]
    value = next(key for key in piece if key.endswith("Value"))
    kind = luck.randrange(7)
    if kind == 0:
        mangled = [
            path[1:],
            "$",
            path + "[",
            path + "..a",
            path + "[*]",
            path + "[-1]",
            None,
            5,
            "",
        ]
        piece["jsonPath"] = luck.choice(mangled)
    elif kind == 1:
        del piece["jsonPath"]
    elif kind == 2:
        if piece.get("willContinue"):
            return pieces
        return [*pieces[: place + 1], *pieces[place:]]
    elif kind == 3:
        piece["jsonPath"] = path + luck.choice(["[10001]", "[99999999999]"])
    elif kind == 4:
        if piece.get("willContinue"):
            return pieces
        piece["strangeValue"] = piece.pop(value)
    elif kind == 5:
        piece["listValue"] = [1]
    else:
        return [*pieces[:place], luck.choice([None, "x", 5, [], {}]), *pieces[place:]]
    return [*pieces[:place], piece, *pieces[place + 1 :]]


def test_random_arguments_arrive_equal_or_not_at_all() -> None:
    luck = random.Random(7)
    refused = 0
    for _ in range(examples(3_000)):
        value = random_object(luck)
        pieces = shuffled_pieces(luck, value)
        for spoiled in (False, True):
            given = spoil(luck, pieces) if spoiled else pieces
            decoder = Gemini.stream_decoder()
            for part in parts_of(luck, given):
                decoder.feed(chunk(part))
            decoder.feed(chunk(finish="STOP"))
            [found] = decoder.finish().calls
            if not spoiled:
                assert found.problem is None, (found.problem, pieces)
            if found.problem is None:
                assert json.loads(found.arguments) == value, given
            refused += found.problem is not None
    assert refused > examples(2_000)
