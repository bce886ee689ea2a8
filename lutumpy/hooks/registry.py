"""A registry of hooks: pluggy keeps the plugins; this module checks them and gives their order."""

# pluggy calls the last one registered first, and notices unknown hooks only when asked. Here
# everything about a plugin is validated before it is registered, and implementations come out in
# the order of rule H1. A registration has three steps, and only the last one changes anything:
#
#   read (`read_plugin`, `read_function`)   the marked functions, and what is wrong with each
#   check (`_check_and_add`)                every problem of every plugin, in one error
#   add (`_add`)                            pluggy, the order, the version

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from lutumpy.errors import HookRegistrationError
from lutumpy.hooks.implementations import (
    PROJECT,
    Implementation,
    Plugin,
    SlotPlaces,
    SlotSpec,
    hook_impl,
    label,
    read_function,
    read_plugin,
)
from lutumpy.hooks.plugins import load_entry_points

__all__ = ["Registry", "hook_impl"]


class Registry:
    """Plugins and their hooks for a set of slots.

    Attributes:
        title: How errors name the registry.
        slots: The slots by name.
        version: Counts the changes.
    """

    __slots__ = ("_manager", "_order", "_ordered", "slots", "title", "version")

    def __init__(self, title: str, slots: Iterable[SlotSpec]) -> None:
        self.title: str = title
        self.slots: dict[str, SlotSpec] = {}
        self.version: int = 0
        self._order: list[Plugin] = []
        self._ordered: dict[str, tuple[Implementation, ...]] = {}
        import pluggy  # half as slow to import as pydantic, and not every program has hooks

        self._manager = pluggy.PluginManager(PROJECT)
        self._add_slots(slots)

    def add_slot(self, slot: SlotSpec) -> None:
        """A further slot, for a tool that became known at run time."""
        self._add_slots([slot])

    def _add_slots(self, slots: Iterable[SlotSpec]) -> None:
        import pluggy

        added = {slot.name: slot for slot in slots if slot.name not in self.slots}
        if added:
            specification = pluggy.HookspecMarker(PROJECT)
            specs = {name: specification(_signature(slot)) for name, slot in added.items()}
            self._manager.add_hookspecs(type("Slots", (), specs))
            self.slots.update(added)

    def copy(self) -> Registry:
        """An independent registry with the same plugins."""
        twin = Registry(self.title, self.slots.values())
        twin._add(self._order)
        return twin

    @property
    def plugins(self) -> tuple[Plugin, ...]:
        """What is registered, in order."""
        return tuple(self._order)

    def register(self, *plugins: Any, places: SlotPlaces) -> None:
        """Register objects with marked methods: all of them, or none.

        Args:
            plugins: The objects.
            places: Where other slots are, for errors.

        Raises:
            HookRegistrationError: a hook has no slot here or wrong parameters; or a plugin has no
                hook at all, or is there already. The registry is as it was.
        """
        self._check_and_add(
            [read_plugin(plugin, self.slots, self.title, places) for plugin in plugins]
        )

    def register_function(self, slot: str, function: Any) -> None:
        """Register one function on one slot; the function isn't marked. Raises as `register`."""
        self._check_and_add([read_function(function, self.slots[slot])])

    def load(self, name: str, places: SlotPlaces) -> None:
        """Register the installed plugins of this name: all of them, or none.

        Args:
            name: The name of their entry points.
            places: Where other slots are, for errors.

        Raises:
            HookRegistrationError: as `register`; or one can't be loaded.
        """
        read: list[tuple[Plugin, list[str]]] = []
        for source, plugin in load_entry_points(name):
            found, problems = read_plugin(plugin, self.slots, self.title, places)
            found.source = source
            read.append((found, problems))
        self._check_and_add(read)

    def adopt(self, other: Registry, plugins: Iterable[Plugin]) -> None:
        """Register what another registry of the same slots has: all of it, or nothing.

        Args:
            other: The other registry. Slots that were added to it are added here.
            plugins: Which of its plugins.

        Raises:
            HookRegistrationError: a plugin is there already. The registry is as it was.
        """
        self._add_slots(other.slots.values())
        self._check_and_add([(plugin, []) for plugin in plugins])

    def holds(self, registered: Any) -> bool:
        """Whether this plugin, or function that was registered alone, is here."""
        return any(plugin.is_for(registered) for plugin in self._order)

    def has(self, plugin: Plugin) -> bool:
        """Whether this plugin of another registry, or one that says the same, is here."""
        return any(plugin.is_same(other) for other in self._order)

    def unregister(self, registered: Any) -> None:
        """Take out a plugin, or a function that was registered alone.

        Raises:
            HookRegistrationError: it isn't here.
        """
        leaving = [plugin for plugin in self._order if plugin.is_for(registered)]
        if not leaving:
            raise HookRegistrationError(f"{label(registered)} is not registered on {self.title}")
        for plugin in leaving:
            self._manager.unregister(plugin.stand_in)
        self._order = [plugin for plugin in self._order if plugin not in leaving]
        self._note_change()

    def implementations(self, slot: str) -> tuple[Implementation, ...]:
        """The implementations of a slot in the order of rule H1.

        First those with `tryfirst`, then the ordinary ones, then those with `trylast`; each group
        in the order of registration.
        """
        # Another thread may register a hook meanwhile. What is found here is kept where that thread
        # looks no more then: `_note_change` puts another dictionary in this one's place.
        ordered = self._ordered
        found = ordered.get(slot)
        if found is None:
            hooks = self._in_registration_order(slot)
            # sorted() is stable, so equal ranks keep the order of registration.
            found = ordered[slot] = tuple(sorted(hooks, key=lambda hook: hook.rank))
        return found

    def last(self, slot: str) -> Implementation | None:
        """The implementation of a singleton slot: the one registered last."""
        found = self._in_registration_order(slot)
        return found[-1] if found else None

    def _in_registration_order(self, slot: str) -> list[Implementation]:
        # pluggy is asked who implements the slot, as users may have changed its manager's plugins;
        # the order is ours.
        callers = {id(hook.plugin) for hook in getattr(self._manager.hook, slot).get_hookimpls()}
        return [plugin.hooks[slot] for plugin in self._order if id(plugin.stand_in) in callers]

    def _check_and_add(self, read: Iterable[tuple[Plugin, list[str]]]) -> None:
        problems: list[str] = []
        present = list(self._order)
        added: list[Plugin] = []
        for plugin, found in read:
            if any(plugin.is_same(other) for other in present):
                place = self.title if plugin.alone is None else f"{plugin.alone} of {self.title}"
                problems.append(f"{label(plugin.registered)} is registered on {place} already")
            present.append(plugin)
            added.append(plugin)
            problems += found
        if problems:
            raise HookRegistrationError("; ".join(problems))
        # A user may turn warnings into errors; so all of them come before the first change.
        self._warn_replaced(added)
        self._add(added)

    def _add(self, plugins: Iterable[Plugin]) -> None:
        for plugin in plugins:
            self._manager.register(
                plugin.stand_in, name=f"{label(plugin.registered)} #{id(plugin)}"
            )
            self._order.append(plugin)
        self._note_change()

    def _note_change(self) -> None:
        self._ordered = {}
        self.version += 1

    def _warn_replaced(self, plugins: Iterable[Plugin]) -> None:
        current: dict[str, Implementation | None] = {}
        for plugin in plugins:
            for name, hook in plugin.hooks.items():
                if self.slots[name].singleton:
                    replaced = current[name] if name in current else self.last(name)
                    if replaced is not None:
                        _warn_user(
                            f"{replaced.label} is replaced by {hook.label} "
                            f"as {name} of {self.title}"
                        )
                    current[name] = hook


def _warn_user(message: str) -> None:
    # Registration can be entered through several methods of different depth. The warning belongs to
    # the user's line, which is the first one outside this folder.
    own_modules = f"{PROJECT}.hooks."
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None:
        if not frame.f_globals.get("__name__", "").startswith(own_modules):
            break
        frame, level = frame.f_back, level + 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _signature(spec: SlotSpec) -> Callable[..., None]:
    # pluggy reads parameter names off the code object, so the function must really have them.
    namespace: dict[str, Any] = {}
    exec(f"def slot({', '.join(('self', *spec.parameters))}): ...", namespace)
    slot: Callable[..., None] = namespace["slot"]
    slot.__name__ = slot.__qualname__ = f"Slots.{spec.name}"
    return slot
