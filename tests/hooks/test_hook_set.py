"""Application hooks: the user's own slots on the same machinery (rule H7)."""

from __future__ import annotations

import asyncio
import gc
import warnings
from typing import Any

import pytest

from lutumpy import (
    DeclarationError,
    HookError,
    HookRegistrationError,
    HookSet,
    hook_impl,
    hook_slot,
)


class AppHooks(HookSet):
    @hook_slot("always")
    async def validate(self, prompt: str, strict: bool = False) -> str | None:
        """Why a prompt is refused."""
        return None if prompt.strip() else "empty"

    @hook_slot("fallback")
    def rank(self, items: list[str], *, limit: int = 10) -> list[str]:
        return ["default", *items][:limit]

    @hook_slot("singleton")
    def title(self, text: str) -> str:
        return text.title()

    @hook_slot("singleton")
    async def fetch(self, key: str) -> str:
        await asyncio.sleep(0)
        return f"default {key}"


class Adds:
    def __init__(self, word: str) -> None:
        self.word = word

    @hook_impl
    async def validate(self, prompt: str, strict: bool, last: str | None) -> str:
        return f"{last} {self.word}{' strict' if strict else ''}"

    @hook_impl
    def rank(self, items: list[str], last: list[str] | None) -> list[str]:
        return [*(last or items), self.word]


async def test_always_runs_the_default_first_then_each_hook_with_the_result_so_far() -> None:  # H7
    hooks = AppHooks()
    assert await hooks.validate("x") is None
    hooks.register(Adds("a"))
    hooks.register(Adds("b"))
    assert await hooks.validate("x") == "None a b"
    assert await hooks.validate(" ", strict=True) == "empty a strict b strict"


def test_fallback_uses_the_default_only_when_there_is_no_hook() -> None:  # H7
    hooks = AppHooks()
    assert hooks.rank(["x"]) == ["default", "x"]
    assert hooks.rank(["x"], limit=1) == ["default"]
    hooks.register(Adds("a"))
    hooks.register(Adds("b"))
    assert hooks.rank(["x"]) == ["x", "a", "b"]


def test_a_hook_that_does_not_name_last_is_not_given_it() -> None:  # H7
    class Plain:
        @hook_impl
        def rank(self, items: list[str]) -> list[str]:
            return sorted(items)

    class Nothing:
        @hook_impl(trylast=True)
        def rank(self, last: list[str]) -> list[str]:
            return last[:1]

    assert AppHooks().with_hooks(Nothing(), Plain()).rank(["b", "a"]) == ["a"]


async def test_singleton_keeps_the_last_one_registered_and_warns() -> None:  # H7
    class Title:
        def __init__(self, mark: str) -> None:
            self.mark = mark

        @hook_impl
        def title(self, text: str) -> str:
            return text + self.mark

        @hook_impl
        def fetch(self, key: str) -> str:
            return key + self.mark

    hooks = AppHooks()
    assert hooks.title("a b") == "A B"
    assert await hooks.fetch("k") == "default k"
    first = Title("!")
    hooks.register(first)
    with pytest.warns(UserWarning, match="is replaced by .* of AppHooks") as caught:
        hooks.register(Title("?"))
    assert {w.filename for w in caught} == {__file__}
    assert (hooks.title("a"), await hooks.fetch("k")) == ("a?", "k?")
    hooks.unregister(first)
    assert hooks.title("a") == "a?"


def test_a_plain_slot_refuses_async_hooks_when_they_are_registered() -> None:
    class Async:
        @hook_impl
        async def rank(self, items: list[str]) -> list[str]:
            return items

    hooks = AppHooks()
    with pytest.raises(
        HookRegistrationError, match=r"Async\.rank.* is async; rank is a plain slot"
    ):
        hooks.register(Async())
    assert hooks.rank([]) == ["default"]


def test_a_plain_slot_refuses_what_a_plain_hook_gives_to_await() -> None:
    async def inner() -> Any: ...

    class Disguised:
        @hook_impl
        def rank(self, items: list[str]) -> Any:
            return inner()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(HookError, match=r"Disguised\.rank gave an awaitable"):
            AppHooks().with_hooks(Disguised()).rank([])
        gc.collect()


