"""A JSON Schema that is known at run time only: checked once, then held against values."""

# What is hard here
# -----------------
# Such a schema comes from a stranger: a server, a manifest, a user. So it is looked at before the
# validator of jsonschema-rs sees it, and everything that could cost somebody something is refused:
#
#   the schema                              what it would do               what is done
#   --------------------------------------  -----------------------------  ----------------------
#   refers to `http:` or `file:`            fetch or read it               refused, nothing fetched
#   is nested, or refers on, very deeply    overflow the native stack      refused
#   doubles itself by references            2^30 checks for one value      refused
#   has a pattern that backtracks           minutes for 30 characters      refused, or linear time
#   is broken, or names an unknown draft    wrong answers                  refused
#
# The validator answers in well under a microsecond whether a value fits. Why one doesn't fit is
# found out with a second validator, made at the first failure, that masks the values in its
# sentences: values may be long, so we put a shortened one in the mask's place.
#
# A value that fits no branch of a union fails in each of them. Only the branches that the model
# may have meant are told (`_meant_branches`).

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from lutumpy.plain.preview import shorten
from lutumpy.tools.argument_report import MESSAGE_LENGTH, Path, show_value
from lutumpy.tools.schema_size import count_checks

__all__ = ["JsonSchema", "SchemaError", "SchemaFailure", "SchemaMismatch"]

_MOST_CHECKS = 500_000
"""How many checks of one value a schema may cause, references followed: more is refused."""

_MOST_EXPLAINED = 20_000
"""Up to how many of them the failures of a value are listed, each at some 30 microseconds."""

_MOST_LEVELS = 500
"""How deep schemas may be nested, references followed."""

_INSTALL = "tools that are known at run time need the extra: pip install 'lutumpy[schema]'"
_MASK = "\ue000value\ue001"  # from a private range, so that no schema's own words hold it
_WORDS_LENGTH = 300  # characters of a schema's own words in a sentence
_FORBIDDEN = "Extra inputs are not permitted"
_REQUIRED = "Field required"


class SchemaError(ValueError):
    """Why a JSON Schema can't be used, in words for the person who declares the tool."""


class SchemaFailure(NamedTuple):
    """One reason why a value doesn't fit.

    Attributes:
        path: Where: keys and positions.
        text: What is wrong, in words for the model; no long value is in it.
    """

    path: Path
    text: str


class SchemaMismatch(Exception):
    """Arguments that don't fit a schema.

    Attributes:
        values: The arguments.
    """

    def __init__(self, values: Any) -> None:
        super().__init__("the arguments don't fit the schema")
        self.values: Any = values


class JsonSchema:
    """A schema that was checked, and validates.

    Args:
        document: The schema; it is copied. Its draft is the one that its `$schema` names, 2020-12
            where it names none. Formats are checked.

    Attributes:
        document: A copy of the schema, as it was given. Not to be changed.
        is_valid: Whether a JSON value fits.
        can_explain: Whether it is small enough for `failures` to say why a value doesn't.

    Raises:
        SchemaError: It can't be used; nothing was fetched.
        ImportError: The extra `schema` isn't installed.
    """

    __slots__ = ("_explaining", "can_explain", "document", "is_valid")

    def __init__(self, document: Any) -> None:
        self.document: Any = _copy_json(document)
        self.can_explain: bool = _count_checks(self.document) <= _MOST_EXPLAINED
        self._explaining: Any = None
        self.is_valid: Any = _make_validator(self.document).is_valid

    def failures(self, value: Any) -> list[SchemaFailure]:
        """Why `value` doesn't fit; empty where it does."""
        if self.is_valid(value):
            return []
        if not self.can_explain:
            return [SchemaFailure((), "they don't fit the schema of this tool")]
        return list(_list_failures(value, self._errors(value)))

    def failing_paths(self, value: Any) -> list[Path]:
        """Every place where `value` doesn't fit, those in branches that weren't meant included."""
        return list(_list_paths(self._errors(value))) if self.can_explain else []

    def _errors(self, value: Any) -> Iterable[Any]:
        if self._explaining is None:
            self._explaining = _make_validator(self.document, mask=_MASK)
        return cast("Iterable[Any]", self._explaining.iter_errors(value))


# --- a schema before it is used -----------------------------------------------------------------


def _copy_json(document: Any) -> Any:
    """A copy that nobody else holds, of JSON values alone."""
    try:
        return from_json(json.dumps(document, allow_nan=False))
    except RecursionError:
        raise SchemaError("its schema is nested too deeply") from None
    except (TypeError, ValueError) as error:
        if "recursion" in str(error).lower():
            raise SchemaError("its schema is nested too deeply") from None
        raise SchemaError(f"its schema is not JSON: {error}") from None


def _count_checks(document: Any) -> int:
    try:
        return count_checks(document, most=_MOST_CHECKS, levels=_MOST_LEVELS)
    except ValueError as error:
        raise SchemaError(f"its schema costs too much: {error}") from None


