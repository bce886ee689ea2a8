"""Registering: everything is checked first, and then all or nothing changes (rules H5b, D8)."""

from __future__ import annotations

import copy
import functools
import random
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import Mock

import pluggy
import pytest
from hook_toolkit import (
    ADD,
    DELETE,
    USER,
    WEATHER,
    AppTools,
    CountTools,
    DataTools,
    OtherTools,
    Weather,
    start,
)

from lutumpy import (
    HookRegistrationError,
    HookSet,
    Reject,
    RunNormally,
    hook_impl,
    hook_slot,
)
from lutumpy.hooks import ToolHooks
from lutumpy.tools.members import REGISTRY_NAMES


def rejects(hooks: ToolHooks[Any], *calls: Any) -> list[str]:
    """The reasons of the calls that these hooks reject."""
    _, round = start(*(calls or (WEATHER, DELETE, USER, ADD)))
    plan = round.apply_hooks_sync(hooks)
    plan.discard()
    return [r.reason for r in plan.rejected]


def rejecting(reason: str) -> Callable[[Any, Any], Any]:
    def hook(metadata: Any, input: Any) -> Any:
        return Reject(reason)

    return hook


@dataclass
class Policy:
    """Equal to another one with the same fields, and not hashable: as dataclasses are."""

    reason: str

    @hook_impl
    def weather_hook(self, metadata: Any, input: Any) -> Any:
        return Reject(self.reason)


# --- what is refused ------------------------------------------------------------------------------


def hooked(name: str, function: Any) -> Any:
    return type("Made", (), {name: hook_impl(function)})()


REFUSED: list[tuple[Any, str]] = [
    (
        hooked("wether_hook", lambda self, metadata, input: None),
        "no hook slot 'wether_hook'; did you mean weather_hook",
    ),
    (hooked("get_user_hook", lambda self, metadata, input: None), "no hook slot 'get_user_hook'"),
    (
        hooked("weather_hook", lambda self, meta, input: None),
        "no parameter 'meta'; it has .metadata, input",
    ),
    (hooked("weather_hook", lambda self, metadata, arguments: None), "no parameter 'arguments'"),
    (
        hooked("weather_hook", lambda self, metadata, input, /: None),
        "'metadata' must be usable by name",
    ),
    (
        hooked("weather_hook", lambda self, *args: None),
        r"name the parameters that it needs.*\*args",
    ),
    (
        hooked("weather_hook", lambda self, **options: None),
        r"name the parameters that it needs.*\*\*options",
    ),
    (
        hooked("any_tool_hook", lambda self, metadata, input: None),
        "any_tool_hook has no parameter 'input'",
    ),
    (hooked("any_result_hook", lambda self, call: None), "any_result_hook has no parameter 'call'"),
    (hooked("weather_description_hook", lambda self, metadata: None), "no parameter 'metadata'"),
    (object(), "no hook: mark its methods with @hook_impl"),
    (None, "no hook"),
    (Policy, "Policy is a class: register an instance"),
]


@pytest.mark.parametrize(("plugin", "message"), REFUSED, ids=[m for _, m in REFUSED])
def test_a_wrong_plugin_is_refused_and_nothing_changes(plugin: Any, message: str) -> None:  # H5b
    hooks = AppTools.hooks().with_hooks(Policy("kept"))
    with pytest.raises(HookRegistrationError, match=message):
        hooks.register(plugin)
    with pytest.raises(HookRegistrationError, match=message):
        hooks.with_hooks(plugin)
    assert rejects(hooks) == ["kept"]


def test_every_problem_is_reported_together() -> None:
    class Bad:
        @hook_impl
        def wether_hook(self, metadata: Any, input: Any) -> Any: ...

        @hook_impl(tryfirst=True, trylast=True)
        def weather_hook(self, meta: Any, inputs: Any) -> Any: ...

    with pytest.raises(HookRegistrationError) as caught:
        AppTools.hooks().register(Bad())
    for part in ("wether_hook", "'meta'", "'inputs'", "tryfirst and trylast"):
        assert part in str(caught.value)


