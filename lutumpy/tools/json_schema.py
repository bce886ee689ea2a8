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
#   doubles itself by levels of a value     the same for a value of 30     such values are refused
#   has a pattern that backtracks           minutes for 30 characters      refused, or linear time
#   has a pattern of 50,000 repetitions     minutes for 20,000 characters  such values are refused
#   is broken, or names an unknown draft    wrong answers                  refused
#
# The validator answers in well under a microsecond whether a value fits. Why one doesn't fit is
# found out with a second validator, made at the first failure, that masks the values in its
# sentences: values may be long, so we put a shortened one in the mask's place.
#
# Each of its errors holds a copy of what it is about, and all of them are made before we see the
# first: 4,000 names that are missing in 400 kilobytes were gigabytes. So a long list of names is a
# keyword of ours there, which fails once (`_name_long_lists`), and what costs too much all the same
# isn't listed (`SchemaWork`).
#
# A value that fits no branch of a union fails in each of them. Only the branches that the model
# may have meant are told (`_meant_branches`).

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from pydantic_core import from_json

from lutumpy.plain.preview import shorten
from lutumpy.rules.schema_references import NAMED_SCHEMAS, PLAIN_VALUES
from lutumpy.tools.argument_report import MESSAGE_LENGTH, Path, show_value
from lutumpy.tools.metaschemas import metaschema_registry, with_known_draft
from lutumpy.tools.pattern_size import count_characters, largest_pattern
from lutumpy.tools.schema_size import (
    METASCHEMAS,
    SchemaSize,
    measure_schema,
)
from lutumpy.tools.schema_work import SchemaWork

__all__ = ["JsonSchema", "SchemaError", "SchemaFailure", "SchemaMismatch"]

_MOST_CHECKS = 500_000
"""A schema is refused that makes more checks, references followed, of a single value without
parts."""

_MOST_CHECKS_OF_PARTS = 500_000_000
"""The same for a value that has every part that the schema names. No real value is that large, and
the checks of each one are counted before it is checked: so only schemas that nobody needs are
refused."""

_MOST_WORK = 5_000_000
"""Where a schema is dangerous, a value that takes more checks isn't validated: it doesn't fit. So
many take some 0.1 seconds."""

_FEW_CHECKS = 20_000
"""A schema that makes more checks of a value without parts counts as dangerous."""

_LARGE_PATTERN = 500
"""A pattern of a greater size counts as large."""

_MOST_MATCHING = 20_000_000
"""Where a schema has a large pattern, a value doesn't fit if the characters of its texts, times the
size of the pattern, are more. So many steps take 3 seconds for the worst of patterns, and a
hundredth of that for usual ones."""

_MOST_EXPLAINED = 20_000
"""The failures of a value are listed only if that takes no more checks than these, at some 30
microseconds each. Copies of the value's parts count by their size, so they have 64 megabytes at
most."""

_FEW_NAMES = 10
"""Longer lists of required names give one error, however many are missing."""

_MOST_LEVELS = 500
"""How deep schemas may be nested, references followed."""

_COSTLY_WORDS = ("$ref", "$dynamicRef", "$recursiveRef", "unevaluated")
"""A schema without any of these in its text makes no more checks than it has parts."""

