"""One declared tool, ready for decoding calls and encoding results."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from types import NoneType
from typing import Any, TypeGuard, cast

from pydantic import BaseModel, TypeAdapter, ValidationError

from lutumpy.core import json_values
from lutumpy.tools.closed import closed_validator
from lutumpy.tools.definition import ToolDef
from lutumpy.tools.numbers import NoJsonNumber, refuse_silent_numbers

__all__ = ["CompiledTool"]

_NOTHING: Mapping[str, Any] = {}
_MAKING = threading.RLock()


class CompiledTool:
    """What a decorator worked out about one tool; made once, never changed.

    With `closed`, unknown arguments are refused where the class of the input says nothing of them (rule D10).

    Attributes:
        definition: What adapters see.
        output_type: What results are checked against; `NoneType` for a tool that returns nothing.
        adapter: Validates and serializes results.
        function: The user's function; `None` when the tool was declared by its input class.
        is_async: Whether what `function` returns has to be awaited.
        skipped: Parameters of `function` that the model doesn't see.
        skip_types: Their annotations.
        keyword_names: The keyword for each field of `input_type`.
        positional_only: Parameters of `function` that can't be passed by name, in order.
        wrapped: Whether the schema holds the input under the property `input` (rule D6).
        validate_bare: Reads argument text that isn't wrapped; made when the first call comes.
        decode: Reads argument text (JSON) into the input, without repair. Raises `ValidationError`, `TypeError` for
            what is no object, and whatever the user's validators raise. Takes the wrapped form only where the tool
            is wrapped.
    """

    __slots__ = (
        "_closed",
        "_direct",
        "_input_type",
        "_make_input",
        "_rooted",
        "adapter",
        "decode",
        "definition",
        "function",
        "is_async",
        "keyword_names",
        "output_type",
        "positional_only",
        "skip_types",
        "skipped",
        "validate_bare",
        "wrapped",
    )

    decode: Callable[[str], BaseModel]
    validate_bare: Callable[[str], BaseModel]

    def __init__(
        self,
        *,
        definition: ToolDef,
        input_type: type[BaseModel] | Callable[[], type[BaseModel]],
        output_type: Any,
        adapter: TypeAdapter[Any],
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
        self.adapter: TypeAdapter[Any] = adapter
        self._closed: bool = closed
        self._rooted: bool = False
        self._direct: bool = False
        self._input_type: type[BaseModel] | None = None
        self._make_input: Callable[[], type[BaseModel]] | None = None
        self.decode = self._first_decode
        if isinstance(input_type, type):
            self._take_input(input_type)
        else:
            self._make_input = input_type

    @property
    def input_type(self) -> type[BaseModel]:
        """The model of the arguments: the user's class, or one made from the signature when it is first needed."""
        return self._made() if self._input_type is None else self._input_type

    def _made(self) -> type[BaseModel]:
        with (
            _MAKING
        ):  # two threads would make two classes, and an input of one is none of the other
            if self._input_type is None and self._make_input is not None:
                self._take_input(self._make_input())
                self._make_input = None
        return cast("type[BaseModel]", self._input_type)

    def _first_decode(self, text: str) -> BaseModel:
        self._make_decode(self.input_type)
        return self.decode(text)

    def _make_decode(self, input_type: type[BaseModel]) -> None:
        """Put the validators in place: they are made when the first call comes, since most tools see none in a run."""
        validator = (
            closed_validator(input_type) if self._closed else input_type.__pydantic_validator__
        )
        self.validate_bare = validator.validate_json
        if self.wrapped:
            validate = closed_validator(input_type, wrapped=True).validate_json
            self.decode = lambda text: validate(text)["input"]
        else:
            takes_objects_only = _takes_objects_only(input_type)
            self.decode = (
                self.validate_bare if takes_objects_only else _of_objects(self.validate_bare)
            )

    def _take_input(self, input_type: type[BaseModel]) -> None:
        # Asked of the class: importing `RootModel` makes pydantic build a model, a third of what importing us costs.
        self._rooted = input_type.__pydantic_root_model__
        self._input_type = input_type
        # The fields of the input are the parameters of the function, one for one.
        self._direct = (
            self.function is not None
            and not self.positional_only
            and not self._rooted
            and input_type.model_config.get("extra") != "allow"
            and all(field == keyword for field, keyword in self.keyword_names.items())
        )

    def __repr__(self) -> str:
        return f"<CompiledTool {self.definition.name}>"

    def arguments(self, input: BaseModel) -> dict[str, Any]:
        """`input` as keyword arguments: the values themselves, not a dump of them.

        A `RootModel` gives the fields of the model it holds, or `{"root": value}` when it holds something else.
        """
        if self._rooted:
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

    def invoke(self, input: BaseModel, skipped: Mapping[str, Any]) -> Any:
        """Run the tool's function on `input`; what it returns may have to be awaited (`is_async`).

        Raises:
            TypeError: The tool has no function, or `skipped` isn't made of its `Skip` parameters.
        """
        if self._direct and not skipped and len(input.__dict__) == len(self.keyword_names):
            return cast("Any", self.function)(**input.__dict__)
        function = self.own_function()
        positional, keywords = self.call_arguments(input, skipped)
        return function(*positional, **keywords)

    def own_function(self) -> Callable[..., Any]:
        """The tool's function; `TypeError` when it was declared by its input class."""
        if self.function is None:
            raise TypeError(
                f"tool {self.definition.name!r} was declared by its input class; it has no function to run"
            )
        return self.function

    def call_arguments(
        self, input: BaseModel, skipped: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        """`input` and `skipped` as the tool's function takes them: by position where it must be, else by name.

        Raises:
            TypeError: `skipped` isn't made of the tool's `Skip` parameters.
        """
        if strangers := skipped.keys() - self.skipped:
            names = ", ".join(sorted(strangers))
            raise TypeError(f"tool {self.definition.name!r} has no Skip parameter {names}")
        keywords = {**self.arguments(input), **skipped}
        positional: list[Any] = []
        for name in self.positional_only:
            if (
                name not in keywords
            ):  # a skipped one that was left out; the function's default, or its TypeError
                break
            positional.append(keywords.pop(name))
        return positional, keywords

    def argument_names(self, input: BaseModel) -> tuple[str, ...]:
        """The names that `arguments` may have: all parameters of a function, but those marked `Skip`."""
        return tuple(self.arguments(input) if self._rooted else self.keyword_names.values())

    def encode_output(self, value: Any) -> str:
        """`value` as the text of a tool result (rule K7): a `str` as it is, anything else as compact JSON.

        Raises:
            NoJsonNumber: It holds NaN or an infinity, and its type doesn't say how to write them (rule C2b).
            Exception: The value can't be serialized; `check_output` says so beforehand.
        """
        if isinstance(value, str):
            return str.__str__(value.value if isinstance(value, Enum) else value)
        adapter = self.adapter
        try:
            data = adapter.dump_json(value, by_alias=True, warnings=False)
        except ValueError:
            # Lone surrogates, as file names and old encodings bring them, are no reason to lose a tool's result.
            data = json_values.encode(
                adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
            )
            refuse_silent_numbers(adapter, value, data)
        else:
            if b"null" in data:  # pydantic writes NaN so, when nobody says how
                refuse_silent_numbers(adapter, value, data)
        return data.decode()

    def check_type(self, value: Any) -> str | None:
        """Why `value` doesn't fit the declared output type (rule K3), or `None` when it does.

        It fits when pydantic's strict mode accepts it, a dictionary not counting as an instance of a model. The reason
        never holds the text of an exception.
        """
        if self.output_type is NoneType:
            return (
                None if value is None else f"this tool returns nothing, not {type(value).__name__}"
            )
        try:
            accepted = self.adapter.validate_python(value, strict=True)
        except ValidationError as error:
            return f"{_type_name(self.output_type)} was expected, not {type(value).__name__}{_first(error)}"
        except Exception:
            return f"a {type(value).__name__} could not be checked against {_type_name(self.output_type)}"
        if accepted is not value and (found := _made_up(value, accepted)) is not None:
            where, wanted, given = found
            aside = f" at {'.'.join(map(str, where))}" if where else ""
            return f"{wanted} was expected{aside}, not {given}"
        return None

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
    """Whether the model's validator refuses every JSON value but objects by itself, and before any code of the user's."""
    schema: Any = input_type.__pydantic_core_schema__
    if schema["type"] == "definitions":
        schema = schema["schema"]
    return (
        schema["type"] == "model"
        and schema["schema"]["type"] == "model-fields"
        and not schema.get("custom_init")
    )


def _of_objects(validate: Callable[[str], BaseModel]) -> Callable[[str], BaseModel]:
    """`validate` for a model that might make something of other values, which arguments never are (rule C2)."""

    def decode(text: str) -> BaseModel:
        if not text.lstrip().startswith("{"):
            raise TypeError("the arguments are no JSON object")
        return validate(text)

    return decode


def _made_up(value: Any, accepted: Any) -> tuple[tuple[Any, ...], str, str] | None:
    """Where pydantic made a model out of something else, which strict mode lets it do: the place, the model, what it was.

    An instance goes through validation as it is, so whatever is identical needs no second look.
    """
    if isinstance(accepted, BaseModel):
        return (
            None
            if isinstance(value, BaseModel)
            else ((), type(accepted).__name__, type(value).__name__)
        )
    pairs: Iterable[tuple[Any, Any, Any]] = ()
    if _is_dict(accepted) and _is_dict(value):
        pairs = ((key, value.get(key), entry) for key, entry in accepted.items())
    elif _is_sequence(accepted) and _is_sequence(value):
        pairs = zip(range(len(value)), value, accepted, strict=False)
    for key, old, new in pairs:
        if old is not new and (found := _made_up(old, new)) is not None:
            return (key, *found[0]), found[1], found[2]
    return None


def _is_dict(value: Any) -> TypeGuard[dict[Any, Any]]:
    return isinstance(value, dict)


def _is_sequence(value: Any) -> TypeGuard[list[Any] | tuple[Any, ...]]:
    return isinstance(value, (list, tuple))


def _type_name(output_type: Any) -> str:
    return output_type.__name__ if isinstance(output_type, type) else str(output_type)


def _first(error: ValidationError) -> str:
    """Where the first problem lies inside a value of the right kind; empty for the value itself."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    if not first["loc"]:
        return ""
    message = (
        "refused by a validator"
        if first["type"] in ("value_error", "assertion_error")
        else first["msg"]
    )
    return f"; {'.'.join(map(str, first['loc']))}: {message}"
