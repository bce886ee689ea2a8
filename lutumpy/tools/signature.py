"""From a function's signature to the pydantic model of its arguments (rules D2 and D7)."""

# What is hard here
# -----------------
# Annotations. Under `from __future__ import annotations` they are texts, and a text means what its
# names mean where the function was *written*. That may be inside another function, whose local
# names no attribute of the inner one leads to. Names are looked up in this order:
#
#   the function's type parameters     def f[T](x: T)
#   its closure                        names that its body uses, too
#   locals of the enclosing functions  from the frames that run while the decorator runs, and only
#   and classes                        from those whose code holds the function's code: a frame that
#                                      happens to call must not shadow a global
#   the module's globals               __globals__
#
# So everything is resolved while the decorator runs, and nothing that is kept holds a frame: a
# model that is made later (`ModelMaker.later`) needs no names, or it would have been made at once.
#
# Names of fields. Pydantic has names for itself (`copy`, `json`, a leading underscore), which are
# good names for parameters. Such a field gets a similar name and the parameter's as its alias, and
# `keyword_names` leads back from the field to the parameter.

from __future__ import annotations

import builtins
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

from lutumpy.errors import DeclarationError
from lutumpy.plain.safe_text import safe_str
from lutumpy.plain.signatures import signature_of
from lutumpy.plain.values import dataclass
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

_SKIP_TEXT = r"(?:\w+\.)*Skip\["


@dataclass(frozen=True, slots=True)
class Signature:
    """What a tool function's signature says.

    Attributes:
        make_model: Makes the pydantic model of the arguments, which refuses names that are not
            parameters. Raises `DeclarationError` when a type has no place in one.
        parameters: Type and default (`...` for none) of what the model sees, by name.
        output_type: What the function returns, once awaited; `NoneType` for nothing.
        is_async: Whether its result has to be awaited.
        skipped: Parameters marked `Skip`, with their annotations.
        keyword_names: The parameter for each field of the model; they differ where pydantic has the
            name for itself.
        positional_only: Parameters that can't be passed by name, in order, the skipped ones among
            them.
        docs: What the docstring says, and `Annotated` for parameters that it doesn't describe.
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
    """Read the signature of a function.

    Args:
        function: The function.
        names: The local names of the functions and classes around it, see `enclosing_names`.

    Raises:
        DeclarationError: The signature can't be a tool's; the message quotes it, the parameter and
            the rule.
    """
    inner = inspect.unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise DeclarationError(f"{quoted(function)} is a generator; a tool returns one value")
    signature = signature_of(function)
    scope = _Scope(function, getattr(inner, "__globals__", {}), _add_own_names(inner, names))
    hints: dict[str, Any] = {}
    skipped: dict[str, Any] = {}
    for index, parameter in enumerate(signature.parameters.values()):
        scope.check_parameter(parameter, index)
        hint = scope.resolve(parameter.annotation, f"parameter {parameter.name!r}")
        if _is_skipped(hint):
            skipped[parameter.name] = hint
        else:
            hints[parameter.name] = hint
    if signature.return_annotation is inspect.Signature.empty:
        raise DeclarationError(
            f"{quoted(function)} has no return annotation; a tool says what it returns, "
            "`-> None` for nothing"
        )
    returned = scope.resolve(signature.return_annotation, "the return annotation")
    output_type, is_awaitable = _unwrap_awaitable(returned)
    docs = _add_annotated_texts(read_docstring(function.__doc__, hints, skipped), hints)
    parameters: dict[str, tuple[Any, Any]] = {}
    for name, hint in hints.items():
        default = signature.parameters[name].default
        parameters[name] = (hint, ... if default is inspect.Parameter.empty else default)
    keyword_names = _keyword_names(hints)
    return Signature(
        make_model=ModelMaker(function, parameters, keyword_names, docs.params, scope),
        parameters=parameters,
        output_type=output_type,
        is_async=is_awaitable or inspect.iscoroutinefunction(inner),
        skipped=skipped,
        keyword_names=keyword_names,
        positional_only=tuple(
            p.name for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY
        ),
        docs=docs,
    )


def enclosing_names(code: CodeType | None, frame: FrameType | None) -> dict[str, Any]:
    """Names local to the functions and classes that enclose `code`, as far as they are running.

    Inner ones win. Only frames that lexically hold the code count: names of whoever happens to call
    must not shadow globals.
    """
    holders: list[FrameType] = []
    while frame is not None and code is not None:
        if _holds_code(frame.f_code, code):
            holders.append(frame)
            code = frame.f_code
        frame = frame.f_back
    names: dict[str, Any] = {}
    for outer in reversed(holders):
        if outer.f_locals is not outer.f_globals:
            names.update(outer.f_locals)
    return names


def _holds_code(outer: CodeType, inner: CodeType) -> bool:
    for constant in outer.co_consts:
        if type(constant) is not CodeType:
            continue
        if constant is inner:
            return True
        # PEP 695 puts a scope for the type parameters between a function and what encloses it.
        if constant.co_name.startswith("<generic") and _holds_code(constant, inner):
            return True
    return False


def _add_own_names(function: Any, names: Mapping[str, Any]) -> dict[str, Any]:
    """`names` with the closures and the type parameters of `function`."""
    out = dict(names)
    # From Python 3.14 on, what only the annotations name is in a closure of theirs.
    for holder in (getattr(function, "__annotate__", None), function):
        code = getattr(holder, "__code__", None)
        cells = getattr(holder, "__closure__", None) or ()
        for name, cell in zip(code.co_freevars if code else (), cells, strict=False):
            with contextlib.suppress(ValueError):  # not assigned yet
                out[name] = cell.cell_contents
    for parameter in getattr(function, "__type_params__", ()):
        out[parameter.__name__] = parameter
    return out


# --- quoting ------------------------------------------------------------------------------------


def quoted(function: Callable[..., Any]) -> str:
    """The function as its author wrote it, for errors."""
    name = getattr(function, "__qualname__", repr(function)).rpartition("<locals>.")[2]
    try:
        signature = signature_of(function)
        parameters = [
            parameter.replace(annotation=_unquote(parameter.annotation))
            for parameter in signature.parameters.values()
        ]
        returned = _unquote(signature.return_annotation)
        return f"`{name}{signature.replace(parameters=parameters, return_annotation=returned)}`"
    except (TypeError, ValueError):
        return f"`{name}`"


class _UnquotedText(str):
    """Annotation text that a signature shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _unquote(annotation: Any) -> Any:
    return _UnquotedText(annotation) if isinstance(annotation, str) else annotation


