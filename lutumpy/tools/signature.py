"""From a function's signature to the pydantic model of its arguments (rules D2 and D7)."""

from __future__ import annotations

import collections.abc
import contextlib
import inspect
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from types import CodeType, FrameType, NoneType, SimpleNamespace
from typing import Annotated, Any, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, TypeAdapter, create_model

from lutumpy.core.safe_text import safe_str
from lutumpy.core.values import dataclass
from lutumpy.errors import DeclarationError
from lutumpy.tools.annotations import annotated_texts, type_and_metadata
from lutumpy.tools.docstrings import Docs, read_docstring
from lutumpy.tools.schema import MADE_HERE, reason_of

__all__ = ["Signature", "Skip", "enclosing_names", "quoted", "read_signature"]

T = TypeVar("T")


class _SkipMarker:
    """Stands in `Annotated` metadata of parameters that the model never sees."""

    def __repr__(self) -> str:
        return "Skip"


_SKIP = _SkipMarker()

Skip = Annotated[T, _SKIP]
"""Marks a parameter as outside the tool's schema: `index: Skip[SearchIndex]`.

The caller supplies it, the model never sees it. Type checkers see `SearchIndex`.
"""

_SKIP_TEXT = re.compile(r"(?:\w+\.)*Skip\[")


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool function's signature says.

    Attributes:
        make_model: Makes the pydantic model of the arguments, which refuses names that are no parameter. Raises
            `DeclarationError` when a type has no place in one.
        parameters: Type and default (`...` for none) of what the model sees, by name.
        output_type: What the function returns, once awaited; `NoneType` for nothing.
        is_async: Whether its result has to be awaited.
        skipped: Parameters marked `Skip`, with their annotations.
        keyword_names: The parameter for each field of `model`; they differ where a name is taken in pydantic.
        positional_only: Parameters that can't be passed by name, in order, the skipped ones among them.
        docs: What the docstring says, and `Annotated` of what that leaves out.
    """

    make_model: ModelMaker
    parameters: Mapping[str, tuple[Any, Any]]
    output_type: Any
    is_async: bool
    skipped: Mapping[str, Any]
    keyword_names: Mapping[str, str]
    positional_only: tuple[str, ...]
    docs: Docs


def read_signature(function: Callable[..., Any], names: Mapping[str, Any]) -> Signature:
    """Read the signature of `function`; `names` are those of the functions around it.

    Raises:
        DeclarationError: The signature can't be a tool's; the message quotes it, the parameter and the rule.
    """
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise DeclarationError(f"{quoted(function)} is a generator; a tool returns one value")
    signature = inspect.signature(function)
    scope = _Scope(function, getattr(inner, "__globals__", {}), _with_own_names(inner, names))
    hints: dict[str, Any] = {}
    skipped: dict[str, Any] = {}
    for index, parameter in enumerate(signature.parameters.values()):
        scope.check(parameter, index)
        hint = scope.resolve(parameter.annotation, f"parameter {parameter.name!r}")
        if _is_skipped(hint):
            skipped[parameter.name] = hint
        else:
            hints[parameter.name] = hint
    if signature.return_annotation is inspect.Signature.empty:
        raise DeclarationError(
            f"{quoted(function)} has no return annotation; a tool says what it returns, `-> None` for nothing"
        )
    output_type, awaitable = _unwrapped(
        scope.resolve(signature.return_annotation, "the return annotation")
    )
    docs = _with_annotated(read_docstring(function.__doc__, hints, skipped), hints)
    parameters = {
        name: (
            hint,
            ...
            if (default := signature.parameters[name].default) is inspect.Parameter.empty
            else default,
        )
        for name, hint in hints.items()
    }
    keyword_names = _keyword_names(hints)
    return Signature(
        make_model=ModelMaker(function, parameters, keyword_names, docs.params, scope),
        parameters=parameters,
        output_type=output_type,
        is_async=awaitable or inspect.iscoroutinefunction(inner),
        skipped=skipped,
        keyword_names=keyword_names,
        positional_only=tuple(
            p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY
        ),
        docs=docs,
    )


def enclosing_names(code: CodeType | None, frame: FrameType | None) -> dict[str, Any]:
    """Names local to the functions and classes that enclose `code`, as far as they are running; inner ones win.

    Only frames that lexically hold the code count: names of whoever happens to call must not shadow globals.
    """
    found: list[FrameType] = []
    while frame is not None and code is not None:
        if _holds(frame.f_code, code):
            found.append(frame)
            code = frame.f_code
        frame = frame.f_back
    names: dict[str, Any] = {}
    for outer in reversed(found):
        if outer.f_locals is not outer.f_globals:
            names.update(outer.f_locals)
    return names


def quoted(function: Callable[..., Any]) -> str:
    """The function as its author wrote it, for errors."""
    name = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
    try:
        signature = inspect.signature(function)
        parameters = [
            parameter.replace(annotation=_verbatim(parameter.annotation))
            for parameter in signature.parameters.values()
        ]
        returned = _verbatim(signature.return_annotation)
        return f"`{name}{signature.replace(parameters=parameters, return_annotation=returned)}`"
    except (TypeError, ValueError):
        return f"`{name}`"


class _Verbatim(str):
    """Annotation text that shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _verbatim(annotation: Any) -> Any:
    return _Verbatim(annotation) if isinstance(annotation, str) else annotation


