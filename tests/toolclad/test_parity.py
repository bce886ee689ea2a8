"""What toolclad's own validator accepts and what we accept, type by type: never more."""

from __future__ import annotations

from typing import Any

import pytest
import toolclad
from clad_toolkit import Workshop, call
from toolclad.manifest import ArgDef

from lutumpy import InvalidArgumentsError

TEXTS = ("a", "a b", "a;b", "$(id)", "", "-x", "../x", "/etc/passwd", "users.txt", "none.txt")
HOSTS = ("10.0.0.1", "::1", "fe80::1%a", "10.0.0.0/8", "a.example", "*.example", "300.0.0.1")
VALUES: dict[str, tuple[dict[str, Any], tuple[Any, ...]]] = {
    "string": ({}, TEXTS),
    "integer": ({"min": 1, "max": 9}, (1, 9, 0, 10, "5", "x", 1.5)),
    "number": ({"min_float": 0.5, "max_float": 2.0}, (0.5, 2, 0.4, 2.1, "1.5", "x")),
    "port": ({}, (1, 65535, 0, 65536, "443", "x")),
    "boolean": ({}, (True, False, "true", "yes")),
    "enum": ({"allowed": ["a", "b"]}, ("a", "b", "c", "")),
    "path": ({}, TEXTS),
    "credential_file": ({}, TEXTS),
    "url": (
        {"schemes": ["https"]},
        ("https://a.example/x", "http://a.example", "https://a b", "x", "javascript:a"),
    ),
    "scope_target": ({}, HOSTS),
    "ip_address": ({}, HOSTS),
    "cidr": ({}, HOSTS),
    "duration": ({}, ("5", "30s", "1h30m", "-5", "x", "500ms")),
    "regex_match": ({"pattern": "[a-c]+"}, ("abc", "d", "abcd", "a;")),
}
# Where toolclad accepts what is refused here, each with what is said of it.
STRICTER = {
    ("string", "-x"): "an option",
    ("path", "-x"): "an option",
    ("url", "https://a b"): "must not have blanks",
    ("ip_address", "fe80::1%a"): "must not have a zone",
    ("scope_target", "fe80::1%a"): "must not have a zone",
    ("duration", "-5"): "does not match",
    ("regex_match", "abcd"): "does not match",  # toolclad's patterns are not anchored at their end
}


def accepts_theirs(kind: str, fields: dict[str, Any], value: Any) -> bool:
    argument = ArgDef(name="it", type=kind, **fields)
    text = str(value).lower() if isinstance(value, bool) else str(value)
    try:
        toolclad.validate_arg(argument, text)
    except Exception:
        return False
    return True


def test_each_of_14_types_accepts_no_more_than_toolclads_own_runtime(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workshop.place / "users.txt").write_text("ada")
    monkeypatch.chdir(workshop.place)  # toolclad looks for files there
    for kind, (fields, _) in VALUES.items():
        workshop.write(f"probe_{kind}", ["printf", "{it}"], {"it": {"type": kind, **fields}})
    clad = workshop.load()
    assert len(VALUES) == 14
    more: list[Any] = []
    stricter: dict[Any, str] = {}
    accepted: dict[str, int] = {}
    for kind, (fields, values) in VALUES.items():
        for value in values:
            theirs = accepts_theirs(kind, fields, value)
            try:
                call(clad, f"probe_{kind}", {"it": value})
            except InvalidArgumentsError as error:
                if theirs:
                    stricter[kind, value] = error.detail
            else:
                accepted[kind] = accepted.get(kind, 0) + 1
                if not theirs:
                    more.append((kind, value))
    assert accepted.keys() == VALUES.keys()  # each takes something
    assert more == []
    assert stricter.keys() == STRICTER.keys()
    for key, words in STRICTER.items():
        assert words in stricter[key], key