async def test_an_async_slot_takes_plain_hooks_and_awaitables() -> None:
    async def later(value: str) -> str:
        return value

    class Plain:
        @hook_impl
        def validate(self, prompt: str) -> Any:
            return later("later") if prompt == "x" else "now"

    hooks = AppHooks().with_hooks(Plain())
    assert (await hooks.validate("x"), await hooks.validate("y")) == ("later", "now")


async def test_what_a_default_or_a_hook_raises_comes_out_as_it_is() -> None:
    class Broken(HookSet):
        @hook_slot("always")
        async def check(self, value: int) -> int:
            raise ZeroDivisionError

        @hook_slot("fallback")
        def other(self, value: int) -> int:
            raise ZeroDivisionError

    class Plugin:
        @hook_impl
        def check(self, value: int) -> int:
            raise AssertionError("not reached")

        @hook_impl
        def other(self, value: int) -> int:
            raise KeyError(value)

    hooks = Broken().with_hooks(Plugin())
    with pytest.raises(ZeroDivisionError):
        await hooks.check(1)
    with pytest.raises(KeyError):
        hooks.other(1)
    with pytest.raises(ZeroDivisionError):
        Broken().other(1)
    with pytest.raises(TypeError):
        Broken().other()  # type: ignore[call-arg]


class More(AppHooks):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    @hook_slot("fallback")
    def greet(self) -> str:
        return f"hello {self.name}"

    @hook_slot("singleton")
    def title(self, text: str) -> str:
        return text.upper()


def test_slots_are_inherited_and_can_be_declared_anew() -> None:
    hooks = More("you").with_hooks(Adds("a"))
    assert hooks.rank(["x"]) == ["x", "a"]
    assert hooks.title("x") == "X"
    assert hooks.greet() == "hello you"
    with pytest.raises(HookRegistrationError, match="has no hook slot 'greet'"):
        AppHooks().register(type("P", (), {"greet": hook_impl(lambda self: "hi")})())


def test_a_slot_of_a_set_that_is_held_is_named_with_its_place() -> None:
    class Outer(HookSet):
        def __init__(self) -> None:
            super().__init__()
            self.inner = More("you")
            self.inner.__dict__["back"] = self

    for hooks in (Outer(), Outer().with_hooks()):
        with pytest.raises(
            HookRegistrationError, match=r"'title'; Outer\.inner has it: register the hook there"
        ):
            hooks.register(type("P", (), {"title": hook_impl(lambda self, text: text)})())
        with pytest.raises(HookRegistrationError, match=r"did you mean greet of Outer\.inner\?"):
            hooks.register(type("P", (), {"gret": hook_impl(lambda self: "hi")})())


def test_a_slot_that_is_overridden_by_a_method_is_no_slot_any_more() -> None:
    class Fixed(AppHooks):
        def title(self, text: str) -> str:  # type: ignore[override]
            return "fixed"

    assert Fixed().title("x") == "fixed"
    with pytest.raises(HookRegistrationError, match="no hook slot 'title'"):
        Fixed().register(type("P", (), {"title": hook_impl(lambda self, text: text)})())


def test_a_set_without_slots_takes_no_plugin() -> None:
    class Empty(HookSet):
        pass

    with pytest.raises(HookRegistrationError, match="no hook slot"):
        Empty().register(Adds("a"))


def test_slots_are_checked_when_the_class_is_built() -> None:
    with pytest.raises(DeclarationError, match="always, fallback, singleton"):
        hook_slot("sometimes")  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match=r"Taken\.register: the name is taken"):

        class Taken(HookSet):
            @hook_slot("always")
            def register(self, plugin: Any) -> None: ...