def _make_validator(document: Any, mask: str | None = None) -> Any:
    """A validator of jsonschema-rs; raises `SchemaError` where the schema can't be used."""
    try:
        import jsonschema_rs
    except ImportError as error:
        raise ImportError(_INSTALL) from error

    outside: list[str] = []

    def refuse(uri: str) -> Any:
        outside.append(uri)
        raise ValueError("references to other documents are not followed")

    try:
        return jsonschema_rs.validator_for(
            document,
            mask=mask,
            validate_formats=True,
            retriever=refuse,
            # This engine takes linear time. It has no look-around and no back references.
            pattern_options=jsonschema_rs.RegexOptions(),
        )
    except jsonschema_rs.ValidationError as error:
        if outside:
            raise SchemaError(
                f"its schema refers to another document, {shorten(outside[0], 200)!r}; references "
                "must stay inside of it, and nothing was fetched"
            ) from None
        raise SchemaError(_explain_broken(error)) from None
    except (ValueError, TypeError) as error:
        if "recursion" in str(error).lower():
            raise SchemaError("its schema is nested too deeply") from None
        raise SchemaError(f"its schema can't be used: {shorten(str(error), 300)}") from None


def _explain_broken(error: Any) -> str:
    place = "/".join(map(str, error.instance_path))
    at = f" at {shorten(place, 200)}" if place else ""
    if error.kind.name == "format" and error.kind.format == "regex":
        return (
            f"its schema has a pattern{at} that is no regular expression of linear time: "
            f"{shorten(str(error.instance), 100)!r} (look-around and back references are not "
            "taken, since a stranger's pattern could then run for hours)"
        )
    return f"its schema is broken{at}: {shorten(error.message, 300)}"


# --- why a value doesn't fit --------------------------------------------------------------------


def _list_failures(value: Any, errors: Iterable[Any]) -> Iterator[SchemaFailure]:
    for error in errors:
        yield from _read_error(value, error)


def _list_paths(errors: Iterable[Any]) -> Iterator[Path]:
    for error in errors:
        yield tuple(error.instance_path)
        if error.kind.name in ("anyOf", "oneOf"):
            for branch in error.kind.context:
                yield from _list_paths(branch)


def _read_error(root: Any, error: Any) -> Iterator[SchemaFailure]:
    kind = error.kind.name
    path: Path = tuple(error.instance_path)
    if kind == "required":
        yield SchemaFailure((*path, error.kind.property), _REQUIRED)
    elif kind in ("additionalProperties", "unevaluatedProperties"):
        holder = _value_at(root, path)
        unexpected = set(error.kind.unexpected)
        # In the order in which the model wrote them; the validator has no order.
        for name in holder if isinstance(holder, Mapping) else sorted(unexpected):
            if name in unexpected:
                yield SchemaFailure((*path, name), _FORBIDDEN)
    elif kind == "falseSchema" and path:
        yield SchemaFailure(path, _FORBIDDEN)
    elif kind in ("anyOf", "oneOf"):
        yield from _read_union(root, path, error)
    else:
        yield SchemaFailure(path, _write_sentence(root, path, error))


def _read_union(root: Any, path: Path, error: Any) -> Iterator[SchemaFailure]:
    branches = _meant_branches(path, [list(branch) for branch in error.kind.context])
    told = [failure for branch in branches for failure in _list_failures(root, branch)]
    # `3 is not of type "string" or: 3 is not of type "array"` says more than the union does.
    yield from dict.fromkeys(told) or [SchemaFailure(path, _write_sentence(root, path, error))]


def _meant_branches(path: Path, branches: list[list[Any]]) -> list[list[Any]]:
    """The branches of a union that a value may have been meant for.

    A branch that wants another type, whose `const` or `enum` field differs, or that has a field
    missing, was not meant as long as there is one of which that isn't true.
    """

    def wants_other_type(error: Any) -> bool:
        return error.kind.name == "type" and tuple(error.instance_path) == path

    def differs_in_constant(error: Any) -> bool:
        # One level below: the field that tells the branches apart.
        is_field = len(error.instance_path) == len(path) + 1
        return error.kind.name in ("const", "enum") and is_field

    def misses_field(error: Any) -> bool:
        return error.kind.name == "required" and tuple(error.instance_path) == path

    for excludes in (wants_other_type, differs_in_constant, misses_field):
        left = [branch for branch in branches if not any(excludes(error) for error in branch)]
        branches = left or branches
    return branches


def _write_sentence(root: Any, path: Path, error: Any) -> str:
    """The validator's own sentence, with a shortened value."""
    words: str = error.message
    shown = show_value(_value_at(root, path))
    # A schema's own words may be long too: a thousand values of an `enum`.
    parts = [shorten(part, _WORDS_LENGTH) for part in words.split(_MASK)]
    return shorten(shown.join(parts), MESSAGE_LENGTH)


def _value_at(root: Any, path: Path) -> Any:
    value = root
    for step in path:
        try:
            value = value[step]
        except (KeyError, IndexError, TypeError):
            return None
    return value