def _holds(outer: CodeType, inner: CodeType) -> bool:
    for constant in outer.co_consts:
        if constant is inner:
            return True
        # PEP 695 puts a scope for the type parameters between a function and what encloses it.
        if (
            isinstance(constant, CodeType)
            and constant.co_name.startswith("<generic")
            and _holds(constant, inner)
        ):
            return True
    return False


def _with_own_names(function: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """`names` with the closure and the type parameters of `function`."""
    out = dict(names)
    code = getattr(function, "__code__", None)
    for name, cell in zip(
        code.co_freevars if code else (), getattr(function, "__closure__", None) or (), strict=False
    ):
        with contextlib.suppress(ValueError):  # not assigned yet
            out[name] = cell.cell_contents
    out.update(
        (parameter.__name__, parameter) for parameter in getattr(function, "__type_params__", ())
    )
    return out


class _Scope:
    """Where the annotations of one function are resolved, and how its errors begin."""

    def __init__(
        self, function: Callable[..., Any], module: dict[str, Any], names: dict[str, Any]
    ) -> None:
        self.function: Callable[..., Any] = function
        self.globals: dict[str, Any] = module
        self.names: dict[str, Any] = names
        self.module: str = str(getattr(function, "__module__", None) or __name__)

    def check(self, parameter: inspect.Parameter, index: int) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise DeclarationError(
                f"{quoted(self.function)}: {stars}{parameter.name} can't be offered to a model; name every parameter"
            )
        if parameter.annotation is not parameter.empty:
            return
        if index == 0 and parameter.name in ("self", "cls"):
            raise DeclarationError(
                f"{quoted(self.function)}: {parameter.name!r} makes it a method; a tool is a plain function, "
                "decorate a function or a static method"
            )
        raise DeclarationError(
            f"{quoted(self.function)}: parameter {parameter.name!r} has no annotation; "
            "annotate it, or mark it Skip[...] to keep it from the model"
        )

    def resolve(self, annotation: Any, what: str) -> Any:
        """The type that `annotation` means; text is evaluated where the function stands."""
        if annotation is None:
            return NoneType
        if type(annotation) is type:
            return annotation
        holder = SimpleNamespace(__annotations__={"it": annotation})
        try:
            return typing.get_type_hints(holder, self.globals, self.names, include_extras=True)[
                "it"
            ]
        except Exception as error:
            if (
                isinstance(annotation, str)
                and isinstance(error, NameError)
                and _SKIP_TEXT.match(annotation)
            ):
                return Annotated[
                    Any, _SKIP
                ]  # such as a class imported for type checkers only: no need to know it
            message = f"{quoted(self.function)}: {what} {annotation!r} can't be resolved: {safe_str(error)}"
            raise DeclarationError(message) from error


def _is_skipped(hint: Any) -> bool:
    if get_origin(hint) is Annotated:
        return any(entry is _SKIP for entry in hint.__metadata__)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_skipped(entry) for entry in get_args(hint))
    return False


def _unwrapped(hint: Any) -> tuple[Any, bool]:
    """The result type behind an awaitable one, and whether there was one."""
    if get_origin(hint) in (collections.abc.Awaitable, collections.abc.Coroutine) and get_args(
        hint
    ):
        return get_args(hint)[-1], True
    return hint, False


