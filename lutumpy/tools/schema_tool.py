"""A tool that is declared by a JSON Schema: how its calls are read, and its results checked.

It takes the place of a compiled function or input class everywhere (`CompiledTool`), so toolsets,
rounds, hooks and the executor know nothing of schemas.
"""

# What is hard here
# -----------------
# Little of ours may be between a good call and the two libraries that read it: pydantic parses
# the text, and the validator of jsonschema-rs says yes to its values.
# Everything else happens after the validator said no, in the same order as for other tools
# (`tools/arguments.py`), and it ends in the same words.
#
# A schema whose root is a union is offered as an object with the one property `input` (rule D6).
# The schema that validates is the declared one; only what is sent is wrapped, so the references in
# it have to lead to where its parts went (`tools/wrapped_schema.py`).
#
# Hooks may edit what they are given: they return other values, or change those they have in place.
# So what a hook passed on is looked at once more, if it isn't what the call holds any more
# (`accept_input`, rule Y8). The tool's own check cleans it then as it cleans what a model wrote
# (`tools/checked_values.py`).

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from lutumpy.core.items import ToolMetadata
from lutumpy.errors import InvalidArgumentsError, ToolError
from lutumpy.plain import json_values
from lutumpy.plain.driving import is_async
from lutumpy.plain.strict_json import copy_json
from lutumpy.tools.argument_edits import ArgumentRepair, names_property
from lutumpy.tools.argument_report import Path, spell_path
from lutumpy.tools.arguments import Decoded, Refused, decode_arguments, explain_raised_check
from lutumpy.tools.checked_values import (
    CheckedValues,
    canonical_values,
    carry_checked,
    find_checked,
)
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.dynamic_values import (
    DYNAMIC_OUTPUT,
    DynamicInput,
    input_of_values,
    values_of_json,
)
from lutumpy.tools.json_schema import JsonSchema, SchemaFailure, SchemaMismatch
from lutumpy.tools.results import content_parts
from lutumpy.tools.schema_failures import Mended, mend_values, read_value, write_report

__all__ = ["SchemaTool"]