# --- resolving ----------------------------------------------------------------------------------


class _Scope:
    """Where the annotations of one function are resolved, and what its errors quote."""

    def __init__(
        self, function: Callable[..., Any], module: dict[str, Any], names: dict[str, Any]
    ) -> None:
        self.function: Callable[..., Any] = function
        self.globals: dict[str, Any] = module
        self.names: dict[str, Any] = names
        self.module: str = str(getattr(function, "__module__", None) or __name__)

    def check_parameter(self, parameter: inspect.Parameter, index: int) -> None:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            stars = "*" if parameter.kind is parameter.VAR_POSITIONAL else "**"
            raise DeclarationError(
                f"{quoted(self.function)}: {stars}{parameter.name} can't be offered to a model; "
                "name every parameter"
            )
        if parameter.annotation is not parameter.empty:
            return
        if index == 0 and parameter.name in ("self", "cls"):
            raise DeclarationError(
                f"{quoted(self.function)}: {parameter.name!r} makes it a method; a tool is a plain "
                "function, decorate a function or a static method"
            )
        raise DeclarationError(
            f"{quoted(self.function)}: parameter {parameter.name!r} has no annotation; "
            "annotate it, or mark it Skip[...] to keep it from the model"
        )

    def resolve(self, annotation: Any, what: str) -> Any:
        """The type that `annotation` means; text is evaluated where the function is defined."""
        if annotation is None:
            return NoneType
        if type(annotation) is type:
            return annotation
        if type(annotation) is str and (named := self._find_class(annotation)) is not None:
            return named
        # `get_type_hints` resolves text inside types as well, as in `list["User"]`.
        holder = SimpleNamespace(__annotations__={"it": annotation})
        try:
            hints = typing.get_type_hints(holder, self.globals, self.names, include_extras=True)
        except Exception as error:
            if isinstance(error, NameError) and _says_skip(annotation):
                # A class imported for type checkers alone. The model never sees the parameter, so
                # nobody needs to know its type.
                return Annotated[Any, _SKIP]
            raise DeclarationError(
                f"{quoted(self.function)}: {what} {annotation!r} can't be resolved: "
                f"{safe_str(error)}"
            ) from error
        return hints["it"]

    def _find_class(self, text: str) -> type | None:
        """The class that a text names, if it is nothing but a name; found where `eval` finds it.

        With `from __future__ import annotations` most texts are such names, and to compile and
        evaluate each takes longer than all else of a plain declaration.
        """
        built_in: Any = self.globals.get("__builtins__", builtins)
        for names in (self.names, self.globals, getattr(built_in, "__dict__", built_in)):
            if text in names:
                found: Any = names[text]
                # `type(found)`: on Python 3.10, `list[int]` says that it is a class.
                return found if issubclass(type(found), type) else None
        return None


def _says_skip(annotation: Any) -> bool:
    """Whether an annotation that can't be resolved is marked `Skip`, as text or around text."""
    if isinstance(annotation, str):
        return re.match(_SKIP_TEXT, annotation) is not None
    return _is_skipped(annotation)


def _is_skipped(hint: Any) -> bool:
    if type(hint) is type:
        return False  # a plain class, as most are
    if get_origin(hint) is Annotated:
        return any(entry is _SKIP for entry in hint.__metadata__)
    if get_origin(hint) in (typing.Union, types.UnionType):
        return any(_is_skipped(entry) for entry in get_args(hint))
    return False


