"""Decoding the arguments of one call (rules C2 to C5, D5, D6).

Below `Toolset.parse`: it raises the same for what is `Refused` here with its reason.
"""

import asyncio
import json
import logging
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import BaseModel, ConfigDict, Field, RootModel, field_validator, model_validator
from pydantic_core import PydanticCustomError

from lutumpy import ToolError, ToolInput, tool_fn, tool_input
from lutumpy.tools.arguments import ArgumentRepair, Decoded, Refused, decode_arguments
from lutumpy.tools.tool import compiled_tool


class Item(BaseModel):
    tags: list[str]
    count: int = 3


class Move(BaseModel):
    action: Literal["move"]
    to: str
    speed: int = 1


class Stop(BaseModel):
    action: Literal["stop"]


@tool_input
class Order(ToolInput[str]):
    """Order."""

    city: str
    items: list[Item] = []
    count: int = 5
    maybe: int | None = 7
    either: int | list[int] = 1
    step: Move | Stop | None = None
    table: dict[str, list[int]] = {}


@tool_input(output=None)
class Robot(RootModel[Move | Stop]):
    """Drive."""


class Card(BaseModel):
    kind: Literal["card"]
    note: str = "none"
    tags: list[str] = []
    next: "Annotated[Card | Cash, Field(discriminator='kind')] | None" = None


class Cash(BaseModel):
    kind: Literal["cash"]
    note: str | None = None
    tags: str = ""
    next: "Annotated[Card | Cash, Field(discriminator='kind')] | None" = None


@tool_input(output=None)
class Pay(BaseModel):
    """Pay."""

    by: Card | Cash


@tool_input(output=None)
class PayByKind(BaseModel):
    """Pay."""

    by: Annotated[Card | Cash, Field(discriminator="kind")]


@tool_input(output=None)
class PayAlone(RootModel[Card | Cash]):
    """Pay."""


PAYMENTS = [(Pay, "by"), (PayByKind, "by"), (PayAlone, "input")]


@tool_input(output=None)
class Checked(BaseModel):
    """Checked."""

    kind: str

    @field_validator("kind")
    @classmethod
    def check(cls, kind: str) -> str:
        match kind:
            case "value":
                raise ValueError("SECRET")
            case "assertion":
                raise AssertionError("SECRET")
            case "custom":
                raise PydanticCustomError("odd", "{kind} is too odd", {"kind": kind})
            case "tool":
                raise ToolError("Ask for another kind.")
            case "key":
                raise KeyError("SECRET")
            case "recursion":
                raise RecursionError("SECRET")
            case "cancelled":
                raise asyncio.CancelledError
            case "exit":
                raise SystemExit(3)
            case _:
                return kind


ORDER, ROBOT, CHECKED = map(compiled_tool, (Order, Robot, Checked))


def decoded(tool: Any, arguments: Any) -> Any:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    outcome = decode_arguments(tool, text)
    assert isinstance(outcome, Decoded), outcome
    return outcome


def refused(tool: Any, arguments: Any) -> Refused:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    outcome = decode_arguments(tool, text)
    assert isinstance(outcome, Refused), outcome
    return outcome


def test_good_arguments_become_the_input_C5() -> None:
    outcome = decoded(ORDER, {"city": "Oslo", "count": "3", "step": {"action": "stop"}})
    assert outcome.input == Order(city="Oslo", count=3, step=Stop(action="stop"))
    assert outcome.repairs == ()
    assert decoded(ORDER, ' \n {"city": "Oslo"} ').input == Order(city="Oslo")


@pytest.mark.parametrize("text", ["", " \n\t", "null", " null ", "{}"])
def test_nothing_means_an_empty_object_C4(text: str) -> None:
    @tool_fn
    def now(zone: str = "UTC") -> str:
        """Now."""
        return zone

    assert compiled_tool(now).arguments(decoded(compiled_tool(now), text).input) == {"zone": "UTC"}
    assert refused(ORDER, text).detail == "city: Field required"


