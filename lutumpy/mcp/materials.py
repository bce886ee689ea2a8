"""What a server has beside tools: prompts, resources and completions, asked for by the program."""

# Nothing of this is offered to a model by itself. A resource is a stranger's text or file, and a
# prompt is a stranger's words: the program asks for them and decides where they go. They are read
# in the same limits as the answers of tools (rule MCP4).

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import TYPE_CHECKING, Any, Literal

from mcp import Client
from mcp.types import (
    Prompt,
    PromptReference,
    Resource,
    ResourceTemplate,
    ResourceTemplateReference,
)

from lutumpy import TextPart
from lutumpy.mcp.errors import McpConnectionError
from lutumpy.mcp.results import read_contents, read_message
from lutumpy.plain import json_values
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from lutumpy import FilePart, ImagePart
    from lutumpy.mcp.limits import Limits

__all__ = ["Materials", "PromptText"]

_MOST_PAGES = 1000


@dataclass(frozen=True, slots=True)
class PromptText:
    """One message of a prompt.

    Attributes:
        role: Who is to say it.
        parts: What: texts, images and files.
    """

    role: Literal["user", "assistant"]
    parts: tuple[TextPart | ImagePart | FilePart, ...]

    @property
    def text(self) -> str:
        """Its texts, joined by line ends."""
        return "\n".join([part.text for part in self.parts if isinstance(part, TextPart)])


class Materials:
    """Asks a server for what it has beside tools. `McpTools` is one; nothing is kept.

    Half a character in what is asked, as it may be typed, becomes U+FFFD: the SDK would find it
    when it writes, and close the connection.
    """

    _limits: Limits

    async def _ask(self, request: Callable[[Client], Any]) -> Any:
        raise NotImplementedError

    async def prompts(self) -> tuple[Prompt, ...]:
        """The server's prompts, with their names and arguments.

        Raises:
            McpConnectionError: The connection is closed, or the list has no end.
            MCPError: The server has none, or refuses.
        """
        found: tuple[Prompt, ...] = await self._list_all("list_prompts", "prompts")
        return found

    async def prompt(
        self, name: str, arguments: Mapping[str, str] | None = None
    ) -> tuple[PromptText, ...]:
        """The messages of a prompt. They are a stranger's; nothing is pushed into a session.

        Args:
            name: Its name.
            arguments: Its arguments, all of them texts.

        Raises:
            McpConnectionError: The connection is closed.
            MCPError: The server knows no such prompt, or refuses the arguments.
        """
        given = json_values.clean(dict(arguments or {}))
        named = json_values.clean_text(name)
        result = await self._ask(lambda client: client.get_prompt(named, given))
        return tuple(
            [
                PromptText(one.role, read_message(one.content, self._limits))
                for one in result.messages
            ]
        )

    async def resources(self) -> tuple[Resource, ...]:
        """The server's resources that have an address; raises as `prompts`."""
        found: tuple[Resource, ...] = await self._list_all("list_resources", "resources")
        return found

    async def resource_templates(self) -> tuple[ResourceTemplate, ...]:
        """The patterns of addresses of further resources; raises as `prompts`."""
        found: tuple[ResourceTemplate, ...] = await self._list_all(
            "list_resource_templates", "resource_templates"
        )
        return found

    async def read(self, uri: str) -> tuple[TextPart | ImagePart | FilePart, ...]:
        """A resource as content parts, within `max_chars` and `max_bytes`.

        Args:
            uri: Its address, of `resources` or made of a template. The server reads it: nothing is
                fetched from here.

        Raises:
            McpConnectionError: The connection is closed.
            MCPError: The server has no such resource.
        """
        address = json_values.clean_text(uri)
        result = await self._ask(lambda client: client.read_resource(address))
        return read_contents(result, self._limits)

    async def complete(
        self,
        argument: str,
        value: str,
        *,
        prompt: str | None = None,
        template: str | None = None,
        given: Mapping[str, str] | None = None,
    ) -> tuple[str, ...]:
        """What the server proposes for an argument that somebody is typing.

        Args:
            argument: Its name.
            value: What was typed so far.
            prompt: The prompt that takes it.
            template: Or the template of resources that does.
            given: Arguments that are filled in already.

        Raises:
            ValueError: Not one of `prompt` and `template` is given.
            McpConnectionError: The connection is closed.
            MCPError: The server completes nothing.
        """
        if (prompt is None) == (template is None):
            raise ValueError("complete takes one of prompt= and template=")
        reference: PromptReference | ResourceTemplateReference
        if prompt is not None:
            reference = PromptReference(type="ref/prompt", name=prompt)
        else:
            reference = ResourceTemplateReference(type="ref/resource", uri=str(template))
        asked = json_values.clean({"name": argument, "value": value})
        filled = json_values.clean(dict(given)) if given else None
        result = await self._ask(lambda client: client.complete(reference, asked, filled))
        return tuple(result.completion.values)

    async def _list_all(self, method: str, field: str) -> Any:
        """All pages of a list, by a method of the SDK's client."""
        found: list[Any] = []
        cursor: str | None = None
        seen: set[str] = set()
        while True:
            page = await self._ask(methodcaller(method, cursor=cursor))
            found += getattr(page, field)
            cursor = page.next_cursor
            if cursor is None:
                return tuple(found)
            if cursor in seen or len(seen) >= _MOST_PAGES:
                raise McpConnectionError(f"the list of {field} doesn't come to an end")
            seen.add(cursor)
