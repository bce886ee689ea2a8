"""What a model is told of an exception, and exceptions whose own text raises (rule K6)."""

from __future__ import annotations

from typing import Any

import pytest
from every_api import ADAPTERS, APIS
from pydantic import BaseModel, Field, ValidationError, create_model, field_validator

from lutumpy import (
    HookError,
    InvalidArgumentsError,
    NeedsTools,
    Session,
    ToolCallIssue,
    ToolError,
    ToolMetadata,
    Toolset,
    hook_impl,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.hooks import BaseToolCall
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import class_name, safe_repr, safe_str
from lutumpy.testing import Call, Reply, ScriptedModel
from lutumpy.tools import failure_text, is_for_the_model


class Broken(ValueError):
    """An exception that can't be shown."""

    def __str__(self) -> str:
        raise RuntimeError("secret of __str__")

    __repr__ = __str__


class BrokenToolError(ToolError):
    """One that is meant for the model, and can't be shown either."""

    def __str__(self) -> str:
        raise RuntimeError("secret of __str__")

    __repr__ = __str__


class Group(Exception):
    """As the backport of exception groups for Python 3.10 makes them."""

    def __init__(self, message: str, exceptions: list[BaseException]) -> None:
        super().__init__(message)
        self.exceptions = tuple(exceptions)

    def subgroup(self, condition: Any) -> Any:
        raise NotImplementedError


@tool_fn(effect="idempotent")
async def look(q: str) -> str:
    """Look."""
    return q


class Tools(Toolset):
    look = tool(look)


def a_call() -> BaseToolCall:
    return Tools.parse(ToolMetadata("call_1", "look", '{"q": "x"}'))


def invalid() -> ValidationError:
    Book = create_model("Book", title=(str, ...), copies=(int, Field(le=3)))
    with pytest.raises(ValidationError) as caught:
        Book(copies="private value")
    return caught.value


NESTED = Group("", [ToolError("no book"), KeyError("secret"), ValueError()])
SAFE: list[tuple[BaseException, str]] = [
    (ToolError("there is no such book"), "there is no such book"),
    (ToolError(""), "The tool failed."),
    (BrokenToolError("x"), "The tool failed."),
    (ValueError("/home/me/secret"), "The tool failed with ValueError."),
    (KeyError(), "The tool failed with KeyError."),
    (KeyboardInterrupt(), "The tool failed with KeyboardInterrupt."),
    (Broken("x"), "The tool failed with Broken."),
    (type(" ", (Exception,), {})("secret"), "The tool failed with Error."),
    (invalid(), "The tool failed with ValidationError."),
    (Group("secret", [ToolError("first"), ToolError("second")]), "first\nsecond"),
    (Group("secret", [ValueError("secret"), NESTED]),
     "no book\nThe tool failed with ValueError, KeyError."),
    (Group("secret", []), "The tool failed with Group."),
]  # fmt: skip


@pytest.mark.parametrize(("error", "text"), SAFE, ids=[f"{n}" for n in range(len(SAFE))])
async def test_fail_and_the_executor_tell_an_exception_by_one_rule_K6(
    error: BaseException, text: str
) -> None:
    by_hand = a_call().fail(error)
    assert (by_hand.content, by_hand.status) == (text, "error")
    issue = ToolCallIssue(ToolMetadata("call_1", "look", "{}"), "invalid_arguments", "detail")
    assert issue.fail(error).content == text
    if isinstance(error, Exception):
        dispatch: Any = Dispatcher(Tools)

        async def handler(input: Any) -> str:
            raise error

        dispatch.on(Tools.look)(handler)
        (result,) = await ToolExecutor().run([a_call()], dispatch)
        assert result.content == text


REVEALED: list[tuple[BaseException, str]] = [
    (ValueError("no such row"), "ValueError: no such row"),
    (ToolError("there is no such book"), "ToolError: there is no such book"),
    (KeyError(), "KeyError"),
    (ValueError(" \n"), "ValueError"),
    (Broken("x"), "Broken: <Broken whose __str__ raised>"),
    (invalid(), "ValidationError: title: Field required; "
     "copies: Input should be a valid integer, unable to parse string as an integer"),
    (Group("all", [ValueError("a"), KeyError("b")]), "Group: ValueError: a; KeyError: 'b'"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("error", "text"), REVEALED, ids=[type(error).__name__ for error, _ in REVEALED]
)
def test_reveal_shows_class_and_message_and_never_a_traceback_K6(
    error: BaseException, text: str
) -> None:
    try:
        raise error
    except BaseException as caught:
        result = a_call().fail(caught, reveal=True)
    assert (result.content, result.status) == (text, "error")
    assert "Traceback" not in text
    assert "https://" not in text


def test_a_text_is_shown_as_it_is_K6() -> None:
    assert a_call().fail("the library is closed").content == "the library is closed"
    assert a_call().fail("the library is closed", reveal=True).content == "the library is closed"
    assert a_call().fail(" ").content == "The tool failed."


def test_what_is_neither_text_nor_exception_is_refused_with_the_call_named() -> None:
    wrong: Any = None
    with pytest.raises(TypeError, match=r"NoneType.*'call_1'.*'look'"):
        a_call().fail(wrong)


def test_many_exceptions_in_a_group_are_cut_short() -> None:
    errors: list[BaseException] = [ToolError(f"book {n}") for n in range(40)]
    lines = failure_text(Group("", errors)).splitlines()
    assert lines == [*[f"book {n}" for n in range(10)], "and 30 more"]
    assert is_for_the_model(Group("", errors))
    assert not is_for_the_model(Group("", [*errors, ValueError()]))


@pytest.mark.parametrize("api", APIS)
async def test_a_failure_is_marked_and_never_empty_on_every_wire_K6(api: Any) -> None:
    llm = ScriptedModel(
        [Reply(calls=[Call("look", {"q": "x"}, id="call_1")]), Reply("done")], api=api
    )
    session = Session()
    session.push_user("go")
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [outcome.round.calls[0].fail(BrokenToolError())])
    body = json_values.encode_text(ADAPTERS[api].request(session.transcript))
    assert "The tool failed." in body
    # Two APIs have a mark for it; the others are told in words alone.
    assert ('"is_error":true' in body) == (api == "anthropic_messages")
    assert ('"status":"error"' in body) == (api == "bedrock_converse")


async def test_a_hook_error_names_an_exception_that_cannot_be_shown() -> None:
    llm = ScriptedModel([Reply(calls=[Call("look", {"q": "x"}, id="call_1")])])
    session = Session()
    session.push_user("go")
    outcome = await session.text_turn(llm, tools=Tools).collect()
    assert isinstance(outcome, NeedsTools)

    def policy(call: Any) -> Any:
        raise Broken

    def result_policy(metadata: Any, result: Any) -> Any:
        raise Broken

    with pytest.raises(
        HookError, match=r"policy.*call_1.*<Broken whose __repr__ raised>"
    ) as caught:
        await outcome.round.apply_hooks(policy)
    assert isinstance(caught.value.__cause__, Broken)

    class Plugin:
        @hook_impl
        def any_result_hook(self, metadata: Any, result: Any) -> Any:
            raise Broken

    with pytest.raises(HookError, match="<Broken whose __repr__ raised>"):
        await Tools.hooks().with_hooks(Plugin()).review([outcome.round.calls[0].fail("x")])
    outcome.round.discard()


def test_a_call_whose_input_cannot_be_shown_has_a_repr() -> None:
    call = a_call()
    call.input = Broken()
    assert repr(call) == "<ToolCall look call_1 <Broken whose __repr__ raised>>"


def test_values_of_other_people_are_text_whatever_their_methods_do() -> None:
    class Meta(type):
        @property
        def __name__(cls) -> str:  # type: ignore[override]
            raise RuntimeError

    class Odd(metaclass=Meta):
        pass

    assert safe_str(Broken()) == "<Broken whose __str__ raised>"
    assert safe_repr(Broken()) == "<Broken whose __repr__ raised>"
    assert (safe_str(3), safe_repr("a")) == ("3", "'a'")
    assert class_name(Odd()) == "object"
    assert json_values.encode_text({"a": Broken()}) == '{"a":"<Broken whose __str__ raised>"}'


class Checked(BaseModel):
    """Check."""

    word: str

    @field_validator("word")
    @classmethod
    def check(cls, word: str) -> str:
        raise BrokenToolError


def test_a_validator_that_raises_what_cannot_be_shown_is_an_issue() -> None:
    class Checks(Toolset):
        check = tool(tool_input(name="check", output=None)(Checked))

    with pytest.raises(InvalidArgumentsError, match="own check"):
        Checks.parse(ToolMetadata("c1", "check", '{"word": "x"}'))
