"""The package `toolclad`: the only module here that knows it.

It parses manifests and validates single values. Its executor is never used: nothing that it would
run is handed over to it.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = [
    "check_installed",
    "make_argument",
    "parse_manifest",
    "read_custom_types",
    "read_toml",
    "validate_value",
]

_INSTALL = (
    "ToolClad manifests need toolclad, jsonschema-rs and anyio; install them with: "
    'python -m pip install ".[toolclad]" (in a clone)'
)


def _import(module: str) -> Any:
    # The package has no types, and importing it costs more than all of this library.
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(_INSTALL) from error


def check_installed() -> None:
    """Raise `ImportError` where the extra isn't installed."""
    _import("toolclad.manifest")


def read_toml(data: bytes) -> dict[str, Any]:
    """The tables of a TOML file; raises `ValueError`."""
    # Before Python 3.11, toolclad brings the parser along.
    parser = _import("tomllib" if sys.version_info >= (3, 11) else "tomli")
    try:
        tables: dict[str, Any] = parser.loads(data.decode("utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    return tables


def parse_manifest(path: Path) -> None:
    """Let toolclad read a manifest; raises whatever it finds wrong."""
    _import("toolclad.manifest").load_manifest(str(path))


def read_custom_types(path: Path) -> dict[str, Any]:
    """The custom types of a `toolclad.toml`, by name; raises whatever toolclad finds wrong."""
    types: dict[str, Any] = _import("toolclad.manifest").load_custom_types(str(path))
    return types


def make_argument(fields: Mapping[str, Any]) -> Any:
    """The definition of an argument as `validate_value` takes it."""
    return _import("toolclad.manifest").ArgDef(**fields)


def validate_value(definition: Any, value: Any) -> str:
    """The value as toolclad would put it into a command.

    Raises:
        ValueError: It doesn't fit.
    """
    validator = _import("toolclad.validator")
    try:
        cleaned: str = validator.validate_arg(definition, value)
    except validator.ValidationError as error:
        raise ValueError(str(error)) from None
    return cleaned