def test_wrappers_of_pluggy_are_refused() -> None:  # H5b
    mark = pluggy.HookimplMarker("lutumpy")
    for options in ({"wrapper": True}, {"hookwrapper": True}):

        class Wrapper:
            @mark(**options)
            def weather_hook(self, metadata: Any, input: Any) -> Any:
                yield

        with pytest.raises(
            HookRegistrationError, match=r"Wrapper\.weather_hook: wrappers are not taken"
        ):
            AppTools.hooks().register(Wrapper())


def test_all_plugins_of_one_call_or_none() -> None:  # H5b
    hooks = AppTools.hooks()
    with pytest.raises(HookRegistrationError):
        hooks.with_hooks(Policy("a"), object())
    assert rejects(hooks) == []


def test_the_same_plugin_twice_is_refused_and_an_equal_one_is_not() -> None:  # H5b
    first, second = Policy("same"), Policy("same")
    hooks = AppTools.hooks().with_hooks(first)
    with pytest.raises(HookRegistrationError, match=r"Policy is registered .* already"):
        hooks.register(first)
    with pytest.raises(HookRegistrationError, match="already"):
        AppTools.hooks().with_hooks(second, second)
    hooks.register(second)
    second.reason = "second"
    hooks.unregister(first)
    assert rejects(hooks) == ["second"]


def test_the_same_function_twice_on_one_tool_is_refused() -> None:  # H5b
    hooks = AppTools.hooks()
    hook = rejecting("once")
    assert hooks.on(AppTools.weather)(hook) is hook
    with pytest.raises(
        HookRegistrationError, match=r"registered on weather_hook of AppTools\.hooks\(\) already"
    ):
        hooks.on(AppTools.weather)(hook)
    hooks.on(AppTools.delete_file)(hook)
    assert rejects(hooks) == ["once", "once"]


@pytest.mark.parametrize(
    "thing", [3, None, print, Mock(), lambda *args: None], ids=lambda thing: type(thing).__name__
)
def test_on_takes_functions_only_that_name_what_they_need(thing: Any) -> None:
    with pytest.raises(HookRegistrationError):
        AppTools.hooks().on(AppTools.weather)(thing)


def test_tools_of_another_toolset_are_refused() -> None:
    hooks: Any = AppTools.hooks()
    for selector in (OtherTools.weather, DataTools.get_user, "weather", None):
        with pytest.raises(HookRegistrationError, match="not a tool of AppTools"):
            hooks.on(selector)
        with pytest.raises(HookRegistrationError, match="not a tool of AppTools"):
            hooks.describe(selector)
    with pytest.raises(HookRegistrationError, match="not a tool of DataTools"):
        hooks.data.on(AppTools.weather)
    with pytest.raises(HookRegistrationError, match="OtherTools is not nested in AppTools"):
        hooks.nested(OtherTools)
    with pytest.raises(AttributeError, match="nothing"):
        hooks.nothing  # noqa: B018


DATA = r"AppTools\.hooks\(\)\.data"
MISPLACED: list[tuple[str, str, str]] = [
    # registered on, hook, what the error says after its name
    ("", "get_user_hook", rf"; {DATA} has it: register the hook there$"),
    ("", "get_user_description_hook", rf"; {DATA} has it"),
    ("", "count_users_hook", rf"; {DATA}\.counts has it"),
    ("data", "count_users_hook", rf"; {DATA}\.counts has it"),
    ("data", "weather_hook", r"; AppTools\.hooks\(\) has it"),
    ("data.counts", "get_user_hook", rf"; {DATA} has it"),
    ("", "get_usr_hook", rf"; did you mean get_user_hook of {DATA} or"),
    ("", "get_user_descripton_hook", rf"; did you mean get_user_description_hook of {DATA}"),
    ("", "weather_descriptions_hook", r"; did you mean weather_description_hook\?$"),
    ("", "deletefile_hook", r"; did you mean delete_file_hook\?$"),
    ("data", "wether", r"; did you mean weather_hook of AppTools\.hooks\(\) or"),
    ("", "xyz_hook", "; it has any_tool_hook, any_result_hook, weather_hook"),
]


