"""The registries of a toolset and of those nested in it, and which hooks a call meets there."""

#   slot                       implemented by                       run by
#   -------------------------  -----------------------------------  -------------------------------
#   any_tool_hook              (metadata, call) -> decision         apply, a round's apply_hooks
#   <tool>_hook                (metadata, input) -> decision        the same, after the general ones
#   on(AppTools.more)          (metadata, input) -> decision        the same, for each of its tools
#   on(a dynamic tool)         (metadata, input) -> decision        the same, after its place's
#   any_result_hook            (metadata, result) -> result, None   review
#   <tool>_description_hook    (definition) -> text, None           description_overrides
#
# A nested toolset has a registry of its own, a "group" of the outer one. A call of a nested tool
# meets the general hooks of every registry on the way, outermost first, and then the tool's own
# hooks, which only the innermost registry keeps. The chains of hooks are worked out once for each
# change of any of these registries.
#
# A registry serves its own toolset, and every class that was made of that at run time. Tools that
# such a class has more are known by their place and name alone, so that a policy for `delete_file`
# holds for each new set of tools that has one.

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

from lutumpy.errors import HookError, HookRegistrationError
from lutumpy.hooks.implementations import Implementation, SlotPlaces, SlotSpec
from lutumpy.hooks.pipeline import CallOrIssue, Chain, HookStep, chain_of
from lutumpy.hooks.registry import Registry
from lutumpy.plain.safe_text import safe_repr
from lutumpy.tools.approvals import ApprovalRequest
from lutumpy.tools.calls import BaseToolCall
from lutumpy.tools.dynamic_group import Dynamic, DynamicGroup, DynamicSelector
from lutumpy.tools.members import hook_slots
from lutumpy.tools.selectors import (
    BaseToolset,
    Selector,
    extended_selector,
    extends,
    place_of_tool,
    suggest_tool,
)
from lutumpy.tools.tool import Nested, NestedSelectors, Tool

__all__ = ["ANY_RESULT", "HookTree"]

_CALL_PARAMETERS = ("metadata", "input")
_DESCRIPTION_PARAMETERS = ("definition",)
ANY_TOOL = "any_tool_hook"
ANY_RESULT = "any_result_hook"
_NO_HOOKS = chain_of(())

AnySelector = Selector[Any, Any, Any]