MALFORMED = {
    "[1]": "an array",
    '"x"': "a string",
    "3": "a number",
    "true": "true or false",
    "tru": "column 3",
    '{"city": ': "line 1 column",
    '{"city": "a"} {}': "trailing",
    "{'city': 'a'}": "line 1 column",
    '{"city": "\ud800"}': "surrogate",
    '{"city": "\\ud800"}': "line 1 column",
    '{"count": ' + "9" * 5000 + "}": "number out of range",
    "[" * 100_000: "recursion limit",
    '{"city": ' + "[" * 100_000: "recursion limit",
    "\ufeff{}": "line 1 column",
    "```json\n{}\n```": "line 1 column",
}


@pytest.mark.parametrize(
    ("text", "reason"),
    MALFORMED.items(),
    ids=[text[:20].encode("ascii", "replace").decode() for text in MALFORMED],
)
def test_what_is_no_json_object_is_malformed_and_says_where_C2(text: str, reason: str) -> None:
    outcome = refused(ORDER, text)
    assert outcome.reason == "malformed_arguments"
    assert reason in outcome.detail
    assert outcome.detail.endswith("Send one JSON object.")


def test_a_validator_that_takes_anything_gets_objects_only_C2() -> None:
    @tool_input(output=None)
    class Lenient(BaseModel):
        """Lenient."""

        a: int = 1

        @model_validator(mode="before")
        @classmethod
        def anything(cls, value: Any) -> Any:
            return value if isinstance(value, dict) else {}

    assert refused(compiled_tool(Lenient), "[1]").reason == "malformed_arguments"


def test_null_means_the_default_D5() -> None:
    arguments: dict[str, Any] = {
        "city": "a",
        "count": None,
        "items": [{"tags": [], "count": None}],
        "maybe": None,
    }
    outcome = decoded(ORDER, arguments)
    assert outcome.input == Order(city="a", items=[Item(tags=[])], maybe=None)
    assert outcome.repairs == ()
    step = {"action": "move", "to": "x", "speed": None}
    assert decoded(ORDER, {"city": "a", "step": step}).input.step == Move(action="move", to="x")


@pytest.mark.parametrize(("declared", "name"), PAYMENTS, ids=["any", "by kind", "root"])
def test_the_branch_that_a_constant_names_says_what_its_fields_take_C5_D5(
    declared: Any, name: str
) -> None:
    tool = compiled_tool(declared)

    def paid(**fields: Any) -> Any:
        outcome = decoded(tool, {name: fields})
        return (outcome.input.root if name == "input" else outcome.input.by), outcome.repairs

    assert paid(kind="card", note=None) == (Card(kind="card"), ())
    assert paid(kind="cash", note=None) == (Cash(kind="cash"), ())
    repairs = (ArgumentRepair(f"{name}.tags", "json_string"),)
    assert paid(kind="card", tags='["a"]') == (Card(kind="card", tags=["a"]), repairs)
    assert paid(kind="cash", tags='["a"]') == (Cash(kind="cash", tags='["a"]'), ())
    assert refused(tool, {name: {"kind": "card", "note": 3}}).detail.startswith(f"{name}.note: ")
    # Without its constant a value may be meant for either.
    assert refused(tool, {name: {"note": None, "tags": []}}).reason == "invalid_arguments"


def test_null_for_a_required_field_is_invalid_D5() -> None:
    outcome = refused(ORDER, {"city": None, "count": None})
    assert outcome.detail.splitlines()[0] == "city: Input should be a valid string (got null)"


REPAIRED = [
    ({"items": '[{"tags": ["a"]}]'}, "items", [Item(tags=["a"])]),
    ({"items": [{"tags": '["a"]', "count": None}]}, "items[0].tags", [Item(tags=["a"])]),
    ({"either": "[1, 2]"}, "either", [1, 2]),
    ({"step": '{"action": "stop"}'}, "step", Stop(action="stop")),
    ({"table": {"a b": "[1]"}}, 'table["a b"]', {"a b": [1]}),
    ({"table": '{"a": [1]}'}, "table", {"a": [1]}),
    ({"count": '"4"'}, "count", 4),
    ({"maybe": "null"}, "maybe", None),
]