@pytest.mark.parametrize("made", ["new", "copied", "loaded"])
def test_a_hook_on_the_wrong_registry_is_told_where_its_slot_is(
    made: str, monkeypatch: pytest.MonkeyPatch
) -> None:  # H5b
    for path, name, message in MISPLACED:
        hooks = AppTools.hooks() if made == "new" else AppTools.hooks().with_hooks(Policy("kept"))
        registry = functools.reduce(getattr, filter(None, path.split(".")), hooks)
        plugin = hooked(name, lambda self: None)
        monkeypatch.setattr(
            "lutumpy.hooks.registry.load_entry_points", lambda name, p=plugin: [(name, p)]
        )
        with pytest.raises(HookRegistrationError, match=f"no hook slot '{name}'{message}"):
            registry.load_plugins("p") if made == "loaded" else registry.register(plugin)


def test_the_hint_for_a_misplaced_hook_can_be_followed() -> None:  # H5b
    class Users:
        @hook_impl
        def get_user_hook(self, metadata: Any, input: Any) -> Any:
            return Reject("no users")

    hooks = AppTools.hooks()
    with pytest.raises(HookRegistrationError) as caught:
        hooks.register(Users())
    (place,) = re.findall(r"; AppTools\.hooks\(\)\.(\S+) has it", str(caught.value))
    getattr(hooks, place).register(Users())
    assert rejects(hooks) == ["no users"]


def test_any_name_of_a_hook_gets_a_hint_that_names_slots_alone() -> None:
    draw = random.Random(7)
    own = AppTools.hooks()
    trees = [own._tree, *own._tree.with_nested()]  # private: what registries there are
    slots = {slot for tree in trees for slot in tree.registry.slots}
    for _ in range(500):
        name = draw.choice(sorted(slots))
        for _ in range(draw.randint(1, 9)):
            at = draw.randrange(len(name))
            name = name[:at] + draw.choice(["", "_", "s", "hook"]) + name[at + draw.randint(0, 3) :]
            name = name or "x"
        if not name.isidentifier() or name in slots:
            continue
        with pytest.raises(HookRegistrationError) as caught:
            own.data.register(hooked(name, lambda self: None))
        hint = str(caught.value).partition(f"no hook slot '{name}'; ")[2]
        assert set(re.findall(r"\w+_hook\b", hint)) <= slots, (name, hint)
        assert hint.startswith(("did you mean ", "it has ")), (name, hint)


def test_a_selector_on_the_wrong_registry_is_told_what_to_give() -> None:
    hooks: Any = AppTools.hooks()
    for registry, given, message in (
        (hooks, DataTools.get_user, "AppTools; give AppTools.data.get_user"),
        (hooks, CountTools.count_users, "AppTools; give AppTools.data.counts.count_users"),
        (hooks, OtherTools.weather, "AppTools; give AppTools.weather"),
        (hooks, "get_user", "AppTools; give AppTools.data.get_user"),
        (hooks, "wether", "AppTools; give AppTools.weather"),
        (hooks, AppTools.data, "AppTools; give one of its tools, or register an any_tool_hook"),
        (hooks.data, AppTools.data.get_user, "DataTools; give DataTools.get_user"),
        (hooks.data, CountTools.count_users, "DataTools; give DataTools.counts.count_users"),
        (hooks.data, AppTools.weather, "DataTools; AppTools.hooks() has it: register the hook"),
        (hooks, 3, "3 is not a tool of AppTools"),
    ):
        for register in (registry.on, registry.describe):
            with pytest.raises(HookRegistrationError, match=re.escape(message)):
                register(given)
    with pytest.raises(HookRegistrationError, match=r"AppTools; DataTools, CountTools are$"):
        hooks.nested(OtherTools)
    with pytest.raises(HookRegistrationError, match=r"3 is not nested in CountTools$"):
        hooks.data.counts.nested(3)
    with pytest.raises(
        AttributeError, match="of AppTools has no nested registry 'dta'; it has data"
    ):
        hooks.dta  # noqa: B018
    with pytest.raises(AttributeError, match=r"of CountTools has no nested registry 'data'$"):
        hooks.data.counts.data  # noqa: B018


