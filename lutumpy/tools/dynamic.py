"""`DynamicTool`: a tool that is declared at run time by a name, a description and a JSON Schema."""

# What is sent and what validates are nearly the same schema (rule Y1):
#
#   the declared schema                    what is sent
#   -------------------------------------  ----------------------------------------------------
#   an object                              as declared; `type` and `properties` are filled in
#   has a `$ref` at its root               what it names, with what is beside the reference; the
#                                          lines of this table hold for that
#   has `anyOf`, `oneOf`, `allOf` at its   an object whose one property `input` holds it (D6);
#   root                                   definitions stay at the root, references lead there
#   anything else                          refused
#
# What validates is always the declared one.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from lutumpy.errors import DeclarationError
from lutumpy.plain.driving import is_async, is_generator
from lutumpy.plain.signatures import signature_of
from lutumpy.rules.schema_references import inline_root
from lutumpy.tools.definition import (
    DEFAULT_MAX_RETRIES,
    DEFAULT_TIMEOUT,
    TOOL_NAME,
    Effect,
    ToolDef,
    ToolOptions,
)
from lutumpy.tools.json_schema import JsonSchema, SchemaError
from lutumpy.tools.provider_settings import check_declared
from lutumpy.tools.schema_tool import SchemaTool
from lutumpy.tools.tool import Tool
from lutumpy.tools.wrapped_schema import wrap_schema

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.tools.dynamic_values import DynamicInput, DynamicOutput

__all__ = ["DynamicTool"]

_UNIONS = ("anyOf", "oneOf", "allOf")


class DynamicTool:
    """A tool whose name, description and JSON Schema become known at run time. A value.

    It is validated like any other tool: arguments that don't fit the schema become an issue that
    names the fields, and never reach `run`. Needs the extra `schema`.

    Args:
        name: What the model calls; letters, digits, `_` and `-`, 64 at most.
        description: What the model sees.
        schema: JSON Schema of the arguments, an object at its root. Its draft is that of its
            `$schema`, 2020-12 where it has none. It is copied.
        run: Code that runs it, async or plain: takes the arguments as a `dict`, and by name what is
            annotated `ToolMetadata` or `IdempotencyKey`, or is a value of the dispatcher's
            context. Gives a JSON value or content parts.
        validate: Called with arguments that fit the schema, where a call is read or edited. Gives
            the arguments that are used, or raises `ToolError` or `ValueError`, which refuses them.
            Of an edit it gets the values that were left as they were before it cleaned them.
        output_schema: JSON Schema of the results; the commit checks them by it.
        check_output: `False` where results are no JSON of `output_schema`, such as a text about
            it; then the schema is only told of.
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first one, for idempotent tools that timed out.
        effect: What running it again does: `"read"`, `"idempotent"` or `"once"`.
        strict: Whether the provider should enforce the schema; `None` leaves it to the adapter.
        provider: What one API takes about the tool beside this, by the API's name.
        annotations: Hints about the tool, such as those of MCP. No model is told.

    Attributes:
        original_name: The name where the tool comes from, if an importer renamed it; else `name`.

    Raises:
        DeclarationError: The name, a schema or an option can't be a tool's. References that lead
            out of a schema are refused, and nothing is fetched.
        ImportError: The extra `schema` isn't installed.
    """

    __slots__ = ("__lutumpy_tool__", "_validate", "original_name")

    def __init__(
        self,
        name: str,
        description: str,
        schema: Mapping[str, Any],
        *,
        run: Callable[..., Any] | None = None,
        validate: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        output_schema: Mapping[str, Any] | None = None,
        check_output: bool = True,
        timeout: float = DEFAULT_TIMEOUT,
        max_retries: int = DEFAULT_MAX_RETRIES,
        effect: Effect = "once",
        strict: bool | None = None,
        provider: Mapping[str, Mapping[str, JsonValue]] | None = None,
        annotations: Mapping[str, JsonValue] | None = None,
    ) -> None:
        _check_name(name)
        if not isinstance(cast("object", description), str):
            raise DeclarationError(f"tool {name!r}: description must be text, not {description!r}")
        _check_code(name, run, validate)
        options = ToolOptions(timeout, max_retries, False, effect, strict, provider, annotations)
        checked = _read_schema(name, "schema", schema)
        returned = None
        if output_schema is not None:
            returned = _read_schema(name, "output_schema", output_schema)
        sent, wrapped = _schema_to_send(name, checked.document)
        if strict:
            _check_strict(name, sent)
        self.original_name: str = name
        self.__lutumpy_tool__: SchemaTool = SchemaTool(
            definition=ToolDef(
                name, description, sent, None if returned is None else returned.document, options
            ),
            schema=checked,
            wrapped=wrapped,
            run=run,
            validate=validate,
            output_schema=returned if check_output else None,
        )
        self._validate = validate
        if options.provider is not None:
            check_declared(self.__lutumpy_tool__, self.definition)

    @property
    def name(self) -> str:
        """What the model calls."""
        return self.__lutumpy_tool__.definition.name

    @property
    def definition(self) -> ToolDef:
        """Name, description, the schema as it is sent, and options."""
        return self.__lutumpy_tool__.definition

    @property
    def schema(self) -> dict[str, Any]:
        """The schema of the arguments as it was declared. Not to be changed."""
        return cast("dict[str, Any]", self.__lutumpy_tool__.schema.document)

    @property
    def run(self) -> Callable[..., Any] | None:
        """The code that runs it, if it has any."""
        return self.__lutumpy_tool__.run

    @property
    def options(self) -> ToolOptions:
        """How it may be run and offered."""
        return self.definition.options

    def renamed(self, name: str) -> DynamicTool:
        """The same tool under another name; `original_name` keeps the first one.

        Raises:
            DeclarationError: It can't be a tool's name.
        """
        _check_name(name)
        tool = self.__lutumpy_tool__
        old = tool.definition
        new = object.__new__(type(self))
        new.original_name = self.original_name
        new._validate = self._validate
        new.__lutumpy_tool__ = tool.renamed(
            ToolDef(name, old.description, old.input_schema, old.output_schema, old.options)
        )
        return new

    def __tool__(self) -> Tool[DynamicInput, DynamicOutput]:
        return Tool(self.__lutumpy_tool__)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, DynamicTool):
            return NotImplemented
        return (
            self.definition == other.definition
            and self.schema == other.schema
            and self.original_name == other.original_name
            and self.run == other.run
            and self._validate == other._validate
        )

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"<DynamicTool {self.name}>"


