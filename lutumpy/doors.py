"""What a public module needs that imports nothing until a name is asked for.

A door is a module with public names that live elsewhere: the root, `lutumpy.hooks`,
`lutumpy.doctor`. Where the imports behind it cost time, or would lead in a circle, the door names
the home of each name, and this finds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["find_name", "homes_of"]


def homes_of(modules: Mapping[str, Iterable[str]]) -> dict[str, str]:
    """The home of each name, from the names of each module."""
    return {name: module for module, names in modules.items() for name in names}


def find_name(door: str, homes: Mapping[str, str], name: str, namespace: dict[str, Any]) -> Any:
    """The value of a door's name, kept in the door's namespace so that it is looked for once.

    Raises:
        AttributeError: the door has no such name.
    """
    home = homes.get(name)
    if home is None:
        raise AttributeError(f"module {door!r} has no attribute {name!r}")
    value = namespace[name] = getattr(import_module(home), name)
    return value