# --- what is taken --------------------------------------------------------------------------------


def test_a_hook_names_what_it_needs_in_any_order_and_manner() -> None:
    seen: list[Any] = []

    def reordered(input: Weather, metadata: Any) -> Any:
        seen.append((metadata.id, input.city))
        return RunNormally(input)

    def keywords(*, input: Weather, metadata: Any) -> Any:
        return reordered(input, metadata)

    def defaults_between(metadata: Any, extra: int = 3, input: Any = None) -> Any:
        assert extra == 3
        return reordered(input, metadata)

    def defaults_first(extra: int = 3, metadata: Any = None, input: Any = None) -> Any:
        return defaults_between(metadata, extra, input)

    def part(input: Weather) -> Any:
        return reordered(input, type("M", (), {"id": "call_1"}))

    def none() -> Any:
        return Reject("closed today")

    @functools.wraps(reordered)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return reordered(*args, **kwargs)

    hooks: Any = AppTools.hooks()
    taken = [reordered, keywords, defaults_between, defaults_first, part, wrapped, none]
    for hook in taken:
        hooks.on(AppTools.weather)(hook)
    assert rejects(hooks) == ["closed today"]
    assert seen == [("call_1", " Oslo ")] * (len(taken) - 1)


def test_any_callable_can_be_a_hook() -> None:
    class Callable_:
        def __call__(self, metadata: Any, input: Any) -> Any:
            return Reject("callable")

    class Plugin:
        weather_hook = hook_impl(Callable_())  # type: ignore[type-var]
        delete_file_hook = staticmethod(hook_impl(rejecting("static")))

        @hook_impl
        @classmethod
        def add_hook(cls, metadata: Any, input: Any) -> Any:
            return Reject("class")

    hooks = AppTools.hooks()
    hooks.register(Plugin())
    assert rejects(hooks) == ["callable", "static", "class"]
    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(Callable_())
    hooks.on(AppTools.weather)(
        functools.partial(lambda reason, metadata, input: Reject(reason), "partial")
    )
    assert rejects(hooks) == ["callable"]


def test_a_module_can_be_a_plugin() -> None:
    module: Any = ModuleType("policies")
    module.weather_hook = hook_impl(rejecting("module"))
    module.other = 3
    hooks = AppTools.hooks()
    hooks.register(module)
    assert rejects(hooks) == ["module"]


def test_properties_of_a_plugin_are_not_read() -> None:
    class Plugin(Policy):
        @property
        def boom(self) -> Any:
            raise AssertionError("read")

        @functools.cached_property
        def late(self) -> Any:
            raise AssertionError("read")

    assert rejects(AppTools.hooks().with_hooks(Plugin("fine"))) == ["fine"]


def test_the_public_names_of_a_registry_are_the_ones_that_members_may_not_have() -> None:  # D8
    assert {name for name in dir(ToolHooks) if not name.startswith("_")} == REGISTRY_NAMES


