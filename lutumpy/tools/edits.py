"""Another input for a call, and another function for its arguments.

An edit is validated like what the model wrote, and gives a new input; the old one stays as it is.
What is wrong with it is the program's mistake, so it raises: a name that the tool doesn't have is a
`TypeError`, a value that doesn't fit an `InvalidArgumentsError`.
"""

# The values that an edit leaves as they are were validated once. Validating them again would change
# some of them: a field that decodes Base64 would decode twice. The model of a function has no
# checks across fields, so there each changed field is validated alone. An input class may have such
# checks, so it is validated whole. So is the input of a tool that is known at run time, from what
# its check was given (`tools/checked_values.py`).

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from lutumpy.core.items import ToolMetadata
from lutumpy.errors import InvalidArgumentsError
from lutumpy.plain.preview import shorten
from lutumpy.plain.signatures import signature_of
from lutumpy.tools.argument_report import MESSAGE_LENGTH, write_lines
from lutumpy.tools.compiled import CompiledTool

__all__ = ["check_names", "edited_input", "replaced_input", "run_with", "run_with_some"]


def edited_input(
    tool: CompiledTool, metadata: ToolMetadata, input: BaseModel, changes: Mapping[str, Any]
) -> BaseModel:
    """`input` with other values for some of its arguments, validated.

    Args:
        tool: Whose input it is.
        metadata: Of the call, for errors.
        input: The input; it stays as it is.
        changes: The new values by the names of `arguments`: for a function, those of its
            parameters.

    Raises:
        TypeError: The tool has no argument of such a name.
        InvalidArgumentsError: A value doesn't fit.
    """
    if not changes:
        return input
    check_names(tool, input, changes)
    values = tool.values_to_edit(metadata, input)
    try:
        if tool.is_text:
            return tool.make_input(metadata, {**values, **changes})
        if not tool.has_parameters:
            return _validate_whole(tool, metadata, input, {**values, **changes})
        return _change_fields(tool, input, changes)
    except ValidationError as error:
        raise _invalid_arguments(tool, metadata, error) from error


def check_names(tool: CompiledTool, input: BaseModel, names: Mapping[str, Any]) -> None:
    """Raises `TypeError` for names that are not arguments of the tool."""
    known = tool.argument_names(input)
    strangers = [name for name in names if name not in known]
    if strangers and (tool.is_text or input.model_config.get("extra") != "allow"):
        hidden = [name for name in strangers if name in tool.skipped]
        aside = f" ({', '.join(hidden)}: a Skip parameter is not part of a call)" if hidden else ""
        raise TypeError(
            f"tool {tool.definition.name!r} has no argument {', '.join(strangers)}{aside}; it has "
            f"{', '.join(known) or 'none'}"
        )


def _change_fields(tool: CompiledTool, input: BaseModel, changes: Mapping[str, Any]) -> BaseModel:
    changed = input.model_copy()
    for field, keyword in tool.keyword_names.items():
        if keyword in changes:
            tool.input_type.__pydantic_validator__.validate_assignment(
                changed, field, changes[keyword]
            )
    return changed


def _validate_whole(
    tool: CompiledTool, metadata: ToolMetadata, input: BaseModel, values: dict[str, Any]
) -> BaseModel:
    # A `RootModel` over models takes the fields of one; over anything else, the value is called
    # `root`.
    root = getattr(input, "root", None) if tool.input_type.__pydantic_root_model__ else input
    data = values if isinstance(root, BaseModel) else values["root"]
    return tool.make_input(metadata, data)