class HookTree:
    """The registry of one toolset, with the trees of those nested in it.

    Attributes:
        toolset: The toolset.
        registry: Its own hooks. A change of several registries at once replaces it.
        groups: The trees of nested toolsets, by the name of the member.
        places: The members that are places for tools known at run time, with their names.
        slot_places: Where the slots of all tools are, of this tree and of those around and in it.
    """

    __slots__ = ("_chains", "groups", "places", "registry", "slot_places", "toolset")

    def __init__(
        self,
        toolset: type[BaseToolset],
        registry: Registry,
        groups: dict[str, HookTree],
        places: dict[Dynamic, str],
        slot_places: SlotPlaces,
    ) -> None:
        self.toolset: type[BaseToolset] = toolset
        self.registry: Registry = registry
        self.groups: dict[str, HookTree] = groups
        self.places: dict[Dynamic, str] = places
        self.slot_places: SlotPlaces = slot_places
        # The chains by tool name, and the version of the registries that they belong to.
        self._chains: tuple[int, dict[str, Chain]] | None = None

    @classmethod
    def of_toolset(cls, toolset: type[BaseToolset]) -> HookTree:
        """The empty registries of a toolset."""
        return cls._of_member(toolset, f"{toolset.__name__}.hooks()", {})

    @classmethod
    def _of_member(
        cls, toolset: type[BaseToolset], place: str, slot_places: dict[str, list[str]]
    ) -> HookTree:
        """The empty registries of a toolset that a program reaches by `place`; its slots are added
        to `slot_places`.
        """
        slots = [
            SlotSpec(ANY_TOOL, ("metadata", "call")),
            SlotSpec(ANY_RESULT, ("metadata", "result")),
        ]
        groups: dict[str, HookTree] = {}
        places: dict[Dynamic, str] = {}
        for name, member in toolset.__lutumpy_table__.members.items():
            if isinstance(member, Nested):
                groups[name] = cls._of_member(member.toolset, f"{place}.{name}", slot_places)
            elif isinstance(member, Dynamic):
                places[member] = name
                slots.append(SlotSpec(_place_slot(name), _CALL_PARAMETERS))
            elif isinstance(member, Tool) and not member.source.is_dynamic:
                call, description = hook_slots(member.source.definition.name)
                slots.append(SlotSpec(call, _CALL_PARAMETERS, tool=member.source))
                slots.append(SlotSpec(description, _DESCRIPTION_PARAMETERS, singleton=True))
        for slot in slots:
            slot_places.setdefault(slot.name, []).append(place)
        registry = Registry(f"{toolset.__name__}.hooks()", slots)
        return cls(toolset, registry, groups, places, slot_places)

    def copy(self) -> HookTree:
        """Independent registries with the same plugins."""
        groups = {name: group.copy() for name, group in self.groups.items()}
        return HookTree(self.toolset, self.registry.copy(), groups, self.places, self.slot_places)

    def with_nested(self) -> list[HookTree]:
        """This tree and all trees in it, outermost first."""
        nested = [inner for group in self.groups.values() for inner in group.with_nested()]
        return [self, *nested]

    def version(self) -> int:
        """A number that grows with every change, of nested registries too."""
        version = self.registry.version
        for group in self.groups.values():
            version += group.version()
        return version

    def extend(self, other: HookTree) -> None:
        """Register every plugin of another tree of the same toolset: all or none.

        Raises:
            HookRegistrationError: It has a plugin that is here already. Nothing has changed.
        """
        pairs = list(zip(self.with_nested(), other.with_nested(), strict=True))
        # First everything on copies, where it may fail; then the copies take their places.
        extended = [mine.registry.copy() for mine, _ in pairs]
        for registry, (_, theirs) in zip(extended, pairs, strict=True):
            registry.adopt(theirs.registry, theirs.registry.plugins)
        for (mine, _), registry in zip(pairs, extended, strict=True):
            registry.version = mine.registry.version + 1
            mine.registry = registry

    # --- registration ---------------------------------------------------------------------------

    def register_for_tool(
        self, selector: AnySelector, hook: Any, what: Literal["call", "description"]
    ) -> None:
        """Register one function for one tool. This tree is the tool's owner.

        Raises:
            HookRegistrationError: The function doesn't fit, or is there already.
        """
        if what == "call":
            slot = SlotSpec(_call_slot(selector), _CALL_PARAMETERS, tool=selector.tool)
        else:
            slot = SlotSpec(_description_slot(selector), _DESCRIPTION_PARAMETERS, singleton=True)
        # Tools without generated slots get theirs when somebody registers for them (rule Y8b).
        self.registry.add_slot(slot)
        self.registry.register_function(slot.name, hook)

    def register_for_place(self, place: Dynamic, hook: Any) -> None:
        """Register one function for all tools that fill a place. This tree has the place."""
        self.registry.register_function(_place_slot(self.places[place]), hook)

    def find_owner(self, selector: Any) -> HookTree:
        """The tree whose registry keeps the hooks of a tool.

        Raises:
            HookRegistrationError: It isn't a tool of this toolset, nor of one that was made of it.
        """
        if not isinstance(selector, Selector) or not self._serves(selector):
            raise HookRegistrationError(
                f"{safe_repr(selector)} is not a tool of {self.toolset.__name__}"
                f"{self._suggest_selector(selector)}"
            )
        return self._owner_of(selector)

    def _suggest_selector(self, value: Any) -> str:
        """What to give in place of something that isn't a tool of this toolset."""
        if isinstance(value, NestedSelectors):
            return "; give one of its tools, or register an any_tool_hook on its own registry"
        if isinstance(value, str):
            return suggest_tool(self.toolset, value)
        if not isinstance(value, Selector):
            return ""
        own = place_of_tool(self.toolset, value)
        if own is not None:
            return f"; give {own}"
        places = self.slot_places.get(_call_slot(value), ())
        return f"; {' and '.join(places)} has it: register the hook there" if places else ""

    def find_place(self, group: DynamicGroup[Any]) -> HookTree:
        """The tree whose toolset has a place as a member; raises `HookRegistrationError`."""
        for tree in self.with_nested():
            if group.place in tree.places:
                return tree
        raise HookRegistrationError(
            f"{group!r} is not a dynamic() place of {self.toolset.__name__}"
        )

    def _serves(self, selector: AnySelector) -> bool:
        # A tool of this toolset or of one made of it; or one that this toolset has from the class
        # that it was made of.
        if extends(selector.toolset, self.toolset):
            return True
        return extended_selector(self.toolset, selector) is not None

    def _owner_of(self, selector: AnySelector) -> HookTree:
        """The innermost tree whose toolset declares the tool itself, or the place it fills."""
        for group in self.groups.values():
            if group._declares(selector):
                return group._owner_of(selector)
        return self

    def _declares(self, selector: AnySelector | None) -> bool:
        """Whether its toolset has the tool; of an unknown one (`None`), whether it may have it.

        An unknown tool is one known at run time, and may fill any place.
        """
        if selector is None:
            return bool(self.toolset.__lutumpy_table__.groups)
        place = _place_of(selector)
        if place is not None:
            return place in self.toolset.__lutumpy_table__.groups
        return self.toolset.try_selector(selector.name) is not None

    # --- what a call meets ----------------------------------------------------------------------

    def chain_of(self, call: BaseToolCall) -> Chain:
        """The hooks that decide one call; raises `HookError` for a call of another toolset."""
        if isinstance(call, ApprovalRequest):
            return self.approval_chain()
        toolset = call.selector.toolset
        if toolset is self.toolset:
            return self.chains().get(call.metadata.name, _NO_HOOKS)
        if not extends(toolset, self.toolset):
            ours = self.toolset.__name__
            raise HookError(f"{call!r} is a call of {toolset.__name__}, not of {ours}")
        return chain_of(self._list_steps(call.selector))

    def approval_chain(self) -> Chain:
        """The hooks that are asked about requests for approval.

        They are those for calls of every tool, of this registry alone: a request belongs to no
        nested toolset.
        """
        return chain_of(
            [_make_step(hook, "call") for hook in self.registry.implementations(ANY_TOOL)]
        )

    def chains(self) -> dict[str, Chain]:
        """The hooks registered now by tool name; tools without hooks are left out."""
        version = self.version()
        if self._chains is None or self._chains[0] != version:
            steps_by_name = {s.name: self._list_steps(s) for s in self.toolset.selectors()}
            self._chains = (
                version,
                {name: chain_of(steps) for name, steps in steps_by_name.items() if steps},
            )
        return self._chains[1]

    def chains_of_extension(self, calls: Iterable[CallOrIssue]) -> dict[str, Chain]:
        """As `chains`, for calls of a toolset that was made of this one at run time."""
        own = self.toolset.__lutumpy_table__.by_name
        known = self.chains()
        chains: dict[str, Chain] = {}
        for call in calls:
            if not isinstance(call, BaseToolCall) or call.metadata.name in chains:
                continue
            if isinstance(call, ApprovalRequest):
                continue
            selector = call.selector
            mine = own.get(selector.name)
            if mine is not None and mine.tool is selector.tool:
                if selector.name in known:
                    chains[selector.name] = known[selector.name]
            elif steps := self._list_steps(selector):
                chains[selector.name] = chain_of(steps)
        return chains

    def _list_steps(self, selector: AnySelector) -> list[HookStep]:
        owner = self._owner_of(selector)
        own: list[Implementation] = []
        place = _place_of(selector)
        if place is not None and place in owner.places:
            own += owner.registry.implementations(_place_slot(owner.places[place]))
        slot = _call_slot(selector)
        if slot in owner.registry.slots:
            own += owner.registry.implementations(slot)
        return [
            *[_make_step(hook, "call") for hook in self._list_general_hooks(ANY_TOOL, selector)],
            *[_make_step(hook, "input") for hook in own],
        ]

    def list_result_hooks(self, name: str) -> list[Implementation]:
        """The hooks for results of all tools, from this registry inwards to the tool's own.

        Of a result only the name of the tool is known. A name that no tool has is that of a tool
        known at run time. It may fill a place of any nested toolset that has one, so the hooks of
        all these look at it.
        """
        return self._list_general_hooks(ANY_RESULT, self.toolset.try_selector(name))

    def _list_general_hooks(self, slot: str, selector: AnySelector | None) -> list[Implementation]:
        """The hooks of a slot for all tools, from this registry inwards to the tool's own.

        The toolset of a group has no tool that fills its place in the outer one, so it is the
        selector of the outer toolset that says which groups the tool belongs to.
        """
        hooks = list(self.registry.implementations(slot))
        for group in self.groups.values():
            if group._declares(selector):
                hooks += group._list_general_hooks(slot, selector)
        return hooks

    def list_description_hooks(self) -> list[tuple[AnySelector, Implementation]]:
        """The hook that words the description of each tool that has one."""
        found: list[tuple[AnySelector, Implementation]] = []
        for selector in self.toolset.selectors():
            registry = self._owner_of(selector).registry
            slot = _description_slot(selector)
            hook = registry.last(slot) if slot in registry.slots else None
            if hook is not None:
                found.append((selector, hook))
        return found


def _make_step(hook: Implementation, takes: Literal["input", "call"]) -> HookStep:
    return HookStep(hook.by_position, hook.label, hook.is_async, takes)


def _place_of(selector: AnySelector) -> Dynamic | None:
    return selector.place if isinstance(selector, DynamicSelector) else None


# No method can have one of the names below that have brackets: these slots are for `on()` and
# `describe()` alone (rule Y8b).


def _place_slot(member: str) -> str:
    return f"{member}[*]"


def _call_slot(selector: AnySelector) -> str:
    return f"[{selector.name}]" if selector.tool.is_dynamic else hook_slots(selector.name)[0]


def _description_slot(selector: AnySelector) -> str:
    if selector.tool.is_dynamic:
        return f"[{selector.name}].description"
    return hook_slots(selector.name)[1]
