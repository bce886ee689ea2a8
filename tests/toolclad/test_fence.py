"""No value of a model's can add an argument, change the program, or become an option."""

from __future__ import annotations

import json
import re
import tempfile
from pathlib import Path
from typing import Any

import pytest
from clad_toolkit import Workshop, call, run, told
from hypothesis import given, settings
from hypothesis import strategies as st
from profiles import examples

from lutumpy import (
    DynamicInput,
    InvalidArgumentsError,
    MalformedArgumentsError,
    ToolError,
    ToolMetadata,
)
from lutumpy.toolclad import CladTools, Manifest

# --- properties -----------------------------------------------------------------------------------

KINDS: dict[str, dict[str, Any]] = {
    "text": {"type": "string"},
    "word": {"type": "regex_match", "pattern": "[a-z -]+"},
    "path": {"type": "path"},
    "url": {"type": "url"},
    "target": {"type": "scope_target"},
    "address": {"type": "ip_address"},
    "net": {"type": "cidr"},
    "span": {"type": "duration"},
    "options": {"type": "msf_options"},
    "whole": {"type": "integer", "min": -5, "max": 99},
    "kept": {"type": "integer", "min": 1, "max": 9, "clamp": True},
    "number": {"type": "number"},
    "port": {"type": "port"},
    "flag": {"type": "boolean"},
    "choice": {"type": "enum", "allowed": ["plain", "-v", "two words"]},
}
FREE = {"text", "word", "path", "url", "target", "address", "net", "span", "options"}
NASTY = [
    *["", " ", "-", "--", "-rf", "--output=x", "a b", "a;b", "$(id)", "`id`", "a\nb", "a\0b"],
    *["{text}", "{_secret:a}", "{_mode_flags}", "%s", "../a", "/etc/passwd", "~", "*", "'", '"'],
    *["a\u2028b", "\u202egnp.exe", "\ud800", "fe80::1%a b", "http://a b/", "10.0.0.1/8"],
    *["example.org", "1h30m", "X 1;Y 2", "é", "\x7f", "a" * 5000],
]
texts = st.sampled_from(NASTY) | st.text(max_size=12)
json_values = (
    texts
    | st.integers()
    | st.floats()
    | st.booleans()
    | st.none()
    | st.lists(texts, max_size=2)
    | st.dictionaries(texts, texts, max_size=1)
)
affixes = st.sampled_from(["", "", "", "--x=", "a", " ", "-"])