# --- what leaves and what is copied ---------------------------------------------------------------


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy], ids=["copy", "deepcopy"])
def test_a_copied_registry_is_one_of_its_own(way: Callable[[Any], Any]) -> None:
    policy = Policy("always")
    base = AppTools.hooks().with_hooks(policy)
    base.data.on(DataTools.get_user)(rejecting("private"))
    twin = way(base)
    twin.on(AppTools.add)(rejecting("no sums"))
    twin.data.on(DataTools.get_user)(rejecting("never asked"))
    twin.unregister(policy)
    assert rejects(base) == ["always", "private"]
    assert rejects(twin) == ["private", "no sums"]

    class Prompts(HookSet):
        @hook_slot("fallback")
        def words(self) -> str:
            return "none"

    prompts = Prompts()
    others = way(prompts)
    others.on(Prompts.words)(lambda: "some")
    assert (prompts.words(), others.words()) == ("none", "some")


def test_unregister_takes_out_plugins_and_functions_wherever_they_are() -> None:
    hooks = AppTools.hooks()
    policy, function, both = Policy("policy"), rejecting("function"), rejecting("both")
    hooks.register(policy)
    hooks.on(AppTools.delete_file)(function)
    hooks.data.on(DataTools.get_user)(both)
    hooks.on(AppTools.add)(both)
    assert rejects(hooks) == ["policy", "function", "both", "both"]
    hooks.unregister(both)
    hooks.unregister(policy)
    assert rejects(hooks) == ["function"]
    hooks.unregister(function)
    for gone in (policy, function, both):
        with pytest.raises(HookRegistrationError, match="is not registered on AppTools"):
            hooks.unregister(gone)
    hooks.register(policy)
    assert rejects(hooks) == ["policy"]


def test_unregister_takes_a_plugin_out_of_nested_registries_too() -> None:
    class Every:
        @hook_impl
        def any_tool_hook(self, metadata: Any, call: Any) -> Any:
            return Reject("every")

    every = Every()
    hooks = AppTools.hooks()
    hooks.register(every)
    hooks.data.register(every)
    hooks.unregister(every)
    assert rejects(hooks) == []


def test_a_bound_method_can_be_unregistered() -> None:
    class Holder:
        def check(self, metadata: Any, input: Any) -> Any:
            return Reject("holder")

    holder = Holder()
    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(holder.check)
    hooks.unregister(holder.check)  # another object than the one above, and the same method
    assert rejects(hooks) == []


def test_a_callable_that_is_equal_to_another_is_not_that_one() -> None:  # H5b
    @dataclass(frozen=True)
    class Deny:
        reason: str

        def __call__(self, metadata: Any, input: Any) -> Any:
            return Reject(self.reason)

    first, second = Deny("no"), Deny("no")
    hooks = AppTools.hooks()
    hooks.on(AppTools.weather)(first)
    hooks.on(AppTools.weather)(second)
    hooks.on(AppTools.add)(second)
    hooks.unregister(first)
    assert rejects(hooks) == ["no", "no"]
    with pytest.raises(HookRegistrationError, match="already"):
        hooks.on(AppTools.add)(second)
    hooks.unregister(second)
    assert rejects(hooks) == []


def test_with_hooks_leaves_the_old_registry_as_it_was_nested_ones_included() -> None:  # H5b
    old = AppTools.hooks()
    new = old.with_hooks(Policy("new"))
    new.data.on(DataTools.get_user)(rejecting("new nested"))
    new.data.counts.on(CountTools.count_users)(rejecting("deep"))
    old.on(AppTools.add)(rejecting("old"))
    assert rejects(old) == ["old"]
    assert rejects(new) == ["new", "new nested"]
    assert "0 plugins" in repr(AppTools.hooks())
    assert "3 plugins" in repr(new)


def test_extend_takes_everything_nested_ones_included() -> None:  # H5b
    other = AppTools.hooks().with_hooks(Policy("policy"))
    other.on(AppTools.data[DataTools.get_user])(rejecting("nested"))
    base = AppTools.hooks()
    base.on(AppTools.weather)(lambda metadata, input: RunNormally(input))
    both = base.with_extended(other)
    assert rejects(base) == []
    assert rejects(both) == ["policy", "nested"]
    base.extend(other)
    assert rejects(base) == ["policy", "nested"]
    other.on(AppTools.add)(rejecting("later"))
    assert rejects(base) == ["policy", "nested"]