class SchemaTool(CompiledTool):
    """A tool whose schema became known at run time.

    Args:
        definition: What adapters see; its schema is wrapped where `wrapped` says so.
        schema: The declared schema, which validates.
        wrapped: Whether the schema that is sent holds the declared one under `input`.
        run: The code of the tool, if there is any.
        validate: Checks or cleans arguments that fit the schema.
        output_schema: What results have to fit; `None` for anything that can be sent.

    Attributes:
        shared: What is made once for all toolsets that have the tool, by its makers.
    """

    __slots__ = ("_validate", "output_schema", "schema", "shared")

    is_dynamic = True

    def __init__(
        self,
        *,
        definition: ToolDef,
        schema: JsonSchema,
        wrapped: bool,
        run: Callable[..., Any] | None,
        validate: Callable[[dict[str, Any]], dict[str, Any]] | None,
        output_schema: JsonSchema | None,
    ) -> None:
        super().__init__(
            definition=definition,
            input_type=DynamicInput,
            output_type=DYNAMIC_OUTPUT,
            adapter=None,
            wrapped=wrapped,
            is_async=run is not None and is_async(run),
            keyword_names={},
        )
        self.schema: JsonSchema = schema
        self.run = run
        self.output_schema: JsonSchema | None = output_schema
        self.shared: dict[str, Any] = {}
        self._validate = validate
        self.decode: Callable[[str], BaseModel] = (
            self._decode_wrapped if wrapped else self._make_bare_decode()
        )

    def renamed(self, definition: ToolDef) -> SchemaTool:
        """The same tool under another definition; what was compiled is shared."""
        return SchemaTool(
            definition=definition,
            schema=self.schema,
            wrapped=self.wrapped,
            run=self.run,
            validate=self._validate,
            output_schema=self.output_schema,
        )

    @property
    def is_runnable(self) -> bool:
        return self.run is not None

    @property
    def has_check(self) -> bool:
        """Whether it has a check of its own, which may make of arguments what it likes."""
        return self._validate is not None

    # --- reading calls --------------------------------------------------------------------------

    def _make_bare_decode(self) -> Callable[[str], DynamicInput]:
        """What reads arguments that fit, and raises for all others. Made once: it is the hot path.

        It raises `ValidationError` for what isn't a JSON object, `SchemaMismatch`, and what the
        tool's own check raises.
        """
        is_valid, read, make = self.schema.is_valid, values_of_json, input_of_values

        def decode(text: str) -> DynamicInput:
            values = read(text)
            if is_valid(values):
                return make(values)
            raise SchemaMismatch(values)

        if self._validate is None:
            return decode
        return lambda text: input_of_values(self._clean(decode(text).values))

    def _decode_wrapped(self, text: str) -> DynamicInput:
        values = values_of_json(text)
        # The wrapped form first: that is what was offered.
        looks_wrapped = len(values) == 1 and "input" in values
        inner = values["input"] if looks_wrapped else None
        if type(inner) is dict and self.schema.is_valid(inner):
            return input_of_values(self._clean(inner))
        if looks_wrapped and not self._names_input():
            raise SchemaMismatch(values)
        if self.schema.is_valid(values):
            return input_of_values(self._clean(values))
        raise SchemaMismatch(values)

    def _names_input(self) -> bool:
        """Whether the declared schema has a property `input` of its own.

        One that doesn't, and takes properties of any name, would take the wrapped form of
        arguments that fit nothing.
        """
        document = self.schema.document
        return names_property(document, document, "input")

    def _clean(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The values as the tool's own check gives them."""
        if self._validate is None:
            return dict(values)
        cleaned: Any = self._validate(dict(values))
        if inspect.iscoroutine(cleaned):
            cleaned.close()
        if not isinstance(cleaned, dict):
            raise TypeError(f"validate= gave {type(cleaned).__name__}, not a dict")
        if not all(isinstance(name, str) for name in cleaned):
            raise TypeError("validate= gave a dict with a name that is not a text")
        return dict(cleaned)

    def repair_by_schema(self, text: str, error: Exception) -> Decoded | Refused | None:
        if not isinstance(error, SchemaMismatch):
            return None
        values, prefix = self._find_meant(error.values)
        mended = self._mend(values)
        if not isinstance(mended, Mended):
            located = [failure._replace(path=(*prefix, *failure.path)) for failure in mended]
            return Refused("invalid_arguments", write_report(located))
        repairs = tuple([r._replace(path=_prefixed(r.path, prefix)) for r in mended.repairs])
        try:
            return Decoded(input_of_values(self._clean(mended.value)), repairs)
        except Exception as failed:
            return explain_raised_check(self, failed)

    def _find_meant(self, values: dict[str, Any]) -> tuple[Any, Path]:
        """The form of the arguments that was meant, and where it is in what the model wrote."""
        if self.wrapped and values.keys() == {"input"}:
            return values["input"], ("input",)
        return values, ()

    def _mend(self, values: Any) -> Mended | list[SchemaFailure]:
        """The arguments with the edits that the schema allows; else what is wrong with them."""
        if type(values) is dict:
            return mend_values(self.schema, values)
        mended = self._mend_text(values) if type(values) is str else None
        return mended or [SchemaFailure((), "Input should be an object")]

    def _mend_text(self, text: str) -> Mended | None:
        """What is under `input` as a text that holds the object (rule C5)."""
        try:
            value = read_value(text)
        except ValueError:
            return None
        fits = type(value) is dict and self.schema.is_valid(value)
        return Mended(value, (ArgumentRepair("", "json_string"),)) if fits else None

    # --- inputs that a program makes ------------------------------------------------------------

    def make_input(self, metadata: ToolMetadata, values: Mapping[str, Any]) -> DynamicInput:
        try:
            copied: dict[str, Any] = copy_json(values, "arguments")
        except (TypeError, ValueError) as error:
            raise InvalidArgumentsError(metadata.name, metadata.id, str(error)) from None
        failures = self.schema.failures(copied)
        if failures:
            raise InvalidArgumentsError(metadata.name, metadata.id, write_report(failures))
        # A check may change what it is given.
        before = "" if self._validate is None else json_values.encode_text(copied)
        try:
            made = input_of_values(self._clean(copied))
        except ToolError as error:
            raise InvalidArgumentsError(metadata.name, metadata.id, str(error)) from error
        except Exception as error:
            text = "they were refused by this tool's own check"
            raise InvalidArgumentsError(metadata.name, metadata.id, text) from error
        if self._validate is not None:
            carry_checked(made, self._identity, before)
        return made

    def accept_input(self, metadata: ToolMetadata, value: Any, held: Any) -> Any:
        if not isinstance(value, DynamicInput):
            return super().accept_input(metadata, value, held)
        # Compared as JSON: to Python, `True` equals 1. The one that is held may have been changed
        # in place.
        if value is not held and _encode(value) == _encode(held):
            return value
        made_of = None if self._validate is None else find_checked(value, self._identity)
        if made_of is not None and made_of.is_kept(value.values):
            return value
        values = self._values_to_check(metadata, value.values, held)
        try:
            made = self.make_input(metadata, values)
        except InvalidArgumentsError as error:
            text = f"it doesn't fit the tool's schema: {error.detail}"
            raise InvalidArgumentsError(metadata.name, metadata.id, text) from error
        return value if self._validate is None else made

    def values_to_edit(self, metadata: ToolMetadata, input: Any) -> dict[str, Any]:
        return dict(self._values_to_check(metadata, input.values, input))

    def _values_to_check(
        self, metadata: ToolMetadata, values: Mapping[str, Any], held: DynamicInput
    ) -> Mapping[str, Any]:
        """What the check is given for `values`, which somebody made of those of `held`."""
        if self._validate is None:
            return values
        checked = find_checked(held, self._identity)
        if checked is None:
            checked = self._check_again(metadata)
            if checked is None or not checked.is_kept(held.values):
                return values  # it was edited before, and loaded since
        return checked.before_check(values)

    def _check_again(self, metadata: ToolMetadata) -> CheckedValues | None:
        """What the check was given for what the model wrote, and gives."""
        decoded = decode_arguments(self._without_check(), metadata.arguments)
        if not isinstance(decoded, Decoded):
            return None
        before = _encode(decoded.input).decode()
        try:
            after = self._clean(decoded.input.values)
        except Exception:
            return None
        return CheckedValues(self._identity, before, canonical_values(after))

    @property
    def _identity(self) -> str:
        """What tells its check from those of other tools, also where the tool is declared anew."""
        return f"{self.definition.name} {self.digest}"

    def _without_check(self) -> SchemaTool:
        if self._validate is None:
            return self
        return SchemaTool(
            definition=self.definition,
            schema=self.schema,
            wrapped=self.wrapped,
            run=None,
            validate=None,
            output_schema=None,
        )

    def arguments(self, input: Any) -> dict[str, Any]:
        return dict(input.values)

    def argument_names(self, input: Any) -> tuple[str, ...]:
        return tuple(input.values)

    def invoke(self, input: Any, skipped: Mapping[str, Any]) -> Any:
        if self.run is None:
            raise TypeError(
                f"tool {self.definition.name!r} was declared without run=; it has no code to run"
            )
        return self.run(dict(input.values), **skipped)

    # --- results --------------------------------------------------------------------------------

    def encode_output(self, value: Any) -> str:
        return value if isinstance(value, str) else json_values.encode(value).decode()

    def check_type(self, value: Any) -> str | None:
        schema = self.output_schema
        if content_parts(value) is not None:
            if schema is None:
                return None
            return "its output schema takes a JSON value, not content parts"
        try:
            copied = copy_json(value, "the output")
        except (TypeError, ValueError) as error:
            return str(error)
        failures = [] if schema is None else schema.failures(copied)
        if not failures:
            return None
        return f"it doesn't fit the output schema: {write_report(failures)}"


def _encode(input: Any) -> bytes:
    return json_values.encode(input.values)


def _prefixed(path: str, prefix: Path) -> str:
    """`path`, as a receipt has it, below `prefix`."""
    above = spell_path(prefix)
    separator = "." if above and path and not path.startswith("[") else ""
    return f"{above}{separator}{path}"