def test_sets_are_copied_and_extended_like_registries() -> None:  # H5b
    old = AppHooks()
    plugin = Adds("a")
    new = old.with_hooks(plugin)
    assert old.rank([]) == ["default"]
    both = AppHooks().with_extended(new)
    assert both.rank([]) == ["a"]
    for wrong in (More("x"), HookSet(), None):
        with pytest.raises(HookRegistrationError, match="another set of hooks than AppHooks"):
            both.extend(wrong)  # type: ignore[arg-type]
    both.extend(new)  # a plugin of both is there once
    assert both.rank([]) == ["a"]
    with pytest.raises(HookRegistrationError, match="already"):
        both.register(plugin)
    with pytest.raises(HookRegistrationError, match="not registered"):
        old.unregister(plugin)
    assert More("you").with_hooks(plugin).greet() == "hello you"


# --- what a slot has for its hooks (rule H7)


def test_a_slot_that_declares_last_for_itself_is_refused_H7() -> None:
    """Its hooks would be given the result so far by that name, and never the argument."""
    for kind in ("always", "fallback", "singleton"):
        with pytest.raises(
            DeclarationError, match=r"validate\(self, prompt.*declares 'last' for itself"
        ):

            class Bad(HookSet):
                @hook_slot(kind)  # type: ignore[arg-type]
                def validate(self, prompt: str, last: str | None = None) -> str | None: ...


def test_a_hook_of_a_singleton_that_names_last_is_refused_H7() -> None:
    class Needs:
        @hook_impl
        def title(self, text: str, last: str) -> str:
            return last

    class Defaults:
        @hook_impl
        def title(self, text: str, last: str | None = None) -> str:
            return text

    hooks = AppHooks()
    for plugin in (Needs(), Defaults()):
        with pytest.raises(
            HookRegistrationError, match=r"title.*a singleton runs one hook.*no 'last'"
        ):
            hooks.register(plugin)
    with pytest.raises(HookRegistrationError, match="no 'last'"):
        hooks.on(AppHooks.title)(lambda text, last=None: text)
    assert hooks.title("a") == "A"


# --- functions


def test_a_marked_function_can_be_registered_on_a_slot() -> None:
    hooks = AppHooks()

    @hooks.on(AppHooks.rank)
    @hook_impl(trylast=True)
    def shorten(items: list[str], last: list[str] | None) -> list[str]:
        return (last or items)[:1]

    @hooks.on(AppHooks.rank)
    def ordered(items: list[str]) -> list[str]:  # it needs no mark
        return sorted(items)

    assert hooks.rank(["b", "a"]) == ["a"]
    hooks.unregister(shorten)
    assert hooks.rank(["b", "a"]) == ["a", "b"]
    with pytest.raises(
        HookRegistrationError, match="ordered is registered on rank of AppHooks already"
    ):
        hooks.on(AppHooks.rank)(ordered)
    with pytest.raises(
        HookRegistrationError, match=r"shorten is a function: register it for one slot, with on\(\)"
    ):
        hooks.register(shorten)


async def test_a_function_on_an_async_slot_may_be_async_or_plain() -> None:
    hooks = AppHooks()

    @hooks.on(AppHooks.validate)
    async def first(prompt: str, last: str | None) -> str:
        return f"{last} first"

    @hooks.on(AppHooks.validate)
    def second(last: str | None) -> str:
        return f"{last} second"

    assert await hooks.validate("x") == "None first second"


def test_a_function_is_checked_against_the_slot_and_the_slot_against_the_set() -> None:
    hooks: Any = AppHooks()
    with pytest.raises(HookRegistrationError, match="rank has no parameter 'things'"):
        hooks.on(AppHooks.rank)(lambda things: things)
    with pytest.raises(HookRegistrationError, match="is async; rank is a plain slot"):

        @hooks.on(AppHooks.rank)
        async def later(items: list[str]) -> list[str]:
            return items

    for wrong in (More.greet, More.title, "rank", None, AppHooks().rank):
        with pytest.raises(
            HookRegistrationError, match=r"is not a slot of AppHooks: give AppHooks\.<slot>"
        ):
            hooks.on(wrong)
    more = More("you")
    more.on(AppHooks.rank)(lambda items: ["inherited"])
    assert more.rank([]) == ["inherited"]


# --- sets inside sets


class Inner(HookSet):
    @hook_slot("fallback")
    def tag(self, text: str) -> str:
        return text


