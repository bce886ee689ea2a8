"""Functions of one text as tools: what is declared, what is refused, and how calls are read."""

from __future__ import annotations

import asyncio
import pickle
import warnings
from typing import Annotated, Any

import pytest
from counting import ended_if_endless
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples
from pydantic import Field
from typing_extensions import Doc

from lutumpy import (
    DeclarationError,
    InvalidArgumentsError,
    Lark,
    MalformedArgumentsError,
    Regex,
    Selector,
    Skip,
    TextToolFn,
    ToolCall,
    ToolMetadata,
    Toolset,
    text_tool,
    tool,
    tool_fn,
)
from lutumpy.models import TextInput
from lutumpy.plain import json_values

SUMS = Regex(r"\d+( \d+)*")


@text_tool(format=SUMS, effect="read", timeout=2.0)
async def add(numbers: str, *, log: Skip[list[str]]) -> int:
    """Add numbers.

    Args:
        numbers: Numbers with a space between them.
    """
    log.append(numbers)
    return sum(map(int, numbers.split()))


@text_tool(name="run-sql", format=Lark('start: "select" /.+/'))
def run_sql(query: str) -> str:
    """Run a query."""
    return query.upper()


@text_tool
def note(text: str) -> None:
    """Take a note."""


class Desk(Toolset[ToolCall[str, int] | ToolCall[str, str] | ToolCall[str, None]]):
    add = tool(add)
    run_sql = tool(run_sql)
    note = tool(note, off=True)


def in_json(text: str, name: str = "note") -> ToolMetadata:
    return ToolMetadata("c1", name, json_values.encode_text({"input": text}))


def freely(text: str, name: str = "note") -> ToolMetadata:
    return ToolMetadata.of_text("c1", name, text)


# --- declaring -----------------------------------------------------------------------------------


def test_the_declaration_has_a_function_with_one_string_for_apis_without_text_tools() -> None:
    assert add.definition.input_schema == {
        "type": "object",
        "properties": {
            "input": {
                "type": "string",
                "description": "Numbers with a space between them.\n\nIt has to match this regular "
                r"expression as a whole: \d+( \d+)*",
            }
        },
        "required": ["input"],
        "additionalProperties": False,
    }
    assert add.definition.text == TextInput(SUMS, "Numbers with a space between them.")
    assert run_sql.name == "run-sql"
    assert 'Lark grammar:\nstart: "select"' in str(run_sql.definition.input_schema).replace(
        "\\n", "\n"
    )
    assert (note.format, add.format, add.options.timeout) == (None, SUMS, 2.0)
    assert isinstance(add, TextToolFn)
    assert note.definition.output_schema is None


def test_the_function_stays_a_function() -> None:
    log: list[str] = []
    assert asyncio.run(add("1 2", log=log)) == 3
    assert log == ["1 2"]
    assert run_sql("a") == "A"
    assert repr(run_sql) == "<SyncTextToolFn run-sql>"
    assert pickle.loads(pickle.dumps(run_sql)) is run_sql


@pytest.mark.parametrize(
    "annotation",
    [
        Annotated[str, "A note."],
        Annotated[str, Doc("A note.")],
        Annotated[str, Field(description="A note.")],
    ],
)
def test_a_description_in_the_annotation_is_told_to_the_model(annotation: Any) -> None:
    def write(text: Any) -> None:
        """Write."""

    write.__annotations__["text"] = annotation
    declared = text_tool(write)
    assert declared.definition.text == TextInput(None, "A note.")
    assert declared.definition.input_schema["properties"]["input"]["description"] == "A note."


def test_a_text_tool_without_any_description_warns_D3() -> None:
    with pytest.warns(UserWarning, match="the tool 'write' has no description"):

        @text_tool
        def write(text: str) -> None: ...

    with pytest.warns(UserWarning, match=r"documents 'txt'|'txt'"):

        @text_tool
        def other(text: str) -> None:
            """Write.

            Args:
                txt: The text.
            """

    with pytest.warns(UserWarning, match="describes 'text' as 'Two.', but the model is told 'One"):

        @text_tool
        def third(text: Annotated[str, "Two."]) -> None:
            """Write.

            Args:
                text: One.
            """