def replaced_input(
    tool: CompiledTool, metadata: ToolMetadata, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> BaseModel:
    """The input that a function's arguments make, validated; parameters marked `Skip` are dropped.

    Raises:
        TypeError: These are not the function's parameters, or one without a default is missing.
        InvalidArgumentsError: A value doesn't fit.
    """
    name = tool.definition.name
    signature = signature_of(tool.own_function())
    try:
        bound = signature.bind_partial(*args, **kwargs).arguments
    except TypeError as error:
        raise TypeError(f"these are not the arguments of tool {name!r}: {error}") from None
    required = [
        p.name
        for p in signature.parameters.values()
        if p.default is p.empty and p.name not in tool.skipped
    ]
    if missing := [parameter for parameter in required if parameter not in bound]:
        raise TypeError(
            f"{', '.join(missing)} of tool {name!r} is missing; give all arguments, or use edited()"
        )
    values = {
        field: bound[keyword] for field, keyword in tool.keyword_names.items() if keyword in bound
    }
    try:
        return tool.make_input(metadata, values)
    except ValidationError as error:
        raise _invalid_arguments(tool, metadata, error) from error


def run_with(
    tool: CompiledTool, input: BaseModel, function: Callable[..., Any], skipped: Mapping[str, Any]
) -> Any:
    """Call `function` with all arguments, as the tool's own function is called.

    Raises:
        TypeError: It doesn't take them; it was not called then.
    """
    positional, keywords = tool.call_arguments(input, skipped)
    # A function in the tool's place may take values of other types, such as those of a test.
    if function is tool.function or getattr(function, "__lutumpy_tool__", None) is tool:
        tool.check_skip_types(skipped)
    try:
        signature_of(function).bind(*positional, **keywords)
    except TypeError as error:
        raise TypeError(
            _describe_misfit(tool, function, [*tool.argument_names(input), *skipped], str(error))
        ) from None
    except ValueError:
        pass  # some functions in C don't say what they take
    return function(*positional, **keywords)


def run_with_some(
    tool: CompiledTool, input: BaseModel, function: Callable[..., Any], skipped: Mapping[str, Any]
) -> Any:
    """Call `function` with the arguments that its parameters name; with all where it has `**`.

    Raises:
        TypeError: It needs others, or takes nothing by these names; it was not called then.
    """
    values = {**tool.arguments(input), **skipped}
    positional: list[Any] = []
    keywords: dict[str, Any] = {}
    parameters = signature_of(function).parameters.values()
    takes_rest = any(p.kind is p.VAR_KEYWORD for p in parameters)
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name not in values:
            if parameter.default is parameter.empty:
                raise TypeError(
                    _describe_misfit(
                        tool, function, list(values), f"missing an argument: {parameter.name!r}"
                    )
                )
            if parameter.kind is parameter.POSITIONAL_ONLY:
                # A later one may be given, and only its position says which one it is.
                positional.append(parameter.default)
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            positional.append(values.pop(parameter.name))
        else:
            keywords[parameter.name] = values.pop(parameter.name)
    if unused := [name for name in skipped if name in values and not takes_rest]:
        raise TypeError(
            _describe_misfit(tool, function, unused, f"it has no parameter {', '.join(unused)}")
        )
    return function(*positional, **keywords, **(values if takes_rest else {}))


def _describe_misfit(tool: CompiledTool, function: Any, names: list[str], why: str) -> str:
    name = getattr(function, "__qualname__", None) or repr(function)
    listed = ", ".join(names) or "none"
    return (
        f"{name} doesn't take the arguments of tool {tool.definition.name!r} ({listed}): {why}; "
        "it was not called"
    )


def _invalid_arguments(
    tool: CompiledTool, metadata: ToolMetadata, error: ValidationError
) -> InvalidArgumentsError:
    def write_line(details: ErrorDetails) -> str:
        place = [str(part) for part in details["loc"]]
        if place:  # the field may have another name than the parameter
            place[0] = tool.keyword_names.get(place[0], place[0])
        message = shorten(details["msg"], MESSAGE_LENGTH)
        return f"{'.'.join(place)}: {message}" if place else message

    errors = error.errors(include_url=False, include_context=False, include_input=False)
    detail = write_lines(errors, write_line)
    return InvalidArgumentsError(metadata.name, metadata.id, detail)
