"""One declared tool, ready for decoding calls and encoding results."""

# What is hard here
# -----------------
# A program may declare hundreds of tools and see calls of three, so whatever isn't needed for an
# offer is made when the first call comes, and then stays:
#
#   part               made when                         by
#   ----------------  --------------------------------  -------------------------------------------
#   definition         the tool is declared              the caller of `CompiledTool(...)`
#   input_type         at once for an input class;       `_make_input_type`, under a lock: two
#                      at the first need for a function  threads would make two classes, and an
#                                                        input of one is not one of the other
#   decode,            the first call is decoded         `_make_decode`; until then `decode` is
#   validate_bare                                        `_decode_first`
#
# `decode` is an attribute and not a method, since it is pydantic's own `validate_json` wherever
# that does the whole job: then nothing of ours is between the text and the validated input.
#
# A result is checked against the output type in strict mode (rule K3), with one exception that
# pydantic doesn't make: a dictionary is not an instance of a model. Pydantic accepts it even in
# strict mode, so what it accepted is compared with what was given (`_find_conversion`).

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any, ClassVar, TypeGuard, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from lutumpy.errors import InvalidArgumentsError
from lutumpy.plain import json_values
from lutumpy.plain.preview import shorten
from lutumpy.plain.values import dataclass
from lutumpy.tools.closed import closed_validator
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.numbers import NoJsonNumber, refuse_silent_numbers

if TYPE_CHECKING:
    from lutumpy.core.items import ToolMetadata
    from lutumpy.tools.skip_values import SkipValues

__all__ = ["CompiledTool"]

# In characters, the mark of a cut text included.
_PLACE_LENGTH = 200
_MESSAGE_LENGTH = 500
_NOTHING: Mapping[str, Any] = {}
_MAKING = threading.RLock()