def _check_name(name: Any) -> None:
    if not isinstance(name, str) or TOOL_NAME.fullmatch(name) is None:
        raise DeclarationError(
            f"{name!r:.100} is not a tool name; a name has 1 to 64 letters, digits, '_' and '-' of "
            "ASCII (rule D1)"
        )


def _check_code(name: str, run: Any, validate: Any) -> None:
    for what, code in (("run", run), ("validate", validate)):
        if code is None:
            continue
        if not callable(code):
            raise DeclarationError(f"tool {name!r}: {what} must be a function, not {code!r:.100}")
        if is_generator(code):
            raise DeclarationError(f"tool {name!r}: {what} is a generator; it must give one value")
    if run is not None:
        try:
            signature_of(run).bind_partial({})
        except TypeError:
            raise DeclarationError(
                f"tool {name!r}: run must take the arguments, a dict, as its first parameter"
            ) from None
        except ValueError:
            pass  # some functions in C don't say what they take
    if validate is not None and is_async(validate):
        raise DeclarationError(
            f"tool {name!r}: validate is async; calls are read without an event loop, so it must "
            "be a plain function"
        )


def _read_schema(name: str, what: str, schema: Any) -> JsonSchema:
    if not isinstance(schema, Mapping):
        raise DeclarationError(
            f"tool {name!r}: {what} must be a JSON Schema, a mapping, not {schema!r:.100}"
        )
    try:
        return JsonSchema(dict(schema))
    except SchemaError as error:
        text = str(error).replace("its schema", f"its {what}", 1)
        raise DeclarationError(f"tool {name!r} can't be declared: {text}") from None


def _schema_to_send(name: str, document: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema that providers see, and whether the declared one is wrapped in it."""
    document = inline_root(document)
    kind = document.get("type", "object")
    if kind not in ("object", ["object"]):
        raise DeclarationError(
            f"tool {name!r} can't be declared: its schema is of the type {kind!r}, and the "
            "arguments of a call are always an object"
        )
    if any(key in document for key in _UNIONS):
        return wrap_schema(document, "input"), True
    if document.get("type") == "object" and "properties" in document:
        return document, False
    return {**document, "type": "object", "properties": document.get("properties", {})}, False


def _check_strict(name: str, schema: dict[str, Any]) -> None:
    from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

    try:
        strict_schema(schema, OPENAI_STRICT)
    except DeclarationError as error:
        raise DeclarationError(f"tool {name!r}: {error}") from None
