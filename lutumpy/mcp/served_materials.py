"""Prompts, resources and completions of a server of ours: plain functions and values."""

# What a function raises is never told to the client, but for a `ToolError`: an MCPError of the SDK
# with the class of the exception alone (rule K6).

from __future__ import annotations

import base64
import inspect
import logging
import mimetypes
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias, Union
from urllib.parse import unquote

from mcp import MCPError
from mcp.types import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    BlobResourceContents,
    CompleteRequestParams,
    CompleteResult,
    Completion,
    GetPromptRequestParams,
    GetPromptResult,
    ListPromptsResult,
    ListResourcesResult,
    ListResourceTemplatesResult,
    Prompt,
    PromptArgument,
    PromptMessage,
    PromptReference,
    ReadResourceRequestParams,
    ReadResourceResult,
    Resource,
    ResourceTemplate,
    TextResourceContents,
)

from lutumpy import DeclarationError, FilePart, ImagePart, TextPart, ToolError
from lutumpy.mcp.contents import make_blocks
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import class_name, safe_repr

__all__ = ["CompleteArgument", "Prompts", "Resources", "ServedMaterials"]

Prompts: TypeAlias = Iterable[Callable[..., Any]]
"""Functions, async or not, whose parameters are texts: the prompt has the function's name and what
its docstring says, and gives a text, content parts, or pairs of a role and one of these."""

ResourceValue: TypeAlias = Union[str, bytes, TextPart, ImagePart, FilePart]
Resources: TypeAlias = Mapping[str, Union[ResourceValue, Callable[..., Any]]]
"""Resources by their addresses: a value, or a function of one, async or not. An address with names
in braces, as `note://{number}`, is a template: the function takes them by name, as texts."""

CompleteArgument: TypeAlias = Callable[[str, str, str], Any]
"""Proposes texts for an argument: takes the name of the prompt or the template, the name of the
argument, and what was typed; async or not."""

_NAME = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_NOT_FOUND = -32002
_MOST_PROPOSALS = 100  # the protocol's
_log = logging.getLogger("lutumpy.mcp")


class _Template(NamedTuple):
    pattern: re.Pattern[str]
    value: Any


class ServedMaterials:
    """What a server has beside tools.

    Args:
        prompts: The prompts.
        resources: The resources.
        complete: Proposes texts for arguments.

    Raises:
        DeclarationError: Two prompts have one name, or one isn't a function; a template's function
            takes other names than the template has.
    """

    def __init__(
        self, prompts: Prompts, resources: Resources, complete: CompleteArgument | None
    ) -> None:
        self._prompts = _read_prompts(prompts)
        self._plain = {uri: one for uri, one in resources.items() if not _NAME.search(uri)}
        self._templates = {
            uri: _Template(_compile(uri), _check_function(uri, one))
            for uri, one in resources.items()
            if uri not in self._plain
        }
        self._complete = complete

    def handlers(self) -> dict[str, Any]:
        """What the SDK's server calls, for what there is: a server says what it has by that."""
        found: dict[str, Any] = {}
        if self._prompts:
            found |= {"on_list_prompts": self._list_prompts, "on_get_prompt": self._get_prompt}
        if self.has_resources:
            found |= {
                "on_list_resources": self._list_resources,
                "on_list_resource_templates": self._list_templates,
                "on_read_resource": self._read,
            }
        if self._complete is not None:
            found["on_completion"] = self._propose
        return found

    @property
    def has_resources(self) -> bool:
        """Whether there are any."""
        return bool(self._plain or self._templates)

    # --- prompts --------------------------------------------------------------------------------

    async def _list_prompts(self, request: Any, params: Any) -> ListPromptsResult:
        return ListPromptsResult(
            prompts=[_describe_prompt(name, one) for name, one in self._prompts.items()]
        )

    async def _get_prompt(self, request: Any, params: GetPromptRequestParams) -> GetPromptResult:
        function = self._prompts.get(params.name)
        if function is None:
            raise MCPError(INVALID_PARAMS, f"There is no prompt named {params.name[:100]!r}.")
        arguments = dict(params.arguments or {})
        try:
            inspect.signature(function).bind(**arguments)
        except TypeError as error:
            raise MCPError(INVALID_PARAMS, f"The arguments don't fit: {error}.") from None
        value = await _run(f"the prompt {params.name!r}", function, arguments)
        try:
            messages = _make_messages(value)
        except (AttributeError, TypeError, ValueError):
            _log.exception("the prompt %r can't be sent", params.name)
            raise MCPError(
                INTERNAL_ERROR,
                "The prompt is neither text, nor content parts, nor pairs of a role and one of "
                "these.",
            ) from None
        return GetPromptResult(description=_first_line(function) or None, messages=messages)

    # --- resources ------------------------------------------------------------------------------

    async def _list_resources(self, request: Any, params: Any) -> ListResourcesResult:
        return ListResourcesResult(
            resources=[
                Resource(uri=uri, mime_type=_media_type(uri, one), **_named(uri, one))
                for uri, one in self._plain.items()
            ]
        )

    async def _list_templates(self, request: Any, params: Any) -> ListResourceTemplatesResult:
        return ListResourceTemplatesResult(
            resource_templates=[
                ResourceTemplate(uri_template=uri, **_named(uri, one.value))
                for uri, one in self._templates.items()
            ]
        )

    async def _read(self, request: Any, params: ReadResourceRequestParams) -> ReadResourceResult:
        uri = str(params.uri)
        value, arguments = self.find(uri)
        if callable(value):
            value = await _run(f"the resource {uri[:200]!r}", value, arguments)
        listed = value if isinstance(value, (list, tuple)) else [value]
        return ReadResourceResult(contents=[_make_contents(uri, one) for one in listed])

    def find(self, uri: str) -> tuple[Any, dict[str, str]]:
        """What has this address, and the texts that are in the places of its template.

        Raises:
            MCPError: Nothing has it.
        """
        if uri in self._plain:
            return self._plain[uri], {}
        for template in self._templates.values():
            found = template.pattern.fullmatch(uri)
            if found is not None:
                return template.value, {k: unquote(text) for k, text in found.groupdict().items()}
        raise MCPError(_NOT_FOUND, f"There is no resource {uri[:200]!r}.")

    # --- completion -----------------------------------------------------------------------------

    async def _propose(self, request: Any, params: CompleteRequestParams) -> CompleteResult:
        about = params.ref.name if isinstance(params.ref, PromptReference) else params.ref.uri
        asked = {"of": about, "name": params.argument.name, "typed": params.argument.value}
        complete: Any = self._complete

        def propose(of: str, name: str, typed: str) -> Any:
            return complete(of, name, typed)

        found = await _run("a completion", propose, asked) or ()
        values = [json_values.clean_text(str(one)) for one in found]
        return CompleteResult(
            completion=Completion(
                values=values[:_MOST_PROPOSALS],
                total=len(values),
                has_more=len(values) > _MOST_PROPOSALS,
            )
        )


