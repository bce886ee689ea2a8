"""What the ways to break a history share: how one is registered, and small helpers."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from typing import Any, TypeAlias

from composed import History, Json

Mutation: TypeAlias = "Callable[[random.Random, History], str | None]"
"""Breaks one rule of a valid history, in place; gives the rule, or `None` if nothing fits."""

LONG = "x" * 70


def register_in(mutations: dict[str, Mutation]) -> Callable[[Mutation], Mutation]:
    """A decorator that puts a way to break histories into a table, without the API in its name."""

    def register(mutation: Mutation) -> Mutation:
        mutations[mutation.__name__.partition("_")[2]] = mutation
        return mutation

    return register


def find_entries(history: History, wanted: Callable[[Json], Any]) -> list[int]:
    return [
        index for index, entry in enumerate(history) if isinstance(entry, dict) and wanted(entry)
    ]


def set_copy(entry: Json, key: str, value: Any) -> None:
    entry[key] = copy.deepcopy(value)


def nested_value(levels: int) -> Any:
    value: Any = "x"
    for number in range(levels):
        value = [value] if number % 2 else {"a": value}
    return value
