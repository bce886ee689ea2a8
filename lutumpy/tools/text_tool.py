"""A tool whose input is a text: how its calls are read, in both forms in which they come.

It takes the place of a compiled function everywhere (`CompiledTool`).
"""

# What is hard here
# -----------------
# One tool is called in two ways, and which of them it was is no secret of the adapters:
#
#   the API                  the tool is sent as      a call is          `ToolMetadata.arguments`
#   -----------------------  -----------------------  -----------------  --------------------------
#   knows tools of a text    a tool of a text, with   the text itself    the text; `is_text` is true
#                            its grammar
#   any other                a function with the one  a JSON object      `{"input": "the text"}`
#                            string `input`
#
# Both forms are read whatever was sent: a history may hold the other one, and a model may follow
# it. `decode` reads the JSON, `text_problem` looks at free text, and both end in the same `str`.
#
# A pattern is checked in both, since a host may ignore the grammar that it was sent. pydantic-core
# does it with Rust's `regex`, the syntax that `Regex` is written in; it has no back-tracking, so a
# text costs time that is linear in its length, whatever the pattern is.

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, cast

from pydantic import BaseModel, TypeAdapter
from pydantic_core import SchemaError, SchemaValidator, ValidationError, core_schema

from lutumpy.core.text_inputs import Regex
from lutumpy.errors import DeclarationError, InvalidArgumentsError
from lutumpy.plain.preview import shorten
from lutumpy.tools.argument_report import show_value
from lutumpy.tools.arguments import Refused
from lutumpy.tools.compiled import CompiledTool
from lutumpy.tools.definition import ToolDef

if TYPE_CHECKING:
    from lutumpy.core.items import ToolMetadata

__all__ = ["INPUT", "TextTool", "compile_pattern"]

INPUT = "input"
"""The name of the text among the arguments, and in the schema of the function."""

# In characters: a model that is refused has to see what it was to match.
_PATTERN_SHOWN = 300

_OBJECT = core_schema.typed_dict_schema(
    {INPUT: core_schema.typed_dict_field(core_schema.str_schema())}, extra_behavior="forbid"
)


