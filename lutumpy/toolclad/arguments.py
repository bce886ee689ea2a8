"""One argument of a manifest: its JSON Schema, and the fence that each of its values passes."""

# What a value passes, in this order. Each line is there because the one after it lets something
# through that must not reach a program.
#
#   check                       by            refuses, for example
#   --------------------------  ------------  ---------------------------------------------------
#   JSON Schema                 the tool      another type; a pattern that matches a part only
#   a scalar, 64 bits           `clean`       a list; an integer of a thousand digits
#   no control characters,      `clean`       "a\0b"; text that a person who approves it would
#   nothing that turns text                   read backwards
#   no braces                   `clean`       "{_secret:token}"
#   no `%`, no blanks in an     `clean`       "fe80::1%a --script=vuln", which Python's module
#   address                                   `ipaddress` takes for an address
#   toolclad's `validate_arg`   toolclad      "a; rm -rf /", "../../etc/passwd", "/etc/shadow"
#   no `-` at its beginning     `command`     "--compress-program=sh"
#
# Patterns are checked by the schema alone, anchored and in linear time. toolclad would search for
# them with `re.match`, which takes "a; rm" for the pattern `[a-z]`, and hours for some others.

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass
from lutumpy.toolclad import library
from lutumpy.toolclad.tables import ArgumentTable, explain_tables

__all__ = ["Argument", "make_argument"]

_TEXTS = frozenset(
    "string regex_match path credential_file url scope_target ip_address cidr duration "
    "msf_options".split()
)
_ADDRESSES = frozenset({"scope_target", "ip_address", "cidr"})
_WITHOUT_BLANKS = _ADDRESSES | {"url", "duration"}
_NUMBERS = frozenset({"integer", "number", "port"})
_KINDS = _TEXTS | _NUMBERS | {"boolean", "enum"}
# What an argument may say of its values, by the types that are held to it. With another type it
# would be a fence that isn't there, so the manifest is refused.
_HELD_TO: Mapping[str, frozenset[str]] = {
    "allowed": frozenset({"enum"}),
    "pattern": _TEXTS - {"duration"},
    "min": _NUMBERS,
    "max": _NUMBERS,
    "min_float": frozenset({"number"}),
    "max_float": frozenset({"number"}),
    "schemes": frozenset({"url"}),
}
_DURATION = "[0-9]+|(?:[0-9]+h)?(?:[0-9]+m)?(?:[0-9]+s)?(?:[0-9]+ms)?"
_LAST_PORT = 65535
_LONGEST = 4096  # characters of one value
_MOST = 2**63 - 1
# Marks that make a text look like another one where a person reads it.
_TURNING = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_CONTROLS = ("Cc", "Cs", "Zl", "Zp")


@dataclass(frozen=True, slots=True)
class Argument:
    """One argument.

    Attributes:
        name: Its name.
        kind: Its type in toolclad; of a custom type, the base.
        required: Whether the model must write it.
        default: What the command gets where the model left it out; empty for nothing.
        schema: JSON Schema of its values.
        clamped_to: The bounds that a number outside of them is moved to; each may be `None`.
        definition: What `validate_value` takes; without a pattern.
    """

    name: str
    kind: str
    required: bool
    default: str
    schema: Mapping[str, Any]
    clamped_to: tuple[int | float | None, int | float | None]
    definition: Any

    @property
    def is_free_text(self) -> bool:
        """Whether its values are texts that the manifest doesn't list."""
        return self.kind in _TEXTS

    def clean(self, value: Any) -> str | int | float | bool:
        """The value that is used; cleaning it again changes nothing.

        Raises:
            ValueError: It can't be used; the text says why, for the model.
        """
        if self.kind in _NUMBERS:
            return self._clean_number(value)
        if self.kind == "boolean":
            if not isinstance(value, bool):
                raise ValueError("it must be true or false")
            return value
        if not isinstance(value, str):
            raise ValueError("it must be a text")
        if self.kind == "enum":
            return self._validate(value)
        if not value:
            if self.required:
                raise ValueError("it must not be empty")
            return ""
        _check_characters(value)
        if self.kind in _ADDRESSES and "%" in value:
            raise ValueError("an address must not have a zone: '%' is not allowed")
        if self.kind in _WITHOUT_BLANKS and any(one.isspace() for one in value):
            raise ValueError("it must not have blanks")
        return self._validate(value)

    @property
    def is_bare(self) -> bool:
        """Whether JSON writes its values without quotes."""
        return self.kind in _NUMBERS or self.kind == "boolean"

    def spell(self, value: str | int | float | bool) -> str:
        """A cleaned value as a part of a command."""
        if isinstance(value, bool):
            return "true" if value else "false"
        return str(value)

    def _clean_number(self, value: Any) -> int | float:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise ValueError("it must be a number")
        if not -_MOST <= value <= _MOST:  # NaN, too
            raise ValueError("it is too large")
        low, high = self.clamped_to
        if low is not None:
            value = max(low, value)
        if high is not None:
            value = min(high, value)
        if self.kind == "number":
            return float(self._validate(value))
        if value != int(value):
            raise ValueError("it must be a whole number")
        return int(self._validate(int(value)))

    def _validate(self, value: Any) -> str:
        try:
            return library.validate_value(self.definition, value)
        except ValueError as error:
            raise ValueError(shorten(str(error), 300)) from None


