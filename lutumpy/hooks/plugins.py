"""Installed plugins: entry points of the group `lutumpy`, loaded only when asked for."""

from __future__ import annotations

from typing import Any

from lutumpy.errors import HookRegistrationError
from lutumpy.plain.safe_text import safe_repr

GROUP = "lutumpy"


def load_entry_points(name: str) -> list[tuple[str, Any]]:
    """The entry points of this name, each with the object behind it; a class is instantiated.

    Raises:
        HookRegistrationError: there is none, or one can't be loaded. It is an error, since a policy
            that is missing must not go unnoticed.
    """
    from importlib.metadata import entry_points

    # Several installed packages may have a plugin of one name; all of them are meant then.
    found = entry_points(group=GROUP, name=name)
    if not found:
        known = ", ".join(sorted({e.name for e in entry_points(group=GROUP)})) or "none"
        raise HookRegistrationError(
            f"no installed plugin {name!r} in the group {GROUP!r} (installed: {known})"
        )
    loaded: list[tuple[str, Any]] = []
    for entry in found:
        try:
            plugin = entry.load()
            loaded.append((entry.value, plugin() if isinstance(plugin, type) else plugin))
        except Exception as error:
            raise HookRegistrationError(
                f"the plugin {name!r} ({entry.value}) can't be loaded: {safe_repr(error)}"
            ) from error
    return loaded