class _Mismatch(Exception):
    """The text of a call doesn't match the tool's pattern."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text: str = text


class TextTool(CompiledTool):
    """A function of one text.

    Args:
        definition: What adapters see; `text` is set in it.
        parameter: The function's parameter that takes the text.
    """

    __slots__ = ("_matches", "parameter")

    is_text = True

    def __init__(
        self,
        *,
        definition: ToolDef,
        parameter: str,
        function: Callable[..., Any],
        is_async: bool,
        output_type: Any,
        adapter: TypeAdapter[Any],
        skip_types: Mapping[str, Any],
        positional_only: tuple[str, ...],
    ) -> None:
        super().__init__(
            definition=definition,
            input_type=cast("Any", str),
            output_type=output_type,
            adapter=adapter,
            wrapped=False,
            function=function,
            is_async=is_async,
            skip_types=skip_types,
            keyword_names={INPUT: parameter},
            positional_only=positional_only,
        )
        self.parameter: str = parameter
        wanted = None if definition.text is None else definition.text.format
        pattern = wanted.definition if isinstance(wanted, Regex) else None
        self._matches: Callable[[str], bool] | None = None
        if pattern is not None:
            self._matches = compile_pattern(pattern)
        self.validate_bare: Callable[[str], BaseModel] = SchemaValidator(_OBJECT).validate_json
        self.decode: Callable[[str], BaseModel] = self._make_text_decode()

    def _set_input_type(self, input_type: Any) -> None:
        self._input_type = input_type

    # --- reading calls --------------------------------------------------------------------------

    def _make_text_decode(self) -> Callable[[str], Any]:
        """What reads the text out of a call of the function; it raises for all else."""
        read: Callable[[str], Any] = self.validate_bare
        matches = self._matches
        if matches is None:
            return lambda arguments: read(arguments)[INPUT]

        def decode(arguments: str) -> str:
            text: str = read(arguments)[INPUT]
            if not matches(text):
                raise _Mismatch(text)
            return text

        return decode

    def text_problem(self, text: str) -> str | None:
        if not text.isascii() and _holds_half_a_pair(text):
            return f"{INPUT}: Text should hold no half of a surrogate pair"
        if self._matches is None or self._matches(text):
            return None
        return self._explain_mismatch(text)

    def repair_by_schema(self, text: str, error: Exception) -> Refused | None:
        if not isinstance(error, _Mismatch):
            return None
        return Refused("invalid_arguments", self._explain_mismatch(error.text))

    def _explain_mismatch(self, text: str) -> str:
        wanted = shorten(cast("Any", self.definition.text).format.definition, _PATTERN_SHOWN)
        return (
            f"{INPUT}: Text should match the regular expression {wanted} as a whole "
            f"(got {show_value(text)})"
        )

    # --- the input as arguments -----------------------------------------------------------------

    @property
    def has_parameters(self) -> bool:
        return False

    def arguments(self, input: Any) -> dict[str, Any]:
        return {INPUT: input}

    def argument_names(self, input: Any) -> tuple[str, ...]:
        return (INPUT,)

    def call_arguments(
        self, input: Any, skipped: Mapping[str, Any]
    ) -> tuple[list[Any], dict[str, Any]]:
        self.check_skip_names(skipped)
        keywords = {self.parameter: input, **skipped}
        positional: list[Any] = []
        for name in self.positional_only:
            if name not in keywords:
                break  # it has a default, or the function raises TypeError
            positional.append(keywords.pop(name))
        return positional, keywords

    def invoke(self, input: Any, skipped: Mapping[str, Any]) -> Any:
        positional, keywords = self.call_arguments(input, skipped)
        self.check_skip_types(skipped)
        return self.own_function()(*positional, **keywords)

    # --- inputs that a program makes ------------------------------------------------------------

    def make_input(self, metadata: ToolMetadata, values: Mapping[str, Any]) -> Any:
        return self.accept_input(metadata, values.get(INPUT), None)

    def accept_input(self, metadata: ToolMetadata, value: Any, held: Any) -> Any:
        if not isinstance(value, str):
            problem: str | None = f"the tool takes str, not {type(value).__name__}"
        else:
            problem = self.text_problem(value)
        if problem is not None:
            raise InvalidArgumentsError(metadata.name, metadata.id, problem)
        return value


def compile_pattern(pattern: str) -> Callable[[str], bool]:
    """Whether a text matches a pattern as a whole, in linear time.

    Raises:
        DeclarationError: It is not a regular expression of Rust's `regex`, or too large for it.
    """
    # By itself first: `a)(b` would be a good pattern between parentheses.
    _pattern_validator(pattern, pattern)
    try:
        validate = _pattern_validator(rf"\A(?:{pattern})\z", pattern)
    except DeclarationError:
        # One in verbose mode may end in a comment, which takes the parenthesis in.
        validate = _pattern_validator(f"\\A(?:{pattern}\n)\\z", pattern)

    def matches(text: str) -> bool:
        try:
            validate(text)
        except ValidationError:  # also for half of a surrogate pair
            return False
        return True

    return matches


def _pattern_validator(pattern: str, written: str) -> Callable[[str], Any]:
    schema = core_schema.str_schema(pattern=pattern, regex_engine="rust-regex")
    try:
        return SchemaValidator(schema).validate_python
    except SchemaError as error:
        _refuse_pattern(written, error)


def _refuse_pattern(pattern: str, error: SchemaError) -> NoReturn:
    reason = str(error).strip().rpartition("\n")[2].strip().removeprefix("error: ")
    raise DeclarationError(
        f"{pattern!r:.200} is not a regular expression of Rust's regex, in whose syntax Regex is "
        f"written: {reason}"
    ) from error


def _holds_half_a_pair(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False
