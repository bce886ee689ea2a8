"""Hooks with the parameters of a function, checked by name when they are registered."""

from __future__ import annotations

import copy
import functools
import pickle
from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Protocol, Union

import pytest
from hook_toolkit import AppTools as OldTools
from hook_toolkit import GetUser, Weather, add, start
from pydantic import BaseModel, Field, ValidationError

from lutumpy import (
    Complete,
    HookError,
    HookRegistrationError,
    Reject,
    RunNormally,
    Skip,
    ToolDecision,
    ToolInput,
    ToolMetadata,
    Toolset,
    hook_impl,
    nested,
    tool,
    tool_fn,
    tool_input,
)
from lutumpy.hooks import ToolHooks
from lutumpy.testing import Call

if TYPE_CHECKING:
    from pydantic import BaseModel as OnlyForCheckers


class Ledger:
    pass


@tool_fn
async def pay(
    amount: Annotated[Decimal, Field(gt=0)], to: str = "Ann", *, ledger: Skip[Ledger]
) -> str:
    """Pay."""
    return f"{amount} to {to}"


@tool_fn
def say(input: str, loud: bool = False) -> str:
    """Say."""
    return input


@tool_fn
def label(metadata: str, text: str) -> str:
    """Label."""
    return metadata


@tool_fn
def odd(_name: str, copy: int) -> str:
    """Pydantic has both names for itself."""
    return _name


class Bank(Toolset):
    pay = tool(pay)


class Tools(Toolset):
    bank = nested(Bank)
    say = tool(say)
    label = tool(label)
    odd = tool(odd)


PAY = Call("pay", {"amount": "5", "to": "Bob"}, id="call_1")
SAY = Call("say", {"input": "hi"}, id="call_2")
LABEL = Call("label", {"metadata": "m", "text": "t"}, id="call_3")
ODD = Call("odd", {"_name": "n", "copy": 3}, id="call_4")


def decide(hooks: ToolHooks[Tools], call: Call) -> Any:
    """What becomes of one call: its arguments while it is pending, or the decision."""
    _, round = start(call, toolset=Tools)
    plan = round.apply_hooks_sync(hooks)
    plan.discard()
    if plan.pending:
        return plan.pending[0].arguments
    return (plan.handled or plan.rejected)[0]


def on_pay(hook: Callable[..., Any]) -> ToolHooks[Tools]:
    hooks: Any = Tools.hooks()
    hooks.on(Tools.bank[Bank.pay])(hook)
    return hooks  # type: ignore[no-any-return]


async def test_a_hook_of_a_function_is_given_its_parameters() -> None:
    seen: list[Any] = []

    class Policy:
        @hook_impl
        async def pay_hook(
            self, metadata: ToolMetadata, amount: Decimal, to: str = "Ann", **_: Any
        ) -> ToolDecision:
            seen.append((metadata.id, amount, to))
            if amount > 100:
                return Reject("too much")
            return Complete("known") if to == "Bob" else RunNormally()

    hooks = Tools.hooks()
    hooks.nested(Bank).register(Policy())
    for arguments in ({"amount": "5"}, {"amount": "5", "to": "Bob"}, {"amount": 101}):
        _, round = start(Call("pay", arguments, id="c"), toolset=Tools)
        plan = await round.apply_hooks(hooks)
        plan.discard()
        seen.append(
            (len(plan.pending), [h.output for h in plan.handled], [r.reason for r in plan.rejected])
        )
    assert seen == [
        ("c", Decimal(5), "Ann"), (1, [], []),
        ("c", Decimal(5), "Bob"), (0, ["known"], []),
        ("c", Decimal(101), "Ann"), (0, [], ["too much"]),
    ]  # fmt: skip