FITTING: dict[str, list[Any]] = {
    "text": ["-x", "a b", "it's"],
    "word": ["-x", "a b"],
    "path": ["-x", "a/b"],
    "url": ["https://a.org/"],
    "target": ["example.org", "::1"],
    "address": ["10.0.0.1"],
    "net": ["10.0.0.0/8"],
    "span": ["1h"],
    "options": ["A 1"],
    "whole": [-5, 7.0],
    "kept": [-9, 5, 100],
    "number": [-0.5, 3],
    "port": [80],
    "flag": [True],
    "choice": ["plain", "-v", "two words"],
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[list[str], dict[str, Any], dict[str, Any]]:
    """The elements of a command, its arguments, and what a model writes for them."""
    names = draw(st.lists(st.sampled_from([*KINDS, "text"]), min_size=1, max_size=3))
    args = {name: KINDS[name] for name in [*names, "choice"]}  # `choice` has a mapping
    written: dict[str, Any] = {}
    for name in args:
        how = draw(st.sampled_from(["fits", "fits", "fits", "anything", "left out"]))
        if how != "left out":
            values = st.sampled_from(FITTING[name]) if how == "fits" else json_values
            written[name] = draw(values)
    exec: list[str] = []
    for name in [*names, draw(st.sampled_from([*args, "_choice_flags"]))]:
        places = [name, *draw(st.lists(st.sampled_from(list(args)), max_size=1))]
        joined = draw(affixes).join([f"{{{place}}}" for place in places])
        exec.append(draw(affixes) + joined + draw(affixes))
    return exec, args, written


def load_one(exec: list[str], args: dict[str, Any], **more: Any) -> CladTools:
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        workshop.write("probe", exec, args, **more)
        return workshop.load()


@settings(max_examples=examples(120))
@given(cases())
def test_every_element_is_one_argument_or_none(
    case: tuple[list[str], dict[str, Any], dict[str, Any]],
) -> None:
    exec, args, values = case
    mapping = {"mappings": {"choice": {"plain": "", "-v": "-v", "two words": "-a b"}}}
    clad = load_one(["printf", *exec], args, command=mapping)
    manifest = clad.manifests["probe"]
    try:
        called = call(clad, "probe", json.dumps(values))
    except (InvalidArgumentsError, MalformedArgumentsError):
        return  # total: whatever is wrong is an issue
    command = manifest.command(called.arguments)
    spelled = {name: spell(value) for name, value in called.arguments.items()}
    spelled["_choice_flags"] = mapping["mappings"]["choice"].get(spelled.get("choice", ""), "")
    expected = [filled for each in exec if (filled := fill(each, spelled)) is not None]
    assert command == ("printf", *expected)
    for element in exec:
        first = re.match(r"\{(\w+)\}", element)
        if first and first[1] in FREE and (filled := fill(element, spelled)) is not None:
            assert not filled.startswith("-")
    for name in FREE & called.arguments.keys():
        assert not set(called.arguments[name]) & set("{}\0\n\r\x7f\u2028\u202e`|&$<>")


def spell(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def fill(element: str, spelled: dict[str, str]) -> str | None:
    """The element with its places filled, by hand; `None` where one is empty."""
    pieces = re.split(r"\{(\w+)\}", element)
    pieces[1::2] = [spelled.get(name, "") for name in pieces[1::2]]
    return "".join(pieces) if all(pieces[1::2]) else None


@settings(max_examples=examples(100))
@given(st.sampled_from(list(KINDS)), json_values)
def test_cleaning_twice_is_cleaning_once(name: str, value: Any) -> None:
    try:
        once = PROBE.clean({name: value})
    except ToolError:
        return
    again = PROBE.clean(once)
    assert (again, [type(v) for v in again.values()]) == (once, [type(v) for v in once.values()])


PROBE: Manifest = load_one(["printf"], KINDS).manifests["probe"]


@settings(max_examples=examples(25))
@given(st.lists(texts, min_size=1, max_size=3))
def test_a_program_gets_exactly_what_was_approved_by_the_fence(values: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        workshop = Workshop(Path(folder))
        # Of a shell, each argument between marks; the program is a script, and not the shell.
        program = workshop.program("show", "printf '<%s>' \"$@\"")
        names = [f"a{index}" for index in range(len(values))]
        args = {name: {"type": "string"} for name in names}
        workshop.write("show", [program, *[f"{{{name}}}" for name in names]], args)
        clad = workshop.load()
        given_values = dict(zip(names, values, strict=True))
        try:
            called = call(clad, "show", given_values)
        except (InvalidArgumentsError, MalformedArgumentsError):
            return
        shown = told(run(clad, "show", given_values))["results"]["raw_output"]
    kept = [value for value in called.arguments.values() if value]
    assert shown == "".join([f"<{value}>" for value in kept] or ["<>"])


# --- single types ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "value", "argument"),
    [
        ({"type": "integer"}, 5.0, "5"),
        ({"type": "integer"}, "5", "5"),  # C5: a JSON text in a string
        ({"type": "integer", "min": 1, "max": 64, "clamp": True}, 100, "64"),
        ({"type": "number", "min_float": 0.5}, 1, "1.0"),
        ({"type": "port"}, 443, "443"),
        ({"type": "port", "min": 1024, "clamp": True}, 443, "1024"),
        ({"type": "boolean"}, True, "true"),
        ({"type": "enum", "allowed": ["-v", "a;b"]}, "-v", "-v"),
        ({"type": "string", "pattern": "a|b"}, "b", "b"),
        ({"type": "path"}, "src/über.txt", "src/über.txt"),
        ({"type": "credential_file"}, "users.txt", "users.txt"),
        ({"type": "duration"}, "1h30m", "1h30m"),
        ({"type": "url", "schemes": ["https"]}, "https://a.org/x?y=1", "https://a.org/x?y=1"),
        ({"type": "scope_target"}, "2001:db8::1", "2001:db8::1"),
        ({"type": "cidr"}, "10.0.0.0/8", "10.0.0.0/8"),
        ({"type": "msf_options"}, "RHOSTS 1.2.3.4;LPORT 80", "RHOSTS 1.2.3.4;LPORT 80"),
    ],
)
def test_a_value_of_its_type_becomes_an_argument(
    workshop: Workshop, kind: dict[str, Any], value: Any, argument: str
) -> None:
    workshop.write("probe", ["printf", "{it}"], {"it": kind})
    (workshop.place / "users.txt").write_text("ada")
    clad = workshop.load()
    called = call(clad, "probe", {"it": value})
    assert clad.manifests["probe"].command(called.arguments) == ("printf", argument)


@pytest.mark.parametrize(
    ("kind", "value", "reason"),
    [
        ({"type": "integer", "min": 1}, 0, "less than the minimum"),
        ({"type": "integer"}, 2**63, "too large"),
        ({"type": "integer"}, True, 'not of type "integer"'),
        ({"type": "number", "max": 3}, 3.5, "greater than the maximum"),
        ({"type": "port"}, 65536, "greater than the maximum"),
        ({"type": "port", "min": 1024}, 80, "less than the minimum of 1024"),
        ({"type": "port", "max": 99999}, 65536, "greater than the maximum of 65535"),
        ({"type": "enum", "allowed": ["a"]}, "b", "is not"),
        ({"type": "string", "pattern": "[a-z]+"}, "abc rm", "does not match"),
        ({"type": "regex_match", "pattern": "^a|b$"}, "axx", "does not match"),
        ({"type": "duration"}, "-5", "does not match"),
        ({"type": "path"}, "../x", "traversal"),
        ({"type": "path"}, "/etc/shadow", "must be relative"),
        ({"type": "credential_file"}, "/etc/shadow", "must be relative"),
        ({"type": "credential_file"}, "users.txt", "there is no file 'users.txt'"),
        ({"type": "credential_file"}, ".", "there is no file"),
        ({"type": "url", "schemes": ["https"]}, "http://a.org", "not in allowed schemes"),
        ({"type": "url"}, "http://a.org/ -x", "blanks"),
        ({"type": "scope_target"}, "*.org", "[Ww]ildcard"),
        ({"type": "string"}, "a\u202eb", "control characters"),
        ({"type": "string"}, "a" * 4097, "4096 are allowed"),
        ({"type": "string", "required": True}, "", "shorter than 1"),
        ({"type": "string", "required": True}, None, "is not of type"),
    ],
)
def test_a_value_that_does_not_fit_is_an_issue_that_names_the_argument(
    workshop: Workshop, kind: dict[str, Any], value: Any, reason: str
) -> None:
    workshop.write("probe", ["printf", "{it}"], {"it": kind})
    with pytest.raises(InvalidArgumentsError, match=reason) as refused:
        call(workshop.load(), "probe", {"it": value})
    assert refused.value.detail.startswith("it: ")


def test_a_pattern_costs_linear_time(workshop: Workshop) -> None:
    """Python's `re`, which toolclad would use, needs longer than anybody waits."""
    workshop.write("probe", ["printf", "{it}"], {"it": {"type": "string", "pattern": "(a+)+$"}})
    with pytest.raises(InvalidArgumentsError):
        call(workshop.load(), "probe", {"it": "a" * 4000 + "!"})


def test_all_that_is_wrong_is_told_at_once(workshop: Workshop) -> None:
    args = {"a": {"type": "string"}, "b": {"type": "path"}, "c": {"type": "string"}}
    workshop.write("probe", ["printf", "{a}", "{b}", "{c}"], args)
    with pytest.raises(InvalidArgumentsError) as refused:
        call(workshop.load(), "probe", {"a": "{x}", "b": "/etc", "c": "fine"})
    assert [line.split(":")[0] for line in refused.value.detail.splitlines()] == ["a", "b"]


def test_arguments_that_are_not_declared_are_refused(workshop: Workshop) -> None:
    workshop.write("probe", ["printf", "%s"])
    clad = workshop.load()
    with pytest.raises(InvalidArgumentsError, match="Extra inputs are not permitted"):
        call(clad, "probe", {"more": 1})
    with pytest.raises(ToolError, match="more: Extra inputs are not permitted"):
        clad.manifests["probe"].command({"more": 1})


def test_null_and_an_empty_text_leave_an_optional_argument_out(workshop: Workshop) -> None:
    args = {"name": {"type": "string"}, "last": {"type": "string", "default": "end"}}
    workshop.write("probe", ["printf", "hello {name}", "--", "{last}"], args)
    clad = workshop.load()
    manifest = clad.manifests["probe"]
    for values in ({}, {"name": None}, {"name": ""}):
        written = call(clad, "probe", values).arguments
        assert manifest.command(written) == ("printf", "--", "end")
    assert manifest.command({"name": "Ada"}) == ("printf", "hello Ada", "--", "end")


def test_after_two_dashes_a_text_may_begin_with_one(workshop: Workshop) -> None:
    args = {"text": {"type": "string"}}
    workshop.write("guarded", ["printf", "--", "{text}"], args)
    workshop.write("joined", ["printf", "-e{text}"], args)
    workshop.write("open", ["printf", "{text}"], args)
    clad = workshop.load()
    assert clad.manifests["guarded"].command({"text": "-x"}) == ("printf", "--", "-x")
    assert clad.manifests["joined"].command({"text": "-x"}) == ("printf", "-e-x")
    with pytest.raises(ToolError, match="must not begin with '-'"):
        clad.manifests["open"].command({"text": "-x"})


def test_mappings_and_conditionals_fill_one_argument_each(workshop: Workshop) -> None:
    args = {
        "mode": {"type": "enum", "allowed": ["fast", "slow"]},
        "port": {"type": "port", "default": 0},
        "user": {"type": "string", "default": ""},
    }
    command = {
        "defaults": {"rate": 10, "loud": True},
        "mappings": {"mode": {"fast": "-T4 -n", "slow": ""}},
        "conditionals": {
            "with_port": {"when": "port != 0", "template": "-p{port}"},
            "who": {"when": "user != '' and mode == \"fast\"", "template": "{user}@host"},
        },
    }
    exec = ["printf", "{_mode_flags}", "{_with_port}", "{_who}", "{rate}{loud}", "{_scan_flags}"]
    workshop.write("probe", exec, args, command=command)
    probe = workshop.load().manifests["probe"].command
    assert probe({}) == ("printf", "10true")
    assert probe({"mode": "slow", "port": 80}) == ("printf", "-p80", "10true")
    full = probe({"mode": "fast", "port": 1, "user": "ada"})
    assert full == ("printf", "-T4 -n", "-p1", "ada@host", "10true", "-T4 -n")
    with pytest.raises(ToolError, match="user: it must not begin"):
        probe({"mode": "fast", "user": "-ada"})


def test_what_a_hook_edits_passes_the_fence_again(workshop: Workshop) -> None:
    args = {"n": {"type": "integer", "max": 9, "clamp": True}, "text": {"type": "string"}}
    workshop.write("say", ["printf", "%s", "{n}", "{text}"], args)
    clad = workshop.load()
    # H3: what doesn't fit is refused where it is given to the call.
    with pytest.raises(InvalidArgumentsError, match="braces"):
        call(clad, "say", {"n": 1}).edited(text="{x}")
    (tool,) = clad.tools
    assert tool.run is not None
    # And the code of the tool doesn't trust what it is called with.
    metadata = ToolMetadata("call_1", "say", "{}")
    import anyio

    async def run_it(values: dict[str, Any]) -> Any:
        assert tool.run is not None
        return await tool.run(dict(DynamicInput(values).values), metadata=metadata)

    assert anyio.run(run_it, {"n": 77})["results"] == {"raw_output": "9"}
    with pytest.raises(ToolError, match="braces"):
        anyio.run(run_it, {"text": "{x}"})
