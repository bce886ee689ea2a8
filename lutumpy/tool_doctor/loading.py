"""A toolset by its name: `pkg.module:AppTools`."""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

from lutumpy import Toolset
from lutumpy.errors import ToolsetNotLoadedError
from lutumpy.plain.safe_text import safe_str

__all__ = ["load_object", "load_toolset"]


def load_toolset(name: str, *, directory: str | Path | None = None) -> type[Toolset[Any]]:
    """The toolset that `name` (`package.module:Name` or `package.module:Outer.Name`) leads to.

    Importing runs the module. What decorators warn of docstrings is not shown meanwhile:
    `check_tools` reports it.

    Args:
        name: Module and attribute, with a colon between them.
        directory: A directory that modules are looked for in before all others. It is put on
            `sys.path` and stays there.

    Raises:
        ToolsetNotLoadedError: The name is wrong, the import fails, or it leads to something else
            than a toolset.
    """
    found = load_object(name, directory=directory)
    if not _is_toolset(found):
        what = (
            f"the class {found.__name__}"
            if isinstance(found, type)
            else f"an object of type {type(found).__name__}"
        )
        raise ToolsetNotLoadedError(f"{name} is {what}, not a Toolset class")
    toolset: type[Toolset[Any]] = found
    return toolset


def load_object(name: str, *, directory: str | Path | None = None) -> Any:
    """Whatever `name` leads to, as `load_toolset` finds it.

    Args:
        name: As for `load_toolset`.
        directory: As for `load_toolset`.

    Raises:
        ToolsetNotLoadedError: The name is wrong, or the import fails.
    """
    module_name, colon, attribute = name.partition(":")
    if not (colon and module_name and attribute):
        raise ToolsetNotLoadedError(
            f"{name!r} does not name a toolset: write it as package.module:AppTools"
        )
    if directory is not None and (entry := str(Path(directory).resolve())) not in sys.path:
        sys.path.insert(0, entry)
    module = _import_module(module_name)
    found: Any = module
    so_far = module_name
    for part in attribute.split("."):
        if not hasattr(found, part):
            here = [
                key
                for key, value in vars(module).items()
                if _is_toolset(value) and value.__module__ == module_name
            ]
            hint = f"; its toolsets are {', '.join(here)}" if here else ""
            raise ToolsetNotLoadedError(f"{so_far} has no {part!r}{hint}")
        found = getattr(found, part)
        so_far = f"{so_far}{':' if so_far == module_name else '.'}{part}"
    return found


def _is_toolset(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, Toolset) and value is not Toolset


def _import_module(name: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "the docstring of ", UserWarning)
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or name
        if name == missing or name.startswith(f"{missing}."):
            raise ToolsetNotLoadedError(f"there is no module {missing!r}") from error
        raise ToolsetNotLoadedError(
            f"{name} can't be imported: it needs {missing!r}, which isn't installed"
        ) from error
    except SystemExit as error:
        raise ToolsetNotLoadedError(f"{name} can't be imported: it ends the program") from error
    except Exception as error:
        raise ToolsetNotLoadedError(
            f"{name} can't be imported: {type(error).__name__}: {safe_str(error)}"
        ) from error