def test_a_hook_names_the_parameters_that_it_needs_in_any_order() -> None:
    seen: list[Any] = []
    hooks: Any = Tools.hooks()
    on = hooks.on(Tools.bank.pay)
    on(lambda to, metadata: seen.append((metadata.name, to)) or RunNormally())
    on(lambda amount: seen.append(amount) or RunNormally())
    on(lambda *, amount, to: seen.append((amount, to)) or RunNormally())
    on(lambda metadata, **rest: seen.append(rest) or RunNormally())
    on(lambda **everything: seen.append(everything) or RunNormally())
    on(functools.partial(lambda note, to: seen.append((note, to)) or RunNormally(), "note"))
    on(functools.partial(lambda to, book: seen.append((book, to)) or RunNormally(), book="book"))
    on(lambda to, _cache=(): seen.append(_cache) or RunNormally())
    everything = {"amount": Decimal(5), "to": "Bob"}
    assert decide(hooks, PAY) == everything
    assert seen == [
        ("pay", "Bob"),
        5,
        (5, "Bob"),
        everything,
        everything,
        ("note", "Bob"),
        ("book", "Bob"),
        (),
    ]


def test_names_that_pydantic_has_for_itself_are_the_functions_names_to_a_hook() -> None:
    hooks: Any = Tools.hooks()

    @hooks.on(Tools.odd)
    def hook(_name: str, copy: int) -> ToolDecision:
        return RunNormally.edited(_name=_name + "!", copy=copy + 1)

    assert decide(hooks, ODD) == {"_name": "n!", "copy": 4}


def test_the_old_form_stays_for_functions() -> None:
    seen: list[Any] = []

    def old(metadata: ToolMetadata, input: Any, extra: int = 3) -> ToolDecision:
        seen.append((metadata.id, input.amount, extra))
        return RunNormally(pay.Input(amount=1, to=input.to))

    assert decide(on_pay(old), PAY) == {"amount": Decimal(1), "to": "Bob"}
    assert seen == [("call_1", Decimal(5), 3)]
    assert decide(on_pay(lambda metadata: Reject(metadata.name)), PAY).reason == "pay"
    assert decide(on_pay(lambda: Reject("never")), PAY).reason == "never"


# --- edits


def test_an_edit_is_validated_again_and_the_next_hook_sees_it_H1_H3() -> None:
    seen: list[Any] = []
    hooks: Any = Tools.hooks()
    on = hooks.on(Tools.bank.pay)
    on(lambda amount, **_: RunNormally.edited(amount=str(amount * 2)))
    on(lambda amount, **_: seen.append(amount) or RunNormally())
    on(lambda metadata, input: seen.append(input.amount) or RunNormally.edited(to="Eve"))
    assert decide(hooks, PAY) == {"amount": Decimal(10), "to": "Eve"}
    assert seen == [Decimal(10), Decimal(10)]
    assert all(type(value) is Decimal for value in seen)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"amount": "-1"},
            r"RunNormally\.edited\(amount\): amount: Input should be greater than 0",
        ),
        ({"amount": "much", "to": 3}, r"edited\(amount, to\): amount: .*valid decimal"),
        ({"amuont": 3}, r"tool 'pay' has no argument amuont; it has amount, to"),
        (
            {"ledger": Ledger()},
            r"no argument ledger \(ledger: a Skip parameter is not part of a call\)",
        ),
    ],
)
def test_an_edit_that_does_not_fit_is_a_hook_error_and_changes_nothing_H3(
    changes: Any, message: str
) -> None:
    _, round = start(PAY, toolset=Tools)
    before = round.calls[0].arguments
    hooks = on_pay(lambda to, **_: RunNormally.edited(**changes))
    with pytest.raises(HookError, match=message) as caught:
        round.apply_hooks_sync(hooks)
    assert "call_1" in str(caught.value)
    assert "nothing was decided" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert round.calls[0].arguments == before == {"amount": Decimal(5), "to": "Bob"}
    round.discard()