_INSTALL = (
    "tools that are known at run time need jsonschema-rs; install it with: "
    'python -m pip install ".[schema]" (in a clone)'
)
_MASK = "\ue000value\ue001"  # from a private range, so that no schema's own words hold it
_WORDS_LENGTH = 300  # characters of a schema's own words in a sentence
_LONG_LIST = "\ue002required"
_FORBIDDEN = "Extra inputs are not permitted"
_HALF_CHARACTER = "a text in them holds half a character"
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
        is_valid: Whether a JSON value fits. One that takes too long to check doesn't.
        may_explode: Whether some values would take too long.

    Raises:
        SchemaError: It can't be used; nothing was fetched.
        ImportError: The extra `schema` isn't installed.
    """

    __slots__ = (
        "_explaining",
        "_largest_pattern",
        "_long_lists",
        "_names_metaschema",
        "_work",
        "document",
        "is_valid",
        "may_explode",
    )

    def __init__(self, document: Any) -> None:
        text = _write_json(document)
        self.document: Any = _read_json(text)
        own_draft = isinstance(self.document, dict) and "$schema" in self.document
        self._names_metaschema: bool = text.count(METASCHEMAS) > own_draft
        size = _measure(self.document, text)
        self._explaining: Any = None
        self._long_lists: list[list[str]] = []
        self._work: SchemaWork | None = None
        validator = _make_validator(self.document, metaschemas=self._names_metaschema)
        self.is_valid: Any = validator.is_valid
        self.may_explode: bool = size.may_explode or size.checks > _FEW_CHECKS
        self._largest_pattern: int = largest_pattern(self.document) if "attern" in text else 0
        if self.may_explode or self._largest_pattern > _LARGE_PATTERN:
            self.is_valid = self._make_careful(validator.is_valid)

    @property
    def longest_text(self) -> int | None:
        """How many characters a value may have in all where a pattern is large, else `None`."""
        size = self._largest_pattern
        return None if size <= _LARGE_PATTERN else _MOST_MATCHING // size

    def failures(self, value: Any) -> list[SchemaFailure]:
        """Why `value` doesn't fit; empty where it does."""
        try:
            return self._find_failures(value)
        except ValueError as error:  # `UnicodeEncodeError` from newer validators
            if "surrogate" not in str(error):
                raise
            return [SchemaFailure((), _HALF_CHARACTER)]

    def _find_failures(self, value: Any) -> list[SchemaFailure]:
        if self.is_valid(value):
            return []
        if self._is_too_much_to_explain(value):
            return [SchemaFailure((), "they don't fit the schema, or are nested too deeply for it")]
        errors = self._errors(value)
        return list(_list_failures(_Subject(value, self._long_lists), errors))

    def failing_paths(self, value: Any) -> list[Path]:
        """Every place where `value` doesn't fit, those in branches that weren't meant included."""
        if self._is_too_much_to_explain(value):
            return []
        return [*_list_paths(value, self._errors(value))]

    def _make_careful(self, is_valid: Callable[[Any], bool]) -> Callable[[Any], bool]:
        """`is_valid` for values that don't take too long."""

        def is_valid_soon(value: Any) -> bool:
            return not self._is_too_much(value) and is_valid(value)

        return is_valid_soon

    def _is_too_much(self, value: Any) -> bool:
        longest = self.longest_text
        if longest is not None and count_characters(value) > longest:
            return True
        return self.may_explode and self._count_work().is_more(value, _MOST_WORK)

    def _is_too_much_to_explain(self, value: Any) -> bool:
        if self._is_too_much(value):
            return True
        return self._count_work().is_more_to_explain(value, _MOST_EXPLAINED, _FEW_NAMES)

    def _count_work(self) -> SchemaWork:
        if self._work is None:
            self._work = SchemaWork(self.document)
        return self._work

    def _errors(self, value: Any) -> Iterable[Any]:
        if self._explaining is None:
            document, self._long_lists = _name_long_lists(self.document)
            self._explaining = _make_validator(
                document, metaschemas=self._names_metaschema, mask=_MASK
            )
        return cast("Iterable[Any]", self._explaining.iter_errors(value))


# --- a schema before it is used -----------------------------------------------------------------


def _write_json(document: Any) -> str:
    try:
        return json.dumps(document, allow_nan=False)
    except RecursionError:
        raise SchemaError("its schema is nested too deeply") from None
    except (TypeError, ValueError) as error:
        raise SchemaError(f"its schema is not JSON: {error}") from None


def _read_json(text: str) -> Any:
    """A copy of the schema that nobody else holds, of JSON values alone."""
    try:
        return from_json(text)
    except ValueError as error:
        if "recursion" in str(error).lower():
            raise SchemaError("its schema is nested too deeply") from None
        raise SchemaError(f"its schema is not JSON: {error}") from None


def _measure(document: Any, text: str) -> SchemaSize:
    if not any(word in text for word in _COSTLY_WORDS):
        # Each part is checked once for a value, and JSON was read only so many levels deep.
        parts = text.count("{") + text.count("[")
        if parts <= _MOST_CHECKS:
            return SchemaSize(parts, may_explode=False)
    try:
        return measure_schema(
            document,
            most=_MOST_CHECKS,
            most_in_all=_MOST_CHECKS_OF_PARTS,
            levels=_MOST_LEVELS,
        )
    except ValueError as error:
        raise SchemaError(str(error)) from None