class Outer(HookSet):
    shared = Inner()  # each instance has its own

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    @hook_slot("fallback")
    def wrap(self, text: str) -> str:
        return self.inner.tag(text)


class Marks:
    def __init__(self, mark: str) -> None:
        self.mark = mark

    @hook_impl
    def tag(self, text: str, last: str | None) -> str:
        return f"{last or text}{self.mark}"


class Wraps:
    @hook_impl
    def wrap(self, text: str) -> str:
        return f"({text})"


def test_each_set_has_inner_sets_of_its_own_H7() -> None:
    first, second = Outer(), Outer()
    first.shared.register(Marks("!"))
    first.inner.register(Marks("?"))
    assert (first.shared.tag("a"), first.inner.tag("a")) == ("a!", "a?")
    assert (second.shared.tag("a"), second.inner.tag("a"), Outer.shared.tag("a")) == ("a", "a", "a")


def test_with_hooks_shares_no_inner_set_with_the_old_one_H5b() -> None:
    old = Outer()
    old.inner.register(Marks("!"))
    new = old.with_hooks(Wraps())
    new.inner.register(Marks("new"))
    new.shared.register(Marks("new"))
    old.inner.register(Marks("old"))
    assert (old.wrap("a"), old.inner.tag("a"), old.shared.tag("a")) == ("a!old", "a!old", "a")
    assert (new.wrap("a"), new.inner.tag("a"), new.shared.tag("a")) == ("(a)", "a!new", "anew")


def test_extend_takes_the_inner_sets_along_H5b() -> None:
    other = Outer().with_hooks(Wraps())
    other.inner.register(Marks("!"))
    other.shared.register(Marks("?"))
    base = Outer()
    base.inner.register(Marks("0"))
    both = base.with_extended(other)
    assert (both.wrap("a"), both.inner.tag("a"), both.shared.tag("a")) == ("(a)", "a0!", "a?")
    assert (base.wrap("a"), base.inner.tag("a"), base.shared.tag("a")) == ("a0", "a0", "a")
    base.extend(other)
    other.inner.register(Marks("later"))
    assert base.inner.tag("a") == "a0!"


def test_extend_takes_a_set_that_shares_a_plugin_once_H5b() -> None:
    shared, own = Marks("s"), Marks("o")
    base, other = Outer(), Outer()
    for hooks in (base, other):
        hooks.inner.register(shared)
    other.inner.register(own)
    base.extend(other)
    assert base.inner.tag("a") == "aso"
    base.extend(base)
    assert base.inner.tag("a") == "aso"


def test_extend_keeps_an_inner_set_that_only_the_other_one_holds_H5b() -> None:
    base, other = Outer(), Outer()
    del base.inner
    other.inner.register(Marks("!"))
    base.extend(other)
    other.inner.register(Marks("later"))
    assert base.inner.tag("a") == "a!"


def test_extend_is_all_or_nothing_inner_sets_included_H5b() -> None:
    base, other = Outer(), Outer().with_hooks(Wraps())
    other.inner = AppHooks()  # type: ignore[assignment]
    with pytest.raises(
        HookRegistrationError, match=r"AppHooks is another set of hooks than Outer\.inner"
    ):
        base.extend(other)
    assert base.wrap("a") == "a"


def test_sets_that_hold_each_other_are_copied_once() -> None:
    outer: Any = Outer()
    outer.inner.outer = outer
    outer.again = outer.inner
    twin = outer.with_hooks(Wraps())
    assert twin.inner.outer is twin is not outer
    assert twin.again is twin.inner is not outer.inner
    twin.extend(outer)
    assert twin.wrap("a") == "(a)"


async def test_registering_during_a_call_does_not_change_that_call() -> None:
    hooks = AppHooks()

    class Registers:
        @hook_impl
        async def validate(self, prompt: str) -> str:
            hooks.register(Adds("late"))
            return "first"

    hooks.register(Registers())
    assert await hooks.validate("x") == "first"
    assert await AppHooks().with_hooks(Adds("a")).validate("x") == "None a"


def test_a_slot_keeps_its_documentation() -> None:
    assert AppHooks.validate.__doc__ == "Why a prompt is refused."