def of_two(a: str, b: str) -> None: ...
def of_none() -> None: ...
def of_number(a: int) -> None: ...
def of_constrained(a: Annotated[str, Field(max_length=3)]) -> None: ...
def of_default(a: str = "x") -> None: ...
def without_output(a: str): ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (of_two, r"takes one text, in a parameter annotated str, and it has a, b; mark"),
        (of_none, r"and it has none"),
        (of_number, r"'a' takes the text of a call, so it must be annotated str"),
        (of_constrained, r"what the text has to fit is said by format="),
        (of_default, r"parameter 'a' has a default, which would never be used"),
        (without_output, r"has no return annotation"),
        (add, r"add is already declared as the tool 'add'"),
        (str, r"takes a function"),
    ],
)
def test_what_is_no_function_of_one_text_is_refused_D2(function: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        text_tool(description="A tool.")(function)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ("a+", r"format= takes Lark\(\.\.\.\), Regex\(\.\.\.\) or None, not 'a\+'"),
        (Regex("(?=a)"), r"is not a regular expression of Rust's regex.*look-around"),
        (Regex("a)(b"), r"is not a regular expression of Rust's regex"),
        (Regex(r"(a)\1"), r"backreferences are not supported"),
        (Regex("a{1000}{1000}{1000}"), r"is not a regular expression of Rust's regex"),
        (Regex(""), r"Regex takes its definition as text, not ''"),
        (Lark(" \n"), r"Lark takes its definition as text"),
        (Lark(3), r"Lark takes its definition as text, not 3"),  # type: ignore[arg-type]
    ],
)
def test_a_format_that_no_api_could_enforce_is_refused(wanted: Any, message: str) -> None:
    with pytest.raises(DeclarationError, match=message):
        text_tool(format=wanted, description="A tool.")(lambda_of_text())


def lambda_of_text() -> Any:
    def write(text: str) -> None: ...

    return write


def test_settings_and_names_are_checked_as_for_functions_D1() -> None:
    with pytest.raises(DeclarationError, match="timeout must be more than 0"):
        text_tool(timeout=0, description="A tool.")(lambda_of_text())
    with pytest.raises(DeclarationError, match="'a b' is not a tool name"):
        text_tool(name="a b", description="A tool.")(lambda_of_text())
    with pytest.raises(DeclarationError, match="description must be text"):
        text_tool(description=3)(lambda_of_text())  # type: ignore[call-overload]


# --- members -------------------------------------------------------------------------------------


def test_a_member_is_a_selector_of_a_text_with_a_branch_of_its_own_D9() -> None:
    assert type(Desk.add) is Selector
    assert [s.name for s in Desk.default_selectors()] == ["add", "run-sql"]
    assert pickle.loads(pickle.dumps(Desk.add)) is Desk.add
    with pytest.raises(DeclarationError, match=r"no ToolCall for Wrong\.add, .*ToolCall\[str, int"):

        class Wrong(Toolset[ToolCall[str, str]]):
            add = tool(add)

    with pytest.raises(DeclarationError, match=r"Two\.add and Two\.again are both"):

        class Two(Toolset[ToolCall[str, int]]):
            add = tool(add)
            again = tool(text_tool(name="again", description="A.")(of_int))

    with pytest.raises(DeclarationError, match=r"Bare\.run is a tool without tool\(\)"):

        class Bare(Toolset):
            run = note


def of_int(text: str) -> int: ...


# --- reading calls -------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(text=st.text())
def test_both_forms_of_a_call_decode_to_the_very_text(text: str) -> None:
    assert Desk.parse(freely(text)).input == text
    in_object = Desk.parse(in_json(text))
    assert in_object.input == text
    assert in_object.arguments == {"input": text}
    assert in_object.repairs == ()


@settings(max_examples=examples(200))
@given(text=st.text(alphabet="0 1\n2٣x"))
def test_a_text_that_does_not_match_the_pattern_as_a_whole_never_becomes_a_call(text: str) -> None:
    import re

    fits = re.fullmatch(r"\d+( \d+)*", text) is not None
    for metadata in (freely(text, "add"), in_json(text, "add")):
        if fits:
            assert Desk.parse(metadata).input == text
        else:
            with pytest.raises(InvalidArgumentsError, match="input: Text should match the regular"):
                Desk.parse(metadata)


@pytest.mark.parametrize(
    ("arguments", "detail"),
    [
        ("{}", "input: Field required"),
        ("", "input: Field required"),
        ("null", "input: Field required"),
        ('{"input": 3}', "input: Input should be a valid string (got 3)"),
        ('{"input": null}', "input: Input should be a valid string (got null)"),
        ('{"input": "1", "more": 2}', "more: Extra inputs are not permitted"),
        ('{"input": ["1"]}', 'input: Input should be a valid string (got ["1"])'),
    ],
)
def test_the_function_form_is_read_by_the_rules_of_functions_C4_C5(
    arguments: str, detail: str
) -> None:
    with pytest.raises(InvalidArgumentsError) as caught:
        Desk.parse(ToolMetadata("c1", "add", arguments))
    assert caught.value.detail == detail


@pytest.mark.parametrize("arguments", ['"1 2"', "1 2", '{"input": "1', "[]", '{"input": NaN}'])
def test_what_is_no_object_is_malformed_as_for_functions_C2(arguments: str) -> None:
    with pytest.raises(MalformedArgumentsError):
        Desk.parse(ToolMetadata("c1", "add", arguments))


def test_no_text_is_repaired_or_taken_apart_C5() -> None:
    for text in ('{"input": "x"}', '"x"', "null", "", "  ", "NaN", '{"input": NaN}', "[1]"):
        assert Desk.parse(freely(text)).input == text
        assert Desk.parse(in_json(text)).input == text