def _unwrap_awaitable(hint: Any) -> tuple[Any, bool]:
    """The result type behind an awaitable one, and whether there was one."""
    is_awaitable = get_origin(hint) in (collections.abc.Awaitable, collections.abc.Coroutine)
    if is_awaitable and get_args(hint):
        return get_args(hint)[-1], True
    return hint, False


def _add_annotated_texts(docs: Docs, hints: Mapping[str, Any]) -> Docs:
    """`docs` with the texts in `Annotated` of parameters that the docstring doesn't describe."""
    found: dict[str, str] = {}
    for name, hint in hints.items():
        texts = annotated_texts(type_and_metadata(hint)[1]) if name not in docs.params else []
        if texts:
            found[name] = texts[0]
    return replace(docs, params={**docs.params, **found}) if found else docs


# --- the model ----------------------------------------------------------------------------------


def _keyword_names(hints: Iterable[str]) -> dict[str, str]:
    """The parameter for each field of the model."""
    names: dict[str, str] = {}
    for name in hints:
        names[_field_name(name, {*hints, *names})] = name
    return names


def _field_name(name: str, taken: set[str]) -> str:
    """A name that pydantic takes for the parameter `name`.

    It has no leading underscore, and `BaseModel` has no attribute of that name.
    """
    if not name.startswith("_") and not hasattr(BaseModel, name):
        return name
    field = f"{name.lstrip('_') or 'field'}_"
    while field in taken or hasattr(BaseModel, field):
        field += "_"
    return field


@dataclass(frozen=True, slots=True)
class ModelMaker:
    """Makes the pydantic model of a function's arguments, now or when it is first needed."""

    function: Callable[..., Any]
    parameters: Mapping[str, tuple[Any, Any]]
    keyword_names: Mapping[str, str]
    descriptions: Mapping[str, str]
    scope: _Scope

    def later(self) -> ModelMaker:
        """A maker for when nothing is left to resolve: it keeps nobody's local names alive."""
        scope = _Scope(self.function, {}, {})
        return ModelMaker(
            self.function, self.parameters, self.keyword_names, self.descriptions, scope
        )

    def __call__(self) -> type[BaseModel]:
        """The model, which refuses names that are not parameters.

        Raises:
            DeclarationError: A type has no place in a model.
        """
        try:
            return self._make()
        except Exception as error:
            for name, (hint, _) in self.parameters.items():
                if cause := _find_refusal(hint):
                    raise DeclarationError(
                        f"{quoted(self.function)}: the type of parameter {name!r} has no JSON "
                        f"Schema: {reason_of(cause)}; mark it Skip[...] if the model should not "
                        "see it"
                    ) from cause
            raise DeclarationError(
                f"{quoted(self.function)} can't be a tool: {reason_of(error)}"
            ) from error

    def _make(self) -> type[BaseModel]:
        definitions: dict[str, Any] = {}
        for field, name in self.keyword_names.items():
            hint, default = self.parameters[name]
            alias = name if field != name else None
            annotation = _annotate(hint, default, self.descriptions.get(name), alias)
            if default is ... and _has_default(hint):
                definitions[field] = annotation
            else:
                definitions[field] = (annotation, default)
        model: type[BaseModel] = create_model(
            _model_name(self.function),
            __config__=ConfigDict(extra="forbid", protected_namespaces=()),
            __module__=self.scope.module,
            **definitions,
        )
        setattr(model, MADE_HERE, True)
        if not model.__pydantic_complete__:
            # A field's class has annotations as text, which name what is around the function.
            model.model_rebuild(_types_namespace={**self.scope.globals, **self.scope.names})
        return model


def _find_refusal(hint: Any) -> Exception | None:
    """What pydantic has against a type."""
    try:
        TypeAdapter(hint)
    except Exception as error:
        return error
    return None


def _has_default(hint: Any) -> bool:
    """Whether an annotation has a default, as `Annotated[float, Field(default=5.0)]` (rule D4)."""
    from pydantic.fields import FieldInfo

    fields = [entry for entry in type_and_metadata(hint)[1] if isinstance(entry, FieldInfo)]
    return any(not entry.is_required() for entry in fields)


def _annotate(hint: Any, default: Any, description: str | None, alias: str | None) -> Any:
    """`hint` with a description and the alias of a renamed field, where the user gave none."""
    from pydantic import Field  # these load much of pydantic, which the first model does anyway
    from pydantic.fields import FieldInfo

    fields = [entry for entry in getattr(hint, "__metadata__", ()) if isinstance(entry, FieldInfo)]
    if isinstance(default, FieldInfo):
        fields.append(default)
    extra: dict[str, Any] = {}
    if description and not any(entry.description for entry in fields):
        extra["description"] = description
    if alias and not any(entry.alias or entry.validation_alias for entry in fields):
        extra["alias"] = alias
    return Annotated[hint, Field(**extra)] if extra else hint


def _model_name(function: Callable[..., Any]) -> str:
    """`WebSearchInput` for `web_search`."""
    parts = re.split(r"[^0-9A-Za-z]+", getattr(function, "__name__", "tool"))
    return "".join(part[:1].upper() + part[1:] for part in parts) + "Input"