def test_extend_is_all_or_nothing() -> None:  # H5b
    shared = rejecting("shared")
    base, other = AppTools.hooks(), AppTools.hooks().with_hooks(Policy("policy"))
    base.on(AppTools.data[DataTools.get_user])(shared)
    other.on(AppTools.data[DataTools.get_user])(shared)
    with pytest.raises(
        HookRegistrationError,
        match=r"rejecting.*\.hook is registered on get_user_hook of DataTools",
    ):
        base.extend(other)
    assert rejects(base) == ["shared"]
    policy = Policy("twice")
    with pytest.raises(HookRegistrationError, match="Policy is registered"):
        AppTools.hooks().with_hooks(policy).extend(AppTools.hooks().with_hooks(policy))
    with pytest.raises(HookRegistrationError, match="already"):
        base.extend(base)
    for wrong in (OtherTools.hooks(), AppTools.hooks().data, None):
        with pytest.raises(HookRegistrationError, match="not a registry of AppTools"):
            base.extend(wrong)  # type: ignore[arg-type]
    assert rejects(base) == ["shared"]


# --- installed plugins ----------------------------------------------------------------------------

MODULE = """
from lutumpy import Reject, hook_impl

class Installed:
    @hook_impl
    def weather_hook(self, metadata, input):
        return Reject("installed")

class NeedsArguments(Installed):
    def __init__(self, path): ...

instance = Installed()
empty = object()
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    (tmp_path / "fake_lutumpy_plugin.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "fake_lutumpy_plugin", raising=False)

    def write(**entry_points: list[str]) -> None:
        for number, (name, values) in enumerate(entry_points.items()):
            for index, value in enumerate(values):
                info = tmp_path / f"fake_{number}_{index}-1.0.dist-info"
                info.mkdir()
                (info / "METADATA").write_text(
                    f"Metadata-Version: 2.1\nName: fake-{number}-{index}\nVersion: 1.0\n"
                )
                (info / "entry_points.txt").write_text(
                    f"[lutumpy]\n{name} = fake_lutumpy_plugin:{value}\n"
                )

    return write


def test_installed_plugins_are_loaded_when_asked_for(install: Callable[..., None]) -> None:
    install(policies=["Installed"], ready=["instance"])
    hooks = AppTools.hooks()
    assert "fake_lutumpy_plugin" not in sys.modules
    hooks.load_plugins("policies")
    with pytest.raises(HookRegistrationError, match=r"Installed is registered .* already"):
        hooks.load_plugins("policies")  # H5b: another instance, and the same plugin
    assert rejects(hooks) == ["installed"]
    hooks = AppTools.hooks()
    hooks.load_plugins("ready")
    with pytest.raises(HookRegistrationError, match="already"):
        hooks.load_plugins("ready")
    hooks.unregister(sys.modules["fake_lutumpy_plugin"].instance)
    assert rejects(hooks) == []


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["Installed", "missing"], r"can't be loaded.*missing"),
        (["Installed", "NeedsArguments"], r"can't be loaded.*path"),
        (["Installed", "empty"], "has no hook"),
    ],
)
def test_installed_plugins_are_all_or_nothing(
    install: Callable[..., None], values: list[str], message: str
) -> None:
    install(policies=values)
    hooks = AppTools.hooks()
    with pytest.raises(HookRegistrationError, match=message):
        hooks.load_plugins("policies")
    assert rejects(hooks) == []


def test_a_plugin_that_is_not_installed_is_an_error_that_lists_what_is(
    install: Callable[..., None],
) -> None:
    install(policies=["Installed"])
    with pytest.raises(
        HookRegistrationError, match=r"no installed plugin 'policy' .*\(installed: policies\)"
    ):
        AppTools.hooks().load_plugins("policy")