def _make_validator(document: Any, *, metaschemas: bool, mask: str | None = None) -> Any:
    """A validator of jsonschema-rs.

    Args:
        document: The schema.
        metaschemas: Whether it may refer to a metaschema.
        mask: What stands for values in the sentences of errors.

    Raises:
        SchemaError: The schema can't be used.
    """
    try:
        import jsonschema_rs
    except ImportError as error:
        raise ImportError(_INSTALL) from error

    try:
        document = with_known_draft(document)
    except ValueError as error:
        raise SchemaError(f"its schema can't be used: {error}") from None
    outside: list[str] = []
    keywords: dict[str, Any] | None = None if mask is None else {_LONG_LIST: _LongList}

    def refuse(uri: str) -> Any:
        outside.append(uri)
        raise ValueError("references to other documents are not followed")

    try:
        return jsonschema_rs.validator_for(
            document,
            mask=mask,
            validate_formats=True,
            retriever=refuse,
            registry=metaschema_registry() if metaschemas else None,
            # This engine takes linear time. It has no look-around and no back references.
            pattern_options=jsonschema_rs.RegexOptions(),
            keywords=keywords,
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


class _LongList:
    """A `required` of many names, which fails once."""

    def __init__(self, schema: Any, value: Any, path: Any) -> None:
        self._index, self._names = value

    def validate(self, instance: Any) -> None:
        if isinstance(instance, dict) and not instance.keys() >= set(self._names):
            raise ValueError(str(self._index))


def _name_long_lists(document: Any) -> tuple[Any, list[list[str]]]:
    """The schema with a keyword of ours in the place of long lists of required names; the lists."""
    lists: list[list[str]] = []
    copied = _read_json(_write_json(document))
    # Each part, and whether its keys are names of schemas.
    stack: list[tuple[Any, bool]] = [(copied, False)]
    while stack:
        node, has_names = stack.pop()
        if isinstance(node, list):
            stack += [(inner, False) for inner in node]
        elif isinstance(node, dict):
            if not has_names:
                node.pop(_LONG_LIST, None)  # a stranger's word, which says nothing
            required = None if has_names else node.get("required")
            if isinstance(required, list) and len(required) > _FEW_NAMES:
                node[_LONG_LIST] = [len(lists), node.pop("required")]
                lists.append(required)
            stack += [
                (inner, key in NAMED_SCHEMAS and not has_names)
                for key, inner in node.items()
                if (has_names or key not in PLAIN_VALUES) and key != _LONG_LIST
            ]
    return copied, lists


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


class _Subject(NamedTuple):
    """What failures are told about.

    Attributes:
        value: The value.
        long_lists: The lists of required names that the errors of `_LongList` number.
    """

    value: Any
    long_lists: list[list[str]]


def _list_failures(subject: _Subject, errors: Iterable[Any]) -> Iterator[SchemaFailure]:
    for error in errors:
        yield from _read_error(subject, error)


def _list_paths(value: Any, errors: Iterable[Any]) -> Iterator[Path]:
    for error in errors:
        yield _find_path(value, error)
        if error.kind.name in ("anyOf", "oneOf"):
            for branch in error.kind.context:
                yield from _list_paths(value, branch)


def _find_path(value: Any, error: Any) -> Path:
    """Where an error is. The validator gives names of digits as positions: 1 for `1` and `01`."""
    path: list[str | int] = []
    for given in error.instance_path:
        step = given
        if isinstance(given, int) and isinstance(value, Mapping):
            same = [name for name in value if re.fullmatch(rf"\+?0*{given}", name)]
            step = str(given) if str(given) in same else (same or [given])[0]
        path.append(step)
        value = _value_at(value, (step,))
    return tuple(path)


def _read_error(subject: _Subject, error: Any) -> Iterator[SchemaFailure]:
    kind = error.kind.name
    path = _find_path(subject.value, error)
    if kind == "required":
        yield SchemaFailure((*path, error.kind.property), _REQUIRED)
    elif kind == _LONG_LIST:
        holder = _value_at(subject.value, path)
        for name in subject.long_lists[int(error.message)]:
            if name not in holder:
                yield SchemaFailure((*path, name), _REQUIRED)
    elif kind in ("additionalProperties", "unevaluatedProperties"):
        holder = _value_at(subject.value, path)
        unexpected = set(error.kind.unexpected)
        # In the order in which the model wrote them; the validator has no order.
        for name in holder if isinstance(holder, Mapping) else sorted(unexpected):
            if name in unexpected:
                yield SchemaFailure((*path, name), _FORBIDDEN)
    elif kind == "falseSchema" and path:
        yield SchemaFailure(path, _FORBIDDEN)
    elif kind in ("anyOf", "oneOf"):
        yield from _read_union(subject, path, error)
    else:
        yield SchemaFailure(path, _write_sentence(subject, path, error))


def _read_union(subject: _Subject, path: Path, error: Any) -> Iterator[SchemaFailure]:
    branches = [list(branch) for branch in error.kind.context]
    if [] in branches:  # several of `oneOf` fit, so what is wrong with the others says nothing
        branches = []
    branches = _meant_branches(tuple(error.instance_path), branches)
    found = [failure for branch in branches for failure in _list_failures(subject, branch)]
    # `3 is not of type "string" or: 3 is not of type "array"` says more than the union does.
    yield from dict.fromkeys(found) or [SchemaFailure(path, _write_sentence(subject, path, error))]


def _meant_branches(path: Path, branches: list[list[Any]]) -> list[list[Any]]:
    """The branches of a union that a value may have been meant for.

    Three things speak against a branch: it wants another type, its `const` or `enum` field differs,
    or the value lacks a field of it. Each rules branches out, unless it would rule out all that are
    left.
    """

    def wants_other_type(error: Any) -> bool:
        return error.kind.name == "type" and tuple(error.instance_path) == path

    def differs_in_constant(error: Any) -> bool:
        # One level below: the field that tells the branches apart.
        is_field = len(error.instance_path) == len(path) + 1
        return error.kind.name in ("const", "enum") and is_field

    def misses_field(error: Any) -> bool:
        return error.kind.name in ("required", _LONG_LIST) and tuple(error.instance_path) == path

    for excludes in (wants_other_type, differs_in_constant, misses_field):
        left = [branch for branch in branches if not any(excludes(error) for error in branch)]
        branches = left or branches
    return branches


def _write_sentence(subject: _Subject, path: Path, error: Any) -> str:
    """The validator's own sentence, with a shortened value."""
    words: str = error.message
    shown = show_value(_value_at(subject.value, path))
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