@pytest.mark.parametrize(
    ("arguments", "path", "value"), REPAIRED, ids=[path for _, path, _ in REPAIRED]
)
def test_json_in_a_string_is_decoded_once_and_said_C5(
    arguments: dict[str, Any], path: str, value: Any
) -> None:
    outcome = decoded(ORDER, {"city": "a", **arguments})
    assert outcome.repairs == (ArgumentRepair(path, "json_string"),)
    assert getattr(outcome.input, path.partition("[")[0]) == value


def test_strings_stay_where_strings_are_taken_C5() -> None:
    assert decoded(ORDER, {"city": '["a"]'}).input.city == '["a"]'
    assert decoded(ORDER, {"city": "3", "items": '[{"tags": []}]'}).input.city == "3"
    # It fails, but its type takes strings: nothing is guessed.
    assert refused(ORDER, {"city": "a", "step": {"action": '"stop"'}}).reason == "invalid_arguments"


@pytest.mark.parametrize(
    "arguments",
    [
        {"items": '[{"tags": 3}]'},
        {"items": "[{"},
        {"items": '"[]"'},
        {"count": "many"},
        {"items": "[]", "count": "many"},
        {"other": 1, "items": "{}"},
    ],
    ids=str,
)
def test_a_repair_that_does_not_fit_is_no_repair_C5(arguments: dict[str, Any]) -> None:
    outcome = refused(ORDER, {"city": "a", **arguments})
    assert outcome.reason == "invalid_arguments"
    for name in arguments:
        if name != "other" and arguments != {"items": "[]", "count": "many"}:
            assert outcome.detail.startswith(f"{name}: ")


def test_strict_models_stay_strict_C5() -> None:
    @tool_input(output=None)
    class Strict(BaseModel):
        """Strict."""

        model_config = ConfigDict(strict=True)
        count: int
        pair: tuple[int, int] = (1, 2)

    assert refused(compiled_tool(Strict), {"count": "many"}).reason == "invalid_arguments"
    assert decoded(compiled_tool(Strict), {"count": 1, "pair": "[3, 4]"}).input.pair == (3, 4)


def test_a_union_takes_the_wrapped_form_first_D6() -> None:
    for arguments in ({"input": {"action": "stop"}}, {"action": "stop"}):
        assert decoded(ROBOT, arguments).input == Robot(Stop(action="stop"))
    move: dict[str, Any] = {"action": "move", "to": "x", "speed": None}
    for moving in ({"input": move}, move):
        assert decoded(ROBOT, moving).input == Robot(Move(action="move", to="x"))
    assert decoded(ROBOT, {"input": '{"action": "stop"}'}).repairs == (
        ArgumentRepair("input", "json_string"),
    )
    assert refused(ROBOT, {"input": {"action": "move"}}).detail == "input.to: Field required"
    assert refused(ROBOT, {"action": "move"}).detail == "to: Field required"

    class Holder(BaseModel):
        input: str

    class Pair(BaseModel):
        a: int
        input: Stop

    @tool_input(output=None)
    class Odd(RootModel[Holder | Pair]):
        """Odd."""

    tool = compiled_tool(Odd)
    assert decoded(tool, {"input": {"input": "x"}}).input == Odd(Holder(input="x"))
    assert decoded(tool, {"input": "x"}).input == Odd(Holder(input="x"))
    assert decoded(tool, {"input": {"action": "stop"}, "a": 1}).input == Odd(
        Pair(a=1, input=Stop(action="stop"))
    )


def test_what_is_wrong_under_input_is_no_field_of_an_open_branch_C5_D6() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        n: int = 1

    @tool_input(output=None)
    class Either(RootModel[Open | Stop]):
        """Either."""

    either = compiled_tool(Either)
    assert refused(either, {"input": {"n": "abc"}}).detail.startswith("input.n: ")
    assert decoded(either, {"input": {"n": "3"}}).input == Either(Open(n=3))
    assert decoded(either, {"n": 3, "input": 1}).input == Either(Open(n=3, input=1))  # type: ignore[call-arg]
    assert decoded(either, {"other": 1}).input == Either(Open(other=1))  # type: ignore[call-arg]