def _with_annotated(docs: Docs, hints: Mapping[str, Any]) -> Docs:
    """`docs` with the descriptions in `Annotated` of the parameters that the docstring says nothing of."""
    found: dict[str, str] = {}
    for name, hint in hints.items():
        texts = annotated_texts(type_and_metadata(hint)[1]) if name not in docs.params else []
        if texts:
            found[name] = texts[0]
    return replace(docs, params={**docs.params, **found}) if found else docs


def _keyword_names(hints: Iterable[str]) -> dict[str, str]:
    """The parameter for each field of the model: they differ where pydantic has the name for itself."""
    names: dict[str, str] = {}
    for name in hints:
        names[_field_name(name, {*hints, *names})] = name
    return names


@dataclass(frozen=True, slots=True)
class ModelMaker:
    """Makes the pydantic model of a function's arguments, now or when it is first needed."""

    function: Callable[..., Any]
    parameters: Mapping[str, tuple[Any, Any]]
    keyword_names: Mapping[str, str]
    descriptions: Mapping[str, str]
    scope: _Scope

    def later(self) -> ModelMaker:
        """The same for a time when nothing has to be resolved any more: it holds on to nobody's local names."""
        return replace(self, scope=_Scope(self.function, {}, {}))

    def __call__(self) -> type[BaseModel]:
        """The model, which refuses names that are no parameter; `DeclarationError` when a type has no place in one."""
        definitions: dict[str, Any] = {}
        for field, name in self.keyword_names.items():
            hint, default = self.parameters[name]
            description = self.descriptions.get(name)
            annotation = _annotated(hint, default, description, name if field != name else None)
            # Without a default of the function, what the annotation says holds: `Annotated[float, Field(default=5.0)]`.
            definitions[field] = (
                annotation if default is ... and _has_default(hint) else (annotation, default)
            )
        scope = self.scope
        try:
            model: type[BaseModel] = create_model(
                _model_name(self.function),
                __config__=ConfigDict(extra="forbid", protected_namespaces=()),
                __module__=scope.module,
                **definitions,
            )
            setattr(model, MADE_HERE, True)
            if (
                not model.__pydantic_complete__
            ):  # a field's class has annotations as text, which name what is around it
                model.model_rebuild(_types_namespace={**scope.globals, **scope.names})
        except Exception as error:
            for name, (hint, _) in self.parameters.items():
                if cause := _refusal(hint):
                    raise DeclarationError(
                        f"{quoted(self.function)}: the type of parameter {name!r} has no JSON Schema: "
                        f"{reason_of(cause)}; mark it Skip[...] if the model should not see it"
                    ) from cause
            raise DeclarationError(
                f"{quoted(self.function)} can't be a tool: {reason_of(error)}"
            ) from error
        return model


def _refusal(hint: Any) -> Exception | None:
    """What pydantic has against a type."""
    try:
        TypeAdapter(hint)
    except Exception as error:
        return error
    return None


def _has_default(hint: Any) -> bool:
    """Whether an annotation says by `Field` what holds when nothing is given (rule D4)."""
    from pydantic.fields import FieldInfo

    fields = [entry for entry in type_and_metadata(hint)[1] if isinstance(entry, FieldInfo)]
    return any(not entry.is_required() for entry in fields)


def _annotated(hint: Any, default: Any, description: str | None, alias: str | None) -> Any:
    """`hint` with the docstring's description and the alias of a renamed field, where the user gave none."""
    from pydantic import Field  # these load much of pydantic, which the first model does anyway
    from pydantic.fields import FieldInfo

    given = [entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, FieldInfo)]
    if isinstance(default, FieldInfo):
        given.append(default)
    extra: dict[str, Any] = {}
    if description and not any(entry.description for entry in given):
        extra["description"] = description
    if alias and not any(entry.alias or entry.validation_alias for entry in given):
        extra["alias"] = alias
    return Annotated[hint, Field(**extra)] if extra else hint


def _field_name(name: str, taken: set[str]) -> str:
    """A name that pydantic takes for the parameter `name`: no leading underscore, nothing that BaseModel has."""
    if not name.startswith("_") and not hasattr(BaseModel, name):
        return name
    field = f"{name.lstrip('_') or 'field'}_"
    while field in taken or hasattr(BaseModel, field):
        field += "_"
    return field


def _model_name(function: Callable[..., Any]) -> str:
    parts = re.split(r"[^0-9A-Za-z]+", getattr(function, "__name__", "tool"))
    return "".join(part[:1].upper() + part[1:] for part in parts) + "Input"