def test_decisions_without_an_input_are_for_input_classes_and_policies_too_H3() -> None:
    hooks: Any = OldTools.hooks()
    hooks.on(OldTools.weather)(lambda metadata, input: RunNormally())
    hooks.on(OldTools.weather)(lambda metadata, input: RunNormally.edited(city=input.city.strip()))
    call = Call("weather", {"city": " Oslo ", "days": [1]}, id="call_1")
    _, round = start(call)
    original = round.calls[0].input
    plan = round.apply_hooks_sync(hooks)
    assert plan.pending[0].input == Weather(city="Oslo", days=[1])
    assert original == Weather(city=" Oslo ", days=[1])
    plan = plan.apply_hooks_sync(lambda call: RunNormally.edited(days=["2"]))
    plan = plan.apply_hooks_sync(lambda call: RunNormally())
    assert plan.pending[0].input == Weather(city="Oslo", days=[2])
    plan.discard()


async def test_a_call_that_every_hook_lets_pass_is_the_very_call_H1() -> None:
    hooks: Any = OldTools.hooks()

    @hooks.on(OldTools.add)
    async def by_parameters(metadata: ToolMetadata, a: int, b: int) -> ToolDecision[Any, int]:
        return RunNormally()

    @hooks.on(OldTools.add)
    def later(metadata: ToolMetadata, input: BaseModel) -> ToolDecision[Any, int]:
        return RunNormally.edited()

    _, round = start(Call("add", {"a": 1, "b": 2}, id="c"))
    call = round.calls[0]
    plan = await round.apply_hooks(hooks)
    assert plan.pending == (call,)
    assert plan.pending[0] is call
    plan.discard()


def test_decisions_say_what_they_are_and_compare_by_it() -> None:
    assert repr(RunNormally()) == "RunNormally()" == repr(RunNormally.edited())
    assert repr(RunNormally.edited(a=1, b="x")) == "RunNormally.edited(a=1, b='x')"
    assert repr(RunNormally(3)) == "RunNormally(input=3)"
    assert RunNormally.edited(a=1) == RunNormally.edited(a=1) != RunNormally.edited(a=2)
    assert RunNormally() == RunNormally() != RunNormally(None)
    assert hash(RunNormally()) == hash(RunNormally())


def test_a_decision_without_an_input_is_the_same_after_a_copy() -> None:
    for twin in (
        copy.copy(RunNormally()),
        copy.deepcopy(RunNormally()),
        pickle.loads(pickle.dumps(RunNormally())),
    ):
        assert decide(on_pay(lambda _twin=twin: _twin), PAY) == {"amount": Decimal(5), "to": "Bob"}
    assert pickle.loads(pickle.dumps(RunNormally.edited(a=1))) == RunNormally.edited(a=1)


# --- what registration refuses


REFUSED: list[tuple[Any, str]] = [
    (
        lambda metadata, amuont: None,
        r"pay_hook has no parameter 'amuont'; "
        r"it has \(metadata, input\) or \(metadata, amount, to\)",
    ),
    (
        lambda metadata, amount, too: None,
        r"has no parameter 'too'; it has \(amount, to\); did you mean to\?",
    ),
    (lambda metadata, amount, too="Ann": None, r"has no parameter 'too'.*did you mean to\?"),
    (lambda metadata, amount, ledger: None, r"'ledger' is marked Skip: .* end with `\*\*_: Any`"),
    (lambda metadata, ledger=None: None, r"'ledger' is marked Skip"),
    (
        lambda metadata, amount, /: None,
        r"'metadata' must be usable by name.*'amount' must be usable by name",
    ),
    (lambda metadata, amount, ledger, *_, **__: None, r"'ledger' is marked Skip"),
    (lambda metadata, amount, *rest: None, r"name the parameters that it needs in place of \*rest"),
    (
        lambda metadata, input, amount: None,
        r"no parameter 'amount'; it has \(metadata, input\) or \(metadata, amount, to\)",
    ),
    (
        lambda metadata, input, amount=1: None,
        r"amount can't be asked for here: hooks of 'pay' take \(metadata, input\) or",
    ),
    (
        lambda metadata, input, **rest: None,
        r"name the parameters that it needs, of \(metadata, input\) or",
    ),
    (lambda meta, input: None, r"no parameter 'meta'"),
]  # fmt: skip