async def _run(what: str, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    """What a function gives; what it raises is told by class alone."""
    try:
        value = function(**arguments)
        return await value if inspect.isawaitable(value) else value
    except (ToolError, MCPError) as error:
        raise MCPError(INTERNAL_ERROR, str(error)) from None
    except Exception as error:
        _log.exception("%s failed", what)
        raise MCPError(INTERNAL_ERROR, f"It failed: {class_name(error)}.") from None


def _read_prompts(prompts: Prompts) -> dict[str, Callable[..., Any]]:
    found: dict[str, Callable[..., Any]] = {}
    for one in prompts:
        name = getattr(one, "__name__", None)
        if not callable(one) or name is None:
            raise DeclarationError(f"a prompt is a function, not {safe_repr(one)}")
        if name in found:
            raise DeclarationError(f"two prompts have the name {name!r}")
        found[name] = one
    return found


def _describe_prompt(name: str, function: Callable[..., Any]) -> Prompt:
    arguments = [
        PromptArgument(name=one.name, required=one.default is inspect.Parameter.empty)
        for one in inspect.signature(function).parameters.values()
    ]
    return Prompt(name=name, description=_first_line(function) or None, arguments=arguments)


def _first_line(value: Any) -> str:
    """The first paragraph of a function's docstring."""
    return (inspect.getdoc(value) or "").partition("\n\n")[0] if inspect.isroutine(value) else ""


def _make_messages(value: Any) -> list[PromptMessage]:
    pairs: Sequence[Any] = value if _has_roles(value) else [("user", value)]
    return [
        PromptMessage(role=role, content=block)
        for role, content in pairs
        for block in make_blocks(content if isinstance(content, (str, list, tuple)) else [content])
    ]


def _has_roles(value: Any) -> bool:
    return isinstance(value, (list, tuple)) and all(isinstance(one, tuple) for one in value)


def _compile(uri: str) -> re.Pattern[str]:
    pattern = ""
    named: set[str] = set()
    for index, piece in enumerate(_NAME.split(uri)):
        if index % 2 == 0:
            pattern += re.escape(piece)
        elif piece in named:
            pattern += f"(?P={piece})"  # one name stands for one text
        else:
            named.add(piece)
            pattern += f"(?P<{piece}>[^/]+)"
    return re.compile(pattern)


def _check_function(uri: str, value: Any) -> Any:
    names = _NAME.findall(uri)
    try:
        inspect.signature(value).bind(**dict.fromkeys(names, ""))
    except (TypeError, ValueError):
        raise DeclarationError(
            f"the template {uri!r:.200} needs a function that takes {', '.join(names)}"
        ) from None
    return value


def _named(uri: str, value: Any) -> dict[str, Any]:
    name = getattr(value, "__name__", None)
    if name is None or name == "<lambda>":
        name = uri.rpartition("/")[2] or uri
    return {"name": name, "description": _first_line(value) or None}


def _media_type(uri: str, value: Any) -> str | None:
    if isinstance(value, (ImagePart, FilePart)):
        return value.media_type
    guessed, _ = mimetypes.guess_type(uri)
    if guessed is None and not callable(value):
        return "application/octet-stream" if isinstance(value, bytes) else "text/plain"
    return guessed


def _make_contents(uri: str, value: Any) -> TextResourceContents | BlobResourceContents:
    media_type = _media_type(uri, value)
    if isinstance(value, (ImagePart, FilePart)):
        value = value.data
    if isinstance(value, bytes):
        return BlobResourceContents(
            uri=uri, mime_type=media_type, blob=base64.b64encode(value).decode()
        )
    text = value.text if isinstance(value, TextPart) else value
    if not isinstance(text, str):
        _log.error("the resource %r is of the type %s", uri, type(text).__name__)
        raise MCPError(INTERNAL_ERROR, "The resource is neither text nor bytes.")
    return TextResourceContents(uri=uri, mime_type=media_type, text=json_values.clean_text(text))