def test_nothing_is_no_union_C4() -> None:
    @tool_input(output=None)
    class Maybe(RootModel[Move | None]):
        """Maybe."""

    assert refused(compiled_tool(Maybe), "null").reason == "invalid_arguments"
    assert decoded(compiled_tool(Maybe), {"input": None}).input == Maybe(None)


def test_each_failing_field_has_a_line_C3() -> None:
    arguments = {"city": 3, "count": "many", "items": [{"tags": 3}, {}]}
    assert refused(ORDER, arguments).detail.splitlines() == [
        "city: Input should be a valid string (got 3)",
        "items[0].tags: Input should be a valid array (got 3)",
        "items[1].tags: Field required",
        'count: Input should be a valid integer, unable to parse string as an integer (got "many")',
    ]


def test_at_most_ten_fields_are_told_C3() -> None:
    lines = refused(
        ORDER, {"city": "a", "items": [{"tags": number} for number in range(25)]}
    ).detail.splitlines()
    assert len(lines) == 11
    assert lines[-1] == "… and 15 more"


def test_values_and_names_are_cut_C3() -> None:
    detail = refused(ORDER, {"city": {"a": "x" * 10_000}, "table": {"k" * 10_000: 3}}).detail
    assert len(detail) < 800
    assert "x" * 99 not in detail
    assert "https://" not in detail


def test_branches_of_a_union_do_not_show_C3() -> None:
    assert (
        refused(ORDER, {"city": "a", "step": {"action": "move"}}).detail
        == "step.to: Field required"
    )
    assert refused(ORDER, {"city": "a", "either": "x"}).detail == (
        "either: Input should be a valid integer, unable to parse string as an integer or: "
        'Input should be a valid array (got "x")'
    )

    @tool_input(output=None)
    class Tagged(BaseModel):
        """Tagged."""

        step: Annotated[Move | Stop, Field(discriminator="action")]

    tool = compiled_tool(Tagged)
    assert (
        refused(tool, {"step": {"action": "move", "move": 1}}).detail == "step.to: Field required"
    )
    assert refused(tool, {"step": {"action": "fly"}}).detail.startswith("step: Input tag 'fly'")


def test_unknown_names_are_refused_where_the_model_says_so_C3() -> None:
    @tool_fn
    def f(a: int) -> str:
        """F."""
        return ""

    assert (
        refused(compiled_tool(f), {"a": 1, "b c\n": "x"}).detail
        == r'["b c\n"]: Extra inputs are not permitted'
    )


@pytest.mark.parametrize(
    ("kind", "detail"),
    [
        ("value", 'kind: was refused by this tool\'s own check (got "value")'),
        ("assertion", 'kind: was refused by this tool\'s own check (got "assertion")'),
        ("custom", 'kind: custom is too odd (got "custom")'),
        ("tool", "Ask for another kind."),
    ],
)
def test_only_messages_meant_for_the_model_are_shown_C3(kind: str, detail: str) -> None:
    assert refused(CHECKED, {"kind": kind}) == Refused("invalid_arguments", detail)


@pytest.mark.parametrize("kind", ["key", "recursion"])
def test_a_validator_that_breaks_is_logged_and_not_quoted_C3(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "lutumpy.decode"):
        outcome = refused(CHECKED, {"kind": kind})
    assert outcome.reason == "invalid_arguments"
    assert "SECRET" not in outcome.detail
    assert [record.exc_info is not None for record in caplog.records] == [True]


@pytest.mark.parametrize(
    ("kind", "error"), [("cancelled", asyncio.CancelledError), ("exit", SystemExit)]
)
def test_leaving_is_not_held_up(kind: str, error: type[BaseException]) -> None:
    with pytest.raises(error):
        decode_arguments(CHECKED, json.dumps({"kind": kind}))


def test_fields_of_any_name_are_arguments_where_the_model_takes_them() -> None:
    @tool_input(output=None)
    class Open(BaseModel):
        """Open."""

        model_config = ConfigDict(extra="allow")
        a: int

    tool = compiled_tool(Open)
    assert tool.arguments(decoded(tool, {"a": 1, "b": 2}).input) == {"a": 1, "b": 2}