def test_half_of_a_surrogate_pair_is_refused_in_free_text() -> None:
    for name in ("note", "add"):
        with pytest.raises(InvalidArgumentsError, match="half of a surrogate pair"):
            Desk.parse(freely("a\ud800", name))


def test_free_text_for_a_function_is_refused() -> None:
    @tool_fn
    def shout(text: str) -> str:
        """Shout."""
        return text.upper()

    class Loud(Toolset):
        shout_it = tool(shout)

    with pytest.raises(InvalidArgumentsError, match="shout takes one JSON object"):
        Loud.parse(ToolMetadata.of_text("c1", "shout", '{"text": "a"}'))


def test_a_pattern_costs_linear_time() -> None:
    @text_tool(format=Regex("(a+)+"))
    def many(text: str) -> None:
        """Take many."""

    class Many(Toolset):
        many_it = tool(many)

    # An engine that tracks back would never end.
    with ended_if_endless(), pytest.raises(InvalidArgumentsError):
        Many.parse(ToolMetadata.of_text("c1", "many", "a" * 200_000 + "b"))


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        ("a|b", ["a", "b"], ["ab", "a\n", ""]),
        ("(?x) a b  # two letters", ["ab"], ["a b", "ab  "]),
        ("(?i)yes", ["YES"], ["YES!"]),
        ("(?m)^a$", ["a"], ["a\nb", "b\na"]),
        ("(?s).*", ["", "a\nb"], []),
        (r"[[:alpha:]]+", ["ab"], ["a1"]),
    ],
)
def test_a_pattern_is_matched_as_a_whole_in_the_syntax_of_rust(
    pattern: str, good: list[str], bad: list[str]
) -> None:
    @text_tool(format=Regex(pattern))
    def match(text: str) -> None:
        """Match."""

    class Matches(Toolset):
        match_it = tool(match)

    for text in good:
        assert Matches.parse(ToolMetadata.of_text("c", "match", text)).input == text
    for text in bad:
        with pytest.raises(InvalidArgumentsError):
            Matches.parse(ToolMetadata.of_text("c", "match", text))


# --- calls ---------------------------------------------------------------------------------------


def test_a_call_is_run_with_its_skip_parameters() -> None:
    call = Desk.parse(freely("1 2 3", "add"))
    log: list[str] = []
    assert asyncio.run(call.call(log=log)) == 6
    assert log == ["1 2 3"]
    with pytest.raises(TypeError, match="has no Skip parameter other"):
        asyncio.run(call.call(other=1))
    assert Desk.parse(freely("a", "run-sql")).call_sync() == "A"


def test_a_text_is_passed_by_position_where_the_function_takes_it_so() -> None:
    @text_tool
    def both(library: Skip[str], text: str, /, *, loud: Skip[bool] = False) -> str:  # type: ignore[arg-type]
        """Use both."""
        return f"{library} {text} {loud}"

    class Both(Toolset):
        both_it = tool(both)

    call = Both.parse(ToolMetadata.of_text("c", "both", "t"))
    assert call.call_sync(library="l") == "l t False"
    assert call.call_sync(library="l", loud=True) == "l t True"
    with pytest.raises(TypeError):
        call.call_sync()


def test_another_text_is_checked_like_the_models() -> None:
    call = Desk.parse(freely("1 2", "add"))
    assert call.with_input("4").input == "4"
    assert call.edited(input="5").input == "5"
    assert call.edited() is not None
    assert (call.input, call.metadata.arguments) == ("1 2", "1 2")
    with pytest.raises(TypeError, match="with_input takes str, the input of 'add', not int"):
        call.with_input(3)  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentsError, match="should match"):
        call.with_input("x")
    with pytest.raises(InvalidArgumentsError, match="should match"):
        call.edited(input="x")
    with pytest.raises(InvalidArgumentsError, match="takes str, not int"):
        call.edited(input=3)
    with pytest.raises(TypeError, match="has no argument numbers; it has input"):
        call.edited(numbers="3")
    with pytest.raises(TypeError, match=r"no argument log \(log: a Skip parameter"):
        call.edited(log=[])


def test_a_function_of_mine_gets_the_text_as_input() -> None:
    call = Desk.parse(freely("1 2", "add"))
    assert call.apply(lambda input: input) == "1 2"
    assert call.apply(lambda **all: all) == {"input": "1 2"}


def test_metadata_says_which_form_it_is_and_compares_by_its_fields() -> None:
    free, plain = ToolMetadata.of_text("a", "b", "c"), ToolMetadata("a", "b", "c")
    assert (free.is_text, plain.is_text) == (True, False)
    assert free == plain == ("a", "b", "c")
    for copied in (pickle.loads(pickle.dumps(free)), free._replace(id="x")):
        assert copied.is_text


def test_declaring_warns_of_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        text_tool(name="fine", description="A tool.")(lambda_of_text())