def _check_characters(value: str) -> None:
    if len(value) > _LONGEST:
        raise ValueError(f"it has {len(value)} characters, and {_LONGEST} are allowed")
    if any(unicodedata.category(one) in _CONTROLS for one in value) or _TURNING.search(value):
        raise ValueError("control characters are not allowed in it")
    if "{" in value or "}" in value:
        raise ValueError("braces are not allowed in it")


# --- from the table of a manifest -----------------------------------------------------------------


def make_argument(name: str, table: ArgumentTable, types: Mapping[str, Any]) -> Argument:
    """The argument that a table declares.

    Args:
        name: Its name.
        table: `[args.NAME]`.
        types: Custom types by name, as toolclad reads them.

    Raises:
        ValueError: It can't be used.
    """
    custom = types.get(table.type)
    if custom is not None:
        table = _apply_type(custom, table)
    fields = {"name": name, **table.model_dump()}
    kind = fields["type"]
    if kind not in _KINDS:
        raise ValueError(
            f"there is no type {kind!r}; a custom type stands in toolclad.toml, beside the "
            "manifests or one folder above them"
        )
    if re.fullmatch(r"[a-zA-Z][a-zA-Z0-9_]*", name) is None:
        raise ValueError("a name has letters, digits and '_', and begins with a letter")
    for key, kinds in _HELD_TO.items():
        if fields[key] not in (None, "", []) and kind not in kinds:
            raise ValueError(
                f"{key} has no effect on the type {kind}, but on {', '.join(sorted(kinds))}"
            )
    if kind == "regex_match" and not fields["pattern"]:
        raise ValueError("the type regex_match needs a pattern")
    schema = {**_value_schema(kind, fields), **_describe(fields)}
    default = _read_default(table.default)
    if table.default is not None:
        schema["default"] = table.default
    # Patterns are the schema's; the rest of such a type is that of a string. Whether a file of
    # credentials exists the manifest asks, since it knows where the program runs.
    like = {"regex_match": "string", "credential_file": "path"}.get(kind, kind)
    definition = library.make_argument({**fields, "type": like, "pattern": ""})
    required = table.required and table.default is None
    bounds = _read_bounds(kind, fields) if fields["clamp"] and kind in _NUMBERS else {}
    # toolclad's own clamping moves nothing where there is only one bound.
    clamped_to = bounds.get("minimum"), bounds.get("maximum")
    return Argument(name, kind, required, default, schema, clamped_to, definition)


def _apply_type(custom: Any, table: ArgumentTable) -> ArgumentTable:
    """The table with what a custom type says; toolclad takes any value in one."""
    fields = table.model_dump()
    fields["type"] = custom.base
    for key in ("allowed", "pattern", "min", "max", "min_float", "max_float"):
        own = getattr(custom, key)
        if own is not None and own not in ("", []):
            fields[key] = own
    try:
        return ArgumentTable.model_validate(fields)
    except ValidationError as error:
        wrong = "; ".join(explain_tables(error))
        raise ValueError(f"its type {table.type!r} can't be used: {wrong}") from None


def _read_default(default: Any) -> str:
    if default is None:
        return ""
    spelled = str(default).lower() if isinstance(default, bool) else str(default)
    if "\0" in spelled:
        raise ValueError("its default has a NUL character")
    return spelled


def _value_schema(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """JSON Schema of a value, by the type of the argument."""
    if kind == "boolean":
        return {"type": "boolean"}
    if kind == "enum":
        if not fields["allowed"] or any("\0" in value for value in fields["allowed"]):
            raise ValueError("the type enum needs allowed values, without NUL characters")
        return {"type": "string", "enum": list(fields["allowed"])}
    if kind in _NUMBERS:
        bounds = {} if fields["clamp"] else _read_bounds(kind, fields)
        if kind == "port":
            low, high = bounds.get("minimum", 1), bounds.get("maximum", _LAST_PORT)
            return {"type": "integer", "minimum": max(low, 1), "maximum": min(high, _LAST_PORT)}
        return {"type": kind, **bounds}
    schema: dict[str, Any] = {"type": "string"}
    pattern = _DURATION if kind == "duration" else fields["pattern"]
    if pattern:
        schema["pattern"] = f"^(?:{pattern})$"
    if fields["required"]:
        schema["minLength"] = 1
    return schema


def _read_bounds(kind: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    low, high = fields["min"], fields["max"]
    if kind == "number":
        low = low if fields["min_float"] is None else fields["min_float"]
        high = high if fields["max_float"] is None else fields["max_float"]
    bounds = {"minimum": low, "maximum": high}
    return {key: bound for key, bound in bounds.items() if bound is not None}


def _describe(fields: Mapping[str, Any]) -> dict[str, str]:
    sentences = [fields["description"].strip()] if fields["description"].strip() else []
    if fields["clamp"] and fields["type"] in _NUMBERS:
        bounds = _read_bounds(fields["type"], fields)
        words = [f"{key} {bound}" for key, bound in bounds.items()]
        if words:
            sentences.append(f"({' and '.join(words)}; a value outside is moved to the bound.)")
    if fields["schemes"]:
        sentences.append(f"(Schemes: {', '.join(fields['schemes'])}.)")
    return {"description": " ".join(sentences)} if sentences else {}