def test_equal_names_count_once_the_last_wins() -> None:
    assert decoded(ORDER, '{"city": "a", "city": "b"}').input.city == "b"


class Deep(BaseModel):
    """Hold itself."""

    name: str = ""
    deep: "Deep | Item | None" = None
    table: "dict[str, Deep | list[Deep]]" = {}


def test_hostile_nesting_costs_no_more_than_its_length() -> None:
    tool = compiled_tool(tool_input(output=None)(Deep))
    value: Any = {"name": 3}
    for _ in range(60):
        value = {"deep": value, "table": {"Deep": value if len(str(value)) < 500 else 3}}
    assert refused(tool, value).reason == "invalid_arguments"


@pytest.mark.parametrize("levels", [1, 20, 150])
def test_edits_in_a_chain_of_unions_cost_no_more_than_its_length_D5(levels: int) -> None:
    value: dict[str, Any] = {"kind": "card", "note": None}
    for _ in range(levels):
        value = {"kind": "card", "note": None, "next": value}
    paid = decoded(compiled_tool(PayByKind), {"by": value}).input.by
    for _ in range(levels):
        assert paid.note == "none"
        paid = paid.next
    assert paid == Card(kind="card")


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["[]", "{}", "null", '["a"]', "1"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*Order.model_fields, "tags", "action", "to", "input"]) | st.text(),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
TOOLS = st.sampled_from([ORDER, ROBOT, CHECKED])


def check_total(tool: Any, text: str) -> None:
    outcome = decode_arguments(tool, text)
    if isinstance(outcome, Refused):
        assert outcome.detail
        assert len(outcome.detail) < 10_000
        assert outcome.detail.count("\n") <= 10
        outcome.detail.encode()
    else:
        assert isinstance(outcome.input, tool.input_type)
        tool.arguments(outcome.input)


@given(TOOLS, st.text(st.characters(exclude_categories=())))
@settings(max_examples=examples(100), deadline=None)
def test_no_text_raises_C2(tool: Any, text: str) -> None:
    check_total(tool, text)
    check_total(tool, "{" + text)


@given(TOOLS, JSON)
@settings(max_examples=examples(100), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_json_raises_C2(tool: Any, value: Any) -> None:
    check_total(tool, json.dumps(value))


@given(
    st.fixed_dictionaries(
        {"city": JSON}, optional={name: JSON for name in Order.model_fields if name != "city"}
    ),
    st.data(),
)
@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_no_cut_or_changed_json_raises_C2(value: dict[str, Any], data: st.DataObject) -> None:
    text = json.dumps(value)
    position = data.draw(st.integers(0, len(text)))
    check_total(ORDER, text)
    check_total(ORDER, text[:position])
    check_total(ORDER, text[:position] + data.draw(st.text(max_size=3)) + text[position + 1 :])


@pytest.mark.parametrize(
    "rest",
    ["}", "}}}", ',"dry_run":true}', '},"dry_run":true}', '{"dry_run":true}', ",", " so", "\0"],
)
def test_text_behind_the_object_is_malformed_and_never_left_out_C2_C5(rest: str) -> None:
    @tool_fn
    def delete(path: str, dry_run: bool = False) -> str:
        """Delete a file.

        Args:
            path: Which.
            dry_run: Only say what would be deleted.
        """
        return path

    for text in (f'{{"path": "x"}}{rest}', f' {{"path": "x"}}{rest}'):
        assert refused(compiled_tool(delete), text).reason == "malformed_arguments"


def test_of_equal_keys_the_last_counts_as_in_every_json_reader() -> None:
    @tool_fn
    def delete(path: str, tags: list[str] = []) -> str:  # noqa: B006
        """Delete a file.

        Args:
            path: Which.
            tags: All of these.
        """
        return path

    for tags in ("", ', "tags": "[]"'):  # as it is, and repaired
        outcome = decode_arguments(compiled_tool(delete), f'{{"path": "x", "path": "y"{tags}}}')
        assert isinstance(outcome, Decoded)
        assert outcome.input.path == "y"