@pytest.mark.parametrize(("hook", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_what_names_no_parameter_of_the_function_is_refused_when_it_is_registered_H5b(
    hook: Any, message: str
) -> None:
    hooks: Any = Tools.hooks()
    with pytest.raises(HookRegistrationError, match=message):
        hooks.on(Tools.bank.pay)(hook)
    with pytest.raises(HookRegistrationError, match=message):
        hooks.bank.register(type("Policy", (), {"pay_hook": staticmethod(hook_impl(hook))})())
    assert decide(hooks, PAY) == {"amount": Decimal(5), "to": "Bob"}


def test_rests_that_say_they_are_unused_are_never_filled_H5b() -> None:
    def see(metadata: ToolMetadata, amount: Decimal, *_: Any, **__: Any) -> ToolDecision:
        return Complete(f"{amount} {_} {__}")

    assert decide(on_pay(see), PAY).output == "5 () {'to': 'Bob'}"


def test_hooks_of_an_input_class_take_the_input() -> None:
    with pytest.raises(
        HookRegistrationError, match=r"has no parameter 'city'; it has \(metadata, input\)$"
    ):
        OldTools.hooks().on(OldTools.weather)(lambda metadata, city: None)  # type: ignore[arg-type,misc]


# --- functions with a parameter called `input` or `metadata`


def test_a_parameter_called_input_is_given_unless_the_annotation_says_the_whole_input() -> None:
    def value(metadata: ToolMetadata, input: str) -> ToolDecision:
        return Complete(input.upper())

    def bare(metadata, input):  # type: ignore[no-untyped-def]
        return Complete(input.upper())

    def model(metadata: ToolMetadata, input: BaseModel) -> ToolDecision:
        return Complete(input.input.upper())  # type: ignore[attr-defined]

    def own_model(metadata: ToolMetadata, input: say.Input) -> ToolDecision:  # type: ignore[name-defined]
        return Complete(input.input.upper())

    def unresolved(metadata: ToolMetadata, input: OnlyForCheckers.Input) -> ToolDecision:  # type: ignore[name-defined]
        return Complete(input.input.upper())

    def both(metadata: ToolMetadata, input: str, loud: bool) -> ToolDecision:
        return Complete(input.upper())

    for hook in (value, bare, model, own_model, unresolved, both):
        hooks: Any = Tools.hooks()
        hooks.on(Tools.say)(hook)
        assert decide(hooks, SAY).output == "HI", hook
    with pytest.raises(
        HookRegistrationError,
        match=r"or \(metadata, input, loud\); in the first, annotate `input: Bas",
    ):
        Tools.hooks().on(Tools.say)(lambda metadata, text: None)  # type: ignore[call-overload,misc]


def test_a_function_with_a_parameter_called_metadata_has_hooks_of_the_old_form_only() -> None:
    def old(metadata: ToolMetadata, input: BaseModel) -> ToolDecision:
        return Complete(f"{metadata.id} {input.metadata}")  # type: ignore[attr-defined]

    hooks: Any = Tools.hooks()
    hooks.on(Tools.label)(old)
    assert decide(hooks, LABEL).output == "call_3 m"
    with pytest.raises(
        HookRegistrationError,
        match=r"no parameter 'text'; it has \(metadata, input\) only, "
        "since a parameter of the tool is called 'metadata'",
    ):
        hooks.on(Tools.label)(lambda metadata, text: None)


# --- annotations


class HasCity(Protocol):
    city: str


class Mixin:
    pass


@tool_input(name="mixed")
class Mixed(ToolInput[str], Mixin):  # type: ignore[misc]
    """Mixed."""

    x: int


class MixedTools(Toolset):
    mixed = tool(Mixed)


def takes(annotation: Any, returns: Any = ToolDecision) -> Any:
    def hook(metadata: Any, input: Any) -> Any:
        return RunNormally()

    hook.__annotations__.update({"input": annotation, "return": returns})
    return hook


@pytest.mark.parametrize(
    "annotation", [GetUser, "GetUser", str, dict, dict[str, Any], Union[GetUser, str], add.Input]
)
def test_a_hook_annotated_for_another_tools_input_is_refused(annotation: Any) -> None:
    hooks: Any = OldTools.hooks()
    with pytest.raises(
        HookRegistrationError, match=r"`input: .*` is not the input of 'weather', which is Weather"
    ):
        hooks.on(OldTools.weather)(takes(annotation))
    with pytest.raises(HookRegistrationError, match="is not the input of 'weather'"):
        hooks.register(
            type("Policy", (), {"weather_hook": staticmethod(hook_impl(takes(annotation)))})()
        )


def test_a_hook_of_a_function_annotated_for_another_tools_input_is_refused() -> None:
    hooks: Any = OldTools.hooks()
    with pytest.raises(
        HookRegistrationError,
        match=r"`input: Weather` is not the input of 'add', which is AddInput",
    ):
        hooks.on(OldTools.add)(takes(Weather))
    hooks.on(OldTools.add)(takes(add.Input))
    hooks.on(OldTools.add)(takes(BaseModel))


def test_a_hook_that_says_it_passes_on_another_tools_input_is_refused() -> None:
    hooks: Any = OldTools.hooks()
    for returns in (
        RunNormally[GetUser],
        ToolDecision[GetUser, str],
        "Union[Reject, RunNormally[GetUser]]",
    ):
        with pytest.raises(
            HookRegistrationError, match=r"`RunNormally\[GetUser\]` is not for 'weather'"
        ):
            hooks.on(OldTools.weather)(takes(Any, returns))

    def hook(metadata: Any, amount: Any) -> RunNormally[Weather]: ...

    with pytest.raises(HookRegistrationError, match=r"`RunNormally\[Weather\]` is not for 'pay'"):
        Tools.hooks().bank.on(Bank.pay)(hook)


def test_annotations_are_resolved_where_the_hook_stands() -> None:
    """As in a test, where the classes are local and annotations are text."""

    @tool_input
    class Here(ToolInput[None]):
        """Here."""

    @tool_input
    class There(ToolInput[None]):
        """There."""

    class Local(Toolset):
        here = tool(Here)

    class Policy:
        @hook_impl
        def here_hook(self, metadata: ToolMetadata, input: There) -> ToolDecision:
            return RunNormally()

    with pytest.raises(HookRegistrationError, match=r"`input: There` is not the input of 'here'"):
        Local.hooks().register(Policy())


class Wider(Weather):
    """A subclass that is passed on, and would be."""


@pytest.mark.parametrize(
    ("annotation", "returns"),
    [
        (Weather, ToolDecision[Weather, Any]),
        (BaseModel, ToolDecision),
        (Any, Any),
        (object, ToolDecision),
        (HasCity, ToolDecision),
        (Union[Weather, GetUser], ToolDecision[Union[Weather, GetUser], Any]),
        (Annotated[Weather, "note"], ToolDecision),
        ("NotThere", "NorThis"),
        ("Weather", "ToolDecision[Weather, Any]"),
        (ToolInput, RunNormally[Wider]),
        (Weather | None, Reject),
    ],
    ids=str,
)
def test_a_hook_that_may_be_for_the_tool_is_taken(annotation: Any, returns: Any) -> None:
    hooks: Any = OldTools.hooks()
    hooks.on(OldTools.weather)(takes(annotation, returns))
    MixedTools.hooks().on(MixedTools.mixed)(takes(Mixin))


def test_annotations_of_objects_that_are_called_are_read_too() -> None:
    class Called:
        def __call__(self, metadata: Any, input: GetUser) -> Any: ...

    hooks: Any = OldTools.hooks()
    with pytest.raises(HookRegistrationError, match="is not the input of 'weather'"):
        hooks.on(OldTools.weather)(Called())
    with pytest.raises(HookRegistrationError, match="is not the input of 'weather'"):
        hooks.on(OldTools.weather)(functools.partial(Called().__call__))

    @functools.wraps(Called.__call__)
    def wrapped(*args: Any, **kwargs: Any) -> Any: ...

    with pytest.raises(HookRegistrationError, match="is not the input of 'weather'"):
        hooks.on(OldTools.weather)(functools.partial(wrapped, None))


def test_what_is_wrong_with_an_edit_keeps_pydantics_error_behind_it() -> None:
    _, round = start(PAY, toolset=Tools)
    with pytest.raises(HookError) as caught:
        round.apply_hooks_sync(on_pay(lambda amount: RunNormally.edited(amount=0)))
    assert isinstance(caught.value.__cause__.__cause__, ValidationError)  # type: ignore[union-attr]
    round.discard()


# --- some of the parameters, and chains


@pytest.mark.parametrize(
    ("hook", "message"),
    [
        (lambda amuont, to: RunNormally(), "has no parameter 'amuont'; .*did you mean amount"),
        (lambda ledger: RunNormally(), "'ledger' is marked Skip"),
    ],
)
def test_a_hook_of_some_parameters_is_checked_when_it_is_registered(
    hook: Any, message: str
) -> None:
    hooks = Tools.hooks()
    with pytest.raises(HookRegistrationError, match=message):
        hooks.on(Tools.bank.pay, partial=True)(hook)
    with pytest.raises(HookRegistrationError, match=message):
        hooks.with_on(Tools.bank.pay, hook)


def test_a_hook_of_some_parameters_names_just_what_it_wants() -> None:
    hooks = Tools.hooks()

    @hooks.on(Tools.bank.pay, partial=True)
    def generous(amount: Decimal) -> ToolDecision[Any, str]:
        return RunNormally.edited(amount=amount * 2)

    @hooks.on(Tools.bank.pay, partial=True)
    def to_eve(to: str) -> ToolDecision[Any, str]:
        return RunNormally.edited(to=f"{to} and Eve")

    assert decide(hooks, PAY) == {"amount": Decimal(10), "to": "Bob and Eve"}


@pytest.mark.parametrize(
    ("wanted", "is_taken"),
    [
        (Decimal, True),
        ("Decimal", True),
        (Annotated[Decimal, "money"], True),
        (Any, True),
        (Union[Decimal, int], True),
        (object, True),
        (int, False),
        ("str", False),
        (list[int], True),
    ],
)
def test_the_class_of_a_parameter_is_compared(wanted: Any, is_taken: bool) -> None:
    def hook(amount: Any) -> ToolDecision:
        return RunNormally()

    hook.__annotations__["amount"] = wanted
    hooks = Tools.hooks()
    if is_taken:
        hooks.on(Tools.bank.pay, partial=True)(hook)
    else:
        with pytest.raises(HookRegistrationError, match="is not the parameter of"):
            hooks.on(Tools.bank.pay, partial=True)(hook)


def test_a_chain_of_policies_leaves_each_registry_as_it_was_H5b() -> None:
    shared: Any = Tools.hooks()
    twice = shared.with_on(Tools.bank.pay, lambda amount: RunNormally.edited(amount=amount * 2))
    refusing = twice.with_on(Tools.bank.pay, lambda to: Reject(f"who is {to}?"))
    assert decide(shared, PAY) == {"amount": Decimal(5), "to": "Bob"}
    assert decide(twice, PAY) == {"amount": Decimal(10), "to": "Bob"}
    assert decide(refusing, PAY).reason == "who is Bob?"
