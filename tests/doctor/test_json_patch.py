"""JSON Patch and JSON Pointer (RFC 6902 and 6901), as far as objects and lists need them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from lutumpy.doctor.json_patch import PatchError, apply_operations, resolve
from lutumpy.plain.pointer import pointer, tokens


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        ({"a": 1}, {"op": "add", "path": "/b", "value": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"op": "add", "path": "/a", "value": 2}, {"a": 2}),
        ([1, 3], {"op": "add", "path": "/1", "value": 2}, [1, 2, 3]),
        ([1], {"op": "add", "path": "/1", "value": 2}, [1, 2]),
        ([1], {"op": "add", "path": "/-", "value": 2}, [1, 2]),
        ({"a": [1]}, {"op": "remove", "path": "/a/0"}, {"a": []}),
        ({"a": 1}, {"op": "remove", "path": "/a"}, {}),
        ([1, 2], {"op": "replace", "path": "/1", "value": 5}, [1, 5]),
        ({"a": 1}, {"op": "replace", "path": "", "value": 5}, 5),
        ({"a": 1}, {"op": "add", "path": "", "value": [5]}, [5]),
        ([1, 2, 3], {"op": "move", "from": "/0", "path": "/2"}, [2, 3, 1]),
        ([1, 2, 3], {"op": "move", "from": "/2", "path": "/0"}, [3, 1, 2]),
        ({"a": [1], "b": []}, {"op": "move", "from": "/a/0", "path": "/b/0"}, {"a": [], "b": [1]}),
        ([1], {"op": "copy", "from": "/0", "path": "/-"}, [1, 1]),
        ({"a": 1.0}, {"op": "test", "path": "/a", "value": 1}, {"a": 1.0}),
        (
            {"": {"a/b": {"m~n": 8}}},
            {"op": "test", "path": "//a~1b/m~0n", "value": 8},
            {"": {"a/b": {"m~n": 8}}},
        ),
        ({"0": 1}, {"op": "remove", "path": "/0"}, {}),
    ],
)
def test_operations_do_what_the_standard_says(
    before: Any, operation: dict[str, Any], after: Any
) -> None:
    assert apply_operations(copy.deepcopy(before), [operation]) == after


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "test", "path": "/x", "value": None},
        {"op": "remove", "path": "/x"},
        {"op": "remove", "path": ""},
        {"op": "replace", "path": "/x", "value": 1},
        {"op": "add", "path": "/x/y", "value": 1},
        {"op": "add", "path": "/a/y", "value": 1},
        {"op": "add", "path": "/a/y/z", "value": 1},
        {"op": "add", "path": "/l/3", "value": 1},
        {"op": "add", "path": "/l/01", "value": 1},
        {"op": "add", "path": "/l/-1", "value": 1},
        {"op": "add", "path": "/l/x", "value": 1},
        {"op": "add", "path": "/a/x", "value": 1},
        {"op": "add", "path": "a", "value": 1},
        {"op": "add", "path": "/a"},
        {"op": "add", "value": 1},
        {"op": "remove", "path": "/l/99999999999999999999"},
        {"op": "move", "path": "/a"},
        {"op": "move", "from": "/l", "path": "/l/0"},
        {"op": "copy", "from": "/x", "path": "/y"},
        {"op": "invert", "path": "/a"},
        {},
        "remove everything",
    ],
)
def test_what_does_not_fit_is_told_with_its_number(operation: Any) -> None:
    with pytest.raises(PatchError, match="operation 2 of 2: "):
        apply_operations(
            {"a": 1, "l": [1, 2]}, [{"op": "test", "path": "/a", "value": 1}, operation]
        )


def test_a_value_that_was_added_is_not_the_patchs_own() -> None:
    operation = {"op": "add", "path": "/0", "value": {"a": []}}
    document = apply_operations([], [operation])
    document[0]["a"].append(1)
    assert operation["value"] == {"a": []}


def test_a_replaced_key_keeps_its_place() -> None:
    document = apply_operations({"a": 1, "b": 2}, [{"op": "replace", "path": "/a", "value": 3}])
    assert list(document.items()) == [("a", 3), ("b", 2)]


def test_pointers_spell_every_key() -> None:
    path = ("a/b", "~1", 0, "", "é")
    assert pointer(path) == "/a~1b/~01/0//é"
    assert tokens(pointer(path)) == [str(step) for step in path]
    assert resolve([{"x": [5]}], "/0/x/0") == 5
