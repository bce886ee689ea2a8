"""The lock: equal for equal tools however they are spelled, different for every change that a model
would see.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from lutumpy import ToolInput, Toolset, tool, tool_input
from lutumpy.plain.canonical_schema import canonical
from lutumpy.tool_doctor import Lock, LockError, differences, drift, locked_toolset

NAME = "pkg.module:Tools"


def toolset(
    *, description: str = "Look.", most: int = 5, extra: bool = False, strict: bool | None = None
) -> Any:
    @tool_input(name="look", description=description, strict=strict)
    class Look(ToolInput[str]):
        where: Annotated[str, Field(description="Where.", max_length=most)]

    members: dict[str, Any] = {"look": tool(Look)}
    if extra:

        @tool_input(name="listen", output=None)
        class Listen(BaseModel):
            """Listen."""

        members["listen"] = tool(Listen)
    return type("Tools", (Toolset,), members)


def locked(tools: Any) -> Any:
    return Lock({}).with_toolset(NAME, tools).toolsets[NAME]


def test_the_file_says_the_same_every_time_and_reads_back(tmp_path: Path) -> None:
    lock = Lock({}).with_toolset(NAME, toolset(extra=True))
    assert lock.text() == Lock({}).with_toolset(NAME, toolset(extra=True)).text()
    file = tmp_path / "lutumpy.lock.json"
    file.write_text(lock.text())
    assert Lock.read(file) == lock
    assert lock.text().isascii()
    assert list(json.loads(lock.text())["toolsets"][NAME]) == ["listen", "look"]


def test_there_is_no_lock_where_there_is_no_file(tmp_path: Path) -> None:
    assert Lock.read(tmp_path / "none.json") is None


def test_locking_one_toolset_keeps_the_others() -> None:
    both = Lock({}).with_toolset("a:A", toolset()).with_toolset(NAME, toolset())
    again = both.with_toolset(NAME, toolset(most=9))
    assert again.toolsets["a:A"] == both.toolsets["a:A"]
    assert again.toolsets[NAME] != both.toolsets[NAME]


def test_equal_tools_do_not_drift() -> None:
    assert not drift(locked(toolset()), toolset())


@pytest.mark.parametrize(
    ("change", "path", "kind"),
    [
        ({"description": "Look there."}, "/description", "changed"),
        ({"most": 6}, "/input_schema/properties/where/maxLength", "changed"),
        ({"strict": True}, "/strict", "changed"),
    ],
)
def test_every_change_that_is_sent_is_drift_and_named(
    change: dict[str, Any], path: str, kind: str
) -> None:
    found = drift(locked(toolset()), toolset(**change))
    assert found
    assert [(d.path, d.kind) for d in found.changed["look"]] == [(path, kind)]
    assert (found.added, found.removed) == ((), ())


def test_new_and_missing_tools_are_drift() -> None:
    assert drift(locked(toolset()), toolset(extra=True)).added == ("listen",)
    assert drift(locked(toolset(extra=True)), toolset()).removed == ("listen",)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "is not a lock file"),
        ('{"format": "lutumpy.lock", "version": 2}', "version 2"),
        ('{"format": "lutumpy.lock", "version": true}', "version True"),
        ('{"format": "lutumpy.lock", "version": 1}', "toolsets is not an object"),
        ('{"format": "lutumpy.lock", "version": 1, "toolsets": {"a": []}}', "a is not an object"),
        (
            '{"format": "lutumpy.lock", "version": 1, "toolsets": {"a": {"t": 1}}}',
            "a, t is not an object",
        ),
        ("[" * 100_000, "is not JSON"),
        ("\xff", "is not JSON"),
    ],
)
def test_a_file_that_is_no_lock_is_an_error_that_names_it(
    tmp_path: Path, content: str, reason: str
) -> None:
    file = tmp_path / "l.json"
    file.write_bytes(content.encode("latin-1"))
    with pytest.raises(LockError, match=reason) as caught:
        Lock.read(file)
    assert str(file) in str(caught.value)


def test_a_lock_edited_by_hand_is_not_believed(tmp_path: Path) -> None:
    file = tmp_path / "l.json"
    file.write_text(
        Lock({}).with_toolset(NAME, toolset()).text().replace('"maxLength": 5', '"maxLength": 50')
    )
    with pytest.raises(LockError, match=r"edited by hand.*'look'"):
        Lock.read(file)


def test_a_directory_is_no_lock(tmp_path: Path) -> None:
    with pytest.raises(LockError, match="can't be read"):
        Lock.read(tmp_path)


keys = st.sampled_from(["properties", "required", "type", "description", "items", "enum", "x"])
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 5), st.text(max_size=3)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(keys, inner, max_size=4)),
    max_leaves=10,
)


def _turned(value: Any, names: bool = False) -> Any:
    """The same schema, spelled the other way round: keys, and the lists that are sets."""
    if isinstance(value, dict):
        turned = {}
        for key in reversed(list(value)):
            inner = _turned(value[key], not names and key == "properties")
            strings = isinstance(inner, list) and all(isinstance(entry, str) for entry in inner)
            turned[key] = (
                inner[::-1] if not names and key in ("required", "type") and strings else inner
            )
        return turned
    return [_turned(entry) for entry in value] if isinstance(value, list) else value


@given(values)
def test_the_order_of_keys_and_of_sets_makes_no_difference(value: Any) -> None:
    assert json.dumps(canonical(value)) == json.dumps(canonical(_turned(value)))
    assert canonical(canonical(value)) == canonical(value)


@given(values, values)
def test_values_have_differences_exactly_when_they_are_not_equal(before: Any, after: Any) -> None:
    found = list(differences(before, after))
    assert bool(found) == (json.dumps(before, sort_keys=True) != json.dumps(after, sort_keys=True))
    assert len({difference.path for difference in found}) == len(found)


def test_the_order_of_an_enum_is_part_of_what_the_model_reads() -> None:
    assert canonical({"enum": ["b", "a"]}) != canonical({"enum": ["a", "b"]})
    assert canonical(
        {"properties": {"required": {"enum": ["b"]}, "type": {"required": ["b", "a"]}}}
    ) == {"properties": {"required": {"enum": ["b"]}, "type": {"required": ["a", "b"]}}}


def test_tools_that_are_off_are_locked_as_well() -> None:
    @tool_input(name="t", output=None)
    class T(BaseModel):
        """Do."""

    class Tools(Toolset):
        t = tool(T, off=True)

    assert list(locked_toolset(Tools)) == ["t"]


@pytest.mark.parametrize("where", ["declaration", "member"])
def test_what_single_apis_are_told_is_locked(where: str) -> None:
    told = {"anthropic_messages": {"defer_loading": True}}

    def made(provider: Any) -> Any:
        @tool_input(name="look", provider=provider if where == "declaration" else None)
        class Look(ToolInput[str]):
            """Look."""

        member: Any = tool(Look, provider=provider if where == "member" else None)
        return type("Tools", (Toolset,), {"look": member})

    assert not drift(locked(made(told)), made(told))
    (added,) = drift(locked(made(None)), made(told)).changed["look"]
    assert (added.path, added.kind) == ("/provider", "added")
    later = {"anthropic_messages": {"defer_loading": False}}
    (changed,) = drift(locked(made(told)), made(later)).changed["look"]
    assert changed.path == "/provider/anthropic_messages/defer_loading"
    assert (changed.before, changed.after) == (True, False)


def test_a_lock_from_before_settings_were_known_still_holds(tmp_path: Path) -> None:
    file = tmp_path / "lutumpy.lock.json"
    file.write_text(Lock({}).with_toolset(NAME, toolset()).text())
    assert '"provider"' not in file.read_text()
    read = Lock.read(file)
    assert read is not None
    assert not drift(read.toolsets[NAME], toolset())


def test_annotations_are_not_locked_since_no_model_reads_them() -> None:
    def made(annotations: Any) -> Any:
        @tool_input(name="look", annotations=annotations)
        class Look(ToolInput[str]):
            """Look."""

        return type("Tools", (Toolset,), {"look": tool(Look)})

    assert not drift(locked(made(None)), made({"readOnlyHint": True}))


def test_a_whole_number_is_the_same_however_it_is_written() -> None:
    assert canonical({"maximum": 2.0}) == canonical({"maximum": 2})
    assert json.dumps(canonical({"maximum": 2.0})) == json.dumps(canonical({"maximum": 2}))
    assert canonical({"maximum": 2.5}) == {"maximum": 2.5}