class CompiledTool:
    """What a decorator found out about one tool. Made once; only what it makes later is added.

    With `closed`, unknown arguments are refused where the class of the input says nothing of them
    (rule D10).

    Attributes:
        definition: What adapters see.
        output_type: What results are checked against; `NoneType` for a tool that returns nothing.
        adapter: Validates and serializes results; a `SchemaTool` has none, and needs none.
        function: The user's function; `None` when the tool was declared by its input class.
        is_async: Whether what `function` returns has to be awaited.
        skipped: Parameters of `function` that the model doesn't see.
        skip_types: Their annotations.
        keyword_names: The keyword for each field of `input_type`.
        positional_only: Parameters of `function` that can't be passed by name, in order.
        wrapped: Whether the schema holds the input under the property `input` (rule D6).
        validate_bare: Reads argument text that isn't wrapped; there once `decode` was called.
        decode: Reads argument text (JSON) into the input, without repair. Raises `ValidationError`,
            `TypeError` for what is not an object, and whatever the user's validators raise. Takes
            the wrapped form only where the tool is wrapped.
    """

    __slots__ = (
        "_closed",
        "_digest",
        "_fields_are_parameters",
        "_input_type",
        "_is_root_model",
        "_make_input",
        "_skip_values",
        "adapter",
        "decode",
        "definition",
        "function",
        "is_async",
        "keyword_names",
        "output_type",
        "positional_only",
        "run",
        "skip_types",
        "skipped",
        "validate_bare",
        "wrapped",
    )

    decode: Callable[[str], BaseModel]
    validate_bare: Callable[[str], BaseModel]

    run: Callable[..., Any] | None
    """The code of a tool that was declared by a JSON Schema; `None` for others, and without one."""

    is_dynamic: ClassVar[bool] = False
    """Whether it was declared by a JSON Schema (`SchemaTool`): then edits are checked by it."""

    is_text: ClassVar[bool] = False
    """Whether its input is a text (`TextTool`), and not a model of its arguments."""

    def __init__(
        self,
        *,
        definition: ToolDef,
        input_type: type[BaseModel] | Callable[[], type[BaseModel]],
        output_type: Any,
        adapter: TypeAdapter[Any] | None,
        wrapped: bool,
        function: Callable[..., Any] | None = None,
        is_async: bool = False,
        skip_types: Mapping[str, Any] | None = None,
        keyword_names: Mapping[str, str] | None = None,
        positional_only: tuple[str, ...] = (),
        closed: bool = False,
    ) -> None:
        self.definition: ToolDef = definition
        self.output_type: Any = output_type
        self.function: Callable[..., Any] | None = function
        self.is_async: bool = is_async
        self.skip_types: Mapping[str, Any] = skip_types or _NOTHING
        self.skipped: frozenset[str] = frozenset(self.skip_types)
        if keyword_names is None:
            keyword_names = {name: name for name in getattr(input_type, "model_fields", ())}
        self.keyword_names: dict[str, str] = dict(keyword_names)
        self.positional_only: tuple[str, ...] = positional_only
        self.wrapped: bool = wrapped
        self.adapter: TypeAdapter[Any] = cast("TypeAdapter[Any]", adapter)
        self.run = None
        self._closed: bool = closed
        self._digest: str | None = None
        self._skip_values: SkipValues | None = None  # made when the first value is given
        self._is_root_model: bool = False
        self._fields_are_parameters: bool = False
        self._input_type: type[BaseModel] | None = None
        self._make_input: Callable[[], type[BaseModel]] | None = None
        self.decode = self._decode_first
        if isinstance(input_type, type):
            self._set_input_type(input_type)
        else:
            self._make_input = input_type

    @property
    def digest(self) -> str:
        """The digest of its definition, worked out once."""
        if self._digest is None:
            self._digest = self.definition.digest
        return self._digest

    @property
    def input_type(self) -> type[BaseModel]:
        """The model of the arguments: the user's class, or one made of the signature later."""
        return self._make_input_type() if self._input_type is None else self._input_type

    def _make_input_type(self) -> type[BaseModel]:
        with _MAKING:
            if self._input_type is None and self._make_input is not None:
                self._set_input_type(self._make_input())
                self._make_input = None
        return cast("type[BaseModel]", self._input_type)

    def _set_input_type(self, input_type: type[BaseModel]) -> None:
        # The class is asked, not `issubclass(..., RootModel)`: importing `RootModel` makes pydantic
        # build a model, a third of what importing this library costs.
        self._is_root_model = input_type.__pydantic_root_model__
        self._input_type = input_type
        self._fields_are_parameters = (
            self.function is not None
            and not self.positional_only
            and not self._is_root_model
            and input_type.model_config.get("extra") != "allow"
            and all(field == keyword for field, keyword in self.keyword_names.items())
        )

    def _decode_first(self, text: str) -> BaseModel:
        self._make_decode(self.input_type)
        return self.decode(text)

    def _make_decode(self, input_type: type[BaseModel]) -> None:
        """Set `validate_bare`, and `decode` in place of `_decode_first`."""
        validator = (
            closed_validator(input_type) if self._closed else input_type.__pydantic_validator__
        )
        self.validate_bare = validator.validate_json
        if self.wrapped:
            validate = closed_validator(input_type, wrapped=True).validate_json
            self.decode = lambda text: validate(text)["input"]
        elif _takes_objects_only(input_type):
            self.decode = self.validate_bare
        else:
            self.decode = _refuse_non_objects(self.validate_bare)

    def repair_by_schema(self, text: str, error: Exception) -> Any:
        """What a tool with a schema of its own makes of arguments that `decode` refused.

        `None` here, where pydantic's errors say it (`tools/arguments.py`).
        """
        return None

    def text_problem(self, text: str) -> str | None:
        """Why the free text of a call can't be the input, in words for the model; `None` if it can.

        The calls of most tools are JSON objects, and no free text is their input.
        """
        return f"{self.definition.name} takes one JSON object, and not free text."

    def __repr__(self) -> str:
        return f"<CompiledTool {self.definition.name}>"

    # --- the input as arguments -----------------------------------------------------------------

    def arguments(self, input: BaseModel) -> dict[str, Any]:
        """`input` as keyword arguments: the values themselves, not a dump of them.

        A `RootModel` gives the fields of the model it holds, or `{"root": value}` when it holds
        something else.
        """
        if self._is_root_model:
            root = cast("Any", input).root
            return dict(root.__dict__) if isinstance(root, BaseModel) else {"root": root}
        values = input.__dict__
        keywords = {
            keyword: values[field]
            for field, keyword in self.keyword_names.items()
            if field in values
        }
        if extra := input.__pydantic_extra__:  # a model that takes fields of any name
            keywords.update(extra)
        return keywords

    def argument_names(self, input: BaseModel) -> tuple[str, ...]:
        """The names that `arguments` may have: a function's parameters, but those marked `Skip`."""
        if self._is_root_model:
            return tuple(self.arguments(input))
        return tuple(self.keyword_names.values())

    def call_arguments(
        self, input: BaseModel, skipped: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """`input` and `skipped` as the function takes them: by name where it takes names.

        Raises:
            TypeError: `skipped` names something other than the tool's `Skip` parameters.
        """
        self.check_skip_names(skipped)
        keywords = {**self.arguments(input), **skipped}
        positional: list[Any] = []
        for name in self.positional_only:
            if name not in keywords:
                # A skipped one that was left out: the function has a default, or raises TypeError.
                break
            positional.append(keywords.pop(name))
        return positional, keywords

    def check_skip_names(self, skipped: Mapping[str, Any]) -> None:
        """See that values are for `Skip` parameters of this tool; raises `TypeError`."""
        if strangers := skipped.keys() - self.skipped:
            has = f"; it has {', '.join(self.skip_types)}" if self.skip_types else ""
            raise TypeError(
                f"tool {self.definition.name!r} has no Skip parameter "
                f"{', '.join(sorted(strangers))}{has}"
            )

    def check_skip_types(self, skipped: Mapping[str, Any]) -> None:
        """See that values for `Skip` parameters of this tool are of their types; raises
        `TypeError`.
        """
        if skipped:
            if self._skip_values is None:
                from lutumpy.tools.skip_values import SkipValues

                self._skip_values = SkipValues(
                    self.definition.name, self.own_function(), self.skip_types
                )
            self._skip_values.check_types(skipped)

    def make_input(self, metadata: ToolMetadata, values: Mapping[str, Any]) -> BaseModel:
        """An input of values that a program made, by the names of fields or their aliases.

        Args:
            metadata: The call that it is for.
            values: The values.

        Raises:
            ValidationError: They don't fit.
            InvalidArgumentsError: The same, where a JSON Schema says so (`SchemaTool`).
        """
        return self.input_type.model_validate(values, by_alias=True, by_name=True)

    def accept_input(self, metadata: ToolMetadata, value: Any, held: Any) -> Any:
        """The input that a call gets for `value`, made by somebody in place of the one it `held`.

        Raises:
            InvalidArgumentsError: It can't be the input; `detail` says why in a sentence.
        """
        if isinstance(value, self.input_type):
            return value
        problem = f"the tool takes {self.input_type.__name__}"
        raise InvalidArgumentsError(metadata.name, metadata.id, problem)

    def values_to_edit(self, metadata: ToolMetadata, input: Any) -> dict[str, Any]:
        """The values by argument name that an edit of `input` begins with."""
        return self.arguments(input)

    # --- the function ---------------------------------------------------------------------------

    @property
    def has_parameters(self) -> bool:
        """Whether its input is the parameters of a function, so that they can be used by name."""
        return self.function is not None

    @property
    def is_runnable(self) -> bool:
        """Whether it has code of its own, that `invoke` runs."""
        return self.function is not None

    def invoke(self, input: BaseModel, skipped: Mapping[str, Any]) -> Any:
        """Run the tool's function on `input`; what it returns may have to be awaited (`is_async`).

        Raises:
            TypeError: The tool has no function, or `skipped` doesn't fit its `Skip` parameters. It
                was not run then.
        """
        values = input.__dict__
        if self._fields_are_parameters and not skipped and len(values) == len(self.keyword_names):
            return cast("Any", self.function)(**values)
        function = self.own_function()
        positional, keywords = self.call_arguments(input, skipped)
        self.check_skip_types(skipped)
        return function(*positional, **keywords)

    def own_function(self) -> Callable[..., Any]:
        """The tool's function; `TypeError` when it was declared by its input class."""
        if self.function is None:
            raise TypeError(
                f"tool {self.definition.name!r} was declared by its input class; it has no "
                "function to run"
            )
        return self.function

    # --- results --------------------------------------------------------------------------------

    def encode_output(self, value: Any) -> str:
        """`value` as the text of a tool result (rule K7): a `str` as it is, else compact JSON.

        Raises:
            NoJsonNumber: It holds NaN or an infinity, and its type doesn't say how to write them
                (rule C2b).
            Exception: The value can't be serialized; `check_output` says so beforehand.
        """
        if isinstance(value, str):
            return str.__str__(value.value if isinstance(value, Enum) else value)
        adapter = self.adapter
        try:
            data = adapter.dump_json(value, by_alias=True, warnings=False)
        except ValueError:
            # Lone surrogates, which come from file names and old encodings, are not a reason to
            # lose a tool's result: our encoder writes them in a way that requests can carry.
            plain = adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
            data = json_values.encode(plain)
            refuse_silent_numbers(adapter, value, data)
        else:
            if b"null" in data:  # pydantic writes NaN so, when nobody says how
                refuse_silent_numbers(adapter, value, data)
        return data.decode()

    def check_type(self, value: Any) -> str | None:
        """Why `value` doesn't fit the declared output type (rule K3), or `None` when it does.

        It fits when pydantic's strict mode accepts it, a dictionary not counting as an instance of
        a model. The reason never holds the text of an exception.
        """
        kind = type(value).__name__
        if self.output_type is NoneType:
            return None if value is None else f"this tool returns nothing, not {kind}"
        try:
            accepted = self.adapter.validate_python(value, strict=True)
        except ValidationError as error:
            wanted = _type_name(self.output_type)
            return f"{wanted} was expected, not {kind}{_describe_inner_error(error)}"
        except Exception:
            return f"a {kind} could not be checked against {_type_name(self.output_type)}"
        if accepted is value:
            return None
        conversion = _find_conversion(value, accepted)
        if conversion is None:
            return None
        path = shorten(".".join(map(str, conversion.path)), _PLACE_LENGTH)
        place = f" at {path}" if path else ""
        return f"{conversion.model} was expected{place}, not {conversion.instead}"

    def check_output(self, value: Any) -> str | None:
        """As `check_type`, and the value must be serializable too."""
        return self.check_type(value) or self.try_encode(value)[1]

    def try_encode(self, value: Any) -> tuple[str, str | None]:
        """The text of a result, or why there is none."""
        try:
            return self.encode_output(value), None
        except NoJsonNumber as error:
            return "", str(error)
        except Exception:
            return "", f"a {type(value).__name__} that can't be written as JSON"


def _takes_objects_only(input_type: type[BaseModel]) -> bool:
    """Whether the model's validator refuses every JSON value but objects, before any user code."""
    schema: Any = input_type.__pydantic_core_schema__
    if schema["type"] == "definitions":
        schema = schema["schema"]
    return (
        schema["type"] == "model"
        and schema["schema"]["type"] == "model-fields"
        and not schema.get("custom_init")
    )


def _refuse_non_objects(validate: Callable[[str], BaseModel]) -> Callable[[str], BaseModel]:
    """`validate` for a model that might accept more than objects, which arguments are (rule C2)."""

    def decode(text: str) -> BaseModel:
        if not text.lstrip().startswith("{"):
            raise TypeError("the arguments are not a JSON object")
        return validate(text)

    return decode


@dataclass(frozen=True, slots=True)
class _Conversion:
    """A model that pydantic made out of something else.

    Attributes:
        path: Keys and positions that lead to it.
        model: Its class's name.
        instead: The class's name of what was there.
    """

    path: tuple[Any, ...]
    model: str
    instead: str


def _find_conversion(value: Any, accepted: Any) -> _Conversion | None:
    """The first model inside `accepted` that was something else in `value`, if there is one.

    Validation leaves an instance as it is, so whatever is identical on both sides was one already.
    """
    if isinstance(accepted, BaseModel):
        if isinstance(value, BaseModel):
            return None
        return _Conversion((), type(accepted).__name__, type(value).__name__)
    pairs: Iterable[tuple[Any, Any, Any]] = ()
    if _is_dict(accepted) and _is_dict(value):
        pairs = ((key, value.get(key), entry) for key, entry in accepted.items())
    elif _is_sequence(accepted) and _is_sequence(value):
        pairs = zip(range(len(value)), value, accepted, strict=False)
    for key, old, new in pairs:
        if old is not new and (conversion := _find_conversion(old, new)) is not None:
            return replace(conversion, path=(key, *conversion.path))
    return None


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_sequence(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _type_name(output_type: Any) -> str:
    name = output_type.__name__ if isinstance(output_type, type) else str(output_type)
    return shorten(name, _PLACE_LENGTH)


def _describe_inner_error(error: ValidationError) -> str:
    """Where the first error lies inside a value of the right kind; empty for the value itself."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if not first["loc"]:
        return ""
    # The messages of these two quote the user's exception.
    is_quoted = first["type"] in ("value_error", "assertion_error")
    message = "refused by a validator" if is_quoted else first["msg"]
    place = shorten(".".join(map(str, first["loc"])), _PLACE_LENGTH)
    return f"; {place}: {shorten(message, _MESSAGE_LENGTH)}"
