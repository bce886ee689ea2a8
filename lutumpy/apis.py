"""The one table of APIs: each with its title, who made it, and the modules that serve it.

A provider is one folder for each question (`adapters/`, `rules/`, `doctor/`) and one row here; no
other file names an API. The table imports none of these modules: they are named as text and loaded
when somebody asks for one, so that a program pays for the APIs that it speaks.

An installed package adds an API of its own by an entry point of the group `lutumpy.apis`, whose
value is an `ApiRow`:

    [project.entry-points."lutumpy.apis"]
    my_api = "my_package.lutumpy_api:ROW"

Entry points are looked up when a name is asked for that the table lacks, or when all names are
listed. What each module of a row must define is on the page "Adding an API".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import fields
from importlib import import_module
from typing import Any, Literal, TypeAlias

from lutumpy.errors import UnknownApiError
from lutumpy.plain.values import dataclass

__all__ = [
    "Api",
    "ApiRow",
    "Role",
    "add_api",
    "api_names",
    "api_row",
    "by_name",
    "is_built_in",
    "remove_api",
    "serves",
    "serving",
]

Api: TypeAlias = str
"""The name of an API: `openai_chat`, `openai_responses`, `anthropic_messages`, or one that a
package adds.
"""

Role = Literal["adapter", "rules", "repairs", "reader", "rendering", "server", "page", "demo"]
"""What a module does for an API; see the attributes of `ApiRow`."""

VERSION = 1
"""The version of the form that rows have."""

GROUP = "lutumpy.apis"
"""The entry point group."""

_NAME = r"[a-z][a-z0-9_]*\Z"


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiRow:
    """One API, with what serves it. A place is `package.module`, or `package.module:attribute`.

    Attributes:
        name: How programs, dumps and the command line call it.
        title: How people call it.
        family: Who made it, as `openai`: what the APIs of one maker share goes by it.
        adapter: The class of its adapter, as `lutumpy.adapters.openai:OpenAIChat`.
        rules: The module with the shape of its requests and what it refuses.
        reader: The function that reads its histories into a `Transcript`.
        repairs: The module that mends its histories; `None` if nothing is mended.
        rendering: The module that writes a model's answers as the API does, for tests; `None`
            without one.
        server: The class that stands for it at the test server, beside the answers that `rendering`
            writes. `None` for a server that accepts what `rules` let pass, at the paths that they
            name.
        page: The module that shows its histories on the page; `None` to show them as their
            `Transcript`.
        demo: Whom `lutumpy demo` asks to show the API; `None` for an API that it doesn't show.
        provider: What traces call who serves it (`gen_ai.provider.name`); the family, if it is
            `None`.
        version: The version of this form that the row is written for.
    """

    name: Api
    title: str
    family: str
    adapter: str
    rules: str
    reader: str
    repairs: str | None = None
    rendering: str | None = None
    server: str | None = None
    page: str | None = None
    demo: str | None = None
    provider: str | None = None
    version: int = VERSION


_TABLE: dict[Api, ApiRow] = {
    row.name: row
    for row in (
        ApiRow(
            name="openai_chat",
            title="Chat Completions",
            family="openai",
            adapter="lutumpy.adapters.openai:OpenAIChat",
            rules="lutumpy.rules.openai.chat.law",
            repairs="lutumpy.doctor.openai.chat.stages",
            reader="lutumpy.adapters.openai.chat.read:read_chat",
            rendering="lutumpy.testing.render_chat",
            server="lutumpy.testing.render_openai_server:ChatServer",
            page="lutumpy.page.read_chat",
            demo="lutumpy.demo.providers.openai:CHAT",
        ),
        ApiRow(
            name="openai_responses",
            title="Responses",
            family="openai",
            adapter="lutumpy.adapters.openai:OpenAIResponses",
            rules="lutumpy.rules.openai.responses.law",
            repairs="lutumpy.doctor.openai.responses.stages",
            reader="lutumpy.adapters.openai.responses.read:read_responses",
            rendering="lutumpy.testing.render_responses",
            server="lutumpy.testing.render_responses_server:ResponsesServer",
            page="lutumpy.page.read_responses",
            demo="lutumpy.demo.providers.openai:RESPONSES",
        ),
        ApiRow(
            name="anthropic_messages",
            title="Anthropic Messages",
            family="anthropic",
            adapter="lutumpy.adapters.anthropic:AnthropicMessages",
            rules="lutumpy.rules.anthropic.law",
            repairs="lutumpy.doctor.anthropic.stages",
            reader="lutumpy.adapters.anthropic.read:read_messages",
            rendering="lutumpy.testing.render_anthropic",
            server="lutumpy.testing.render_anthropic_server:MessagesServer",
            page="lutumpy.page.read_anthropic",
            demo="lutumpy.demo.providers.anthropic:MESSAGES",
        ),
        ApiRow(
            name="gemini_generate_content",
            title="Gemini generateContent",
            family="google",
            adapter="lutumpy.adapters.gemini:Gemini",
            rules="lutumpy.rules.gemini.law",
            repairs="lutumpy.doctor.gemini.stages",
            reader="lutumpy.adapters.gemini.read:read_gemini",
            rendering="lutumpy.testing.render_gemini",
            server="lutumpy.testing.render_gemini_server:GeminiServer",
            page="lutumpy.page.read_gemini",
            demo="lutumpy.demo.providers.gemini:GEMINI",
            provider="gcp.gemini",
        ),
        ApiRow(
            name="bedrock_converse",
            title="Bedrock Converse",
            family="bedrock",
            adapter="lutumpy.adapters.bedrock:BedrockConverse",
            rules="lutumpy.rules.bedrock.law",
            repairs="lutumpy.doctor.bedrock.stages",
            reader="lutumpy.adapters.bedrock.read:read_converse",
            rendering="lutumpy.testing.render_bedrock",
            server="lutumpy.testing.render_bedrock_server:ConverseServer",
            page="lutumpy.page.read_bedrock",
            demo="lutumpy.demo.providers.bedrock:CONVERSE",
            provider="aws.bedrock",
        ),
        ApiRow(
            name="ollama_chat",
            title="Ollama",
            family="ollama",
            adapter="lutumpy.adapters.ollama:OllamaChat",
            rules="lutumpy.rules.ollama.law",
            repairs="lutumpy.doctor.ollama.stages",
            reader="lutumpy.adapters.ollama.read:read_ollama",
            rendering="lutumpy.testing.render_ollama",
            server="lutumpy.testing.render_ollama_server:OllamaServer",
            page="lutumpy.page.read_ollama",
            demo="lutumpy.demo.providers.ollama:OLLAMA",
        ),
    )
}
_BUILT_IN = frozenset(_TABLE)
# Looking entry points up takes milliseconds, so it is done once; until all of them could be loaded
# it is done again, so that a broken one is named to everybody who asks.
_installed_is_loaded = False


def add_api(row: ApiRow) -> None:
    """Add an API to the table, or replace its row by an equal one.

    Raises:
        ValueError: the row is of another version, its name isn't lower-case letters, digits and
            underscores, or another row has that name. The table is as it was.
    """
    if row.version != VERSION:
        raise ValueError(
            f"the row of {row.name!r} has version {row.version}; "
            f"this release reads version {VERSION}"
        )
    if re.match(_NAME, row.name) is None:
        raise ValueError(f"{row.name!r} can't name an API: use letters a-z, digits and underscores")
    for field in fields(row):
        place = getattr(row, field.name)
        if field.name not in ("name", "version") and place is not None and not place:
            raise ValueError(f"the row of {row.name!r} has no {field.name}")
    known = _TABLE.get(row.name)
    if known is not None and known != row:
        raise ValueError(f"there is an API named {row.name!r} already ({known.title})")
    _TABLE[row.name] = row


def remove_api(name: Api) -> None:
    """Take an API out of the table again, for tests; nothing happens when it isn't there."""
    _TABLE.pop(name, None)


def api_names() -> tuple[Api, ...]:
    """Every API, those of installed packages behind the built-in ones.

    Raises:
        UnknownApiError: an installed package offers an API that can't be loaded; the message names
            it.
    """
    _load_installed()
    return tuple(_TABLE)


def is_built_in(name: Api) -> bool:
    """Whether an API is one of this library's own, and none that a program or a package added."""
    return name in _BUILT_IN


def api_row(name: Api) -> ApiRow:
    """The row of an API.

    Raises:
        UnknownApiError: there is none of this name.
    """
    row = _TABLE.get(name)
    if row is None:
        _load_installed()
        row = _TABLE.get(name)
    if row is None:
        raise UnknownApiError(f"unknown api {name!r}: one of {', '.join(_TABLE)}")
    return row


def serving(name: Api, role: Role) -> Any:
    """The module, class or function that does something for an API; it is imported when it is first
    asked for.

    Raises:
        UnknownApiError: there is no such API, or nothing does this for it.
    """
    place = getattr(api_row(name), role)
    if place is None:
        raise UnknownApiError(f"nothing serves {name!r} as its {role}")
    return _load(place)


def serves(name: Api, role: Role) -> bool:
    """Whether an API has something that does this for it."""
    return getattr(api_row(name), role) is not None


def _load(place: str) -> Any:
    module, _, attribute = place.partition(":")
    loaded = import_module(module)
    return getattr(loaded, attribute) if attribute else loaded


def _load_installed() -> None:
    global _installed_is_loaded
    if _installed_is_loaded:
        return
    from importlib.metadata import entry_points  # slow to import, and rarely needed

    for point in entry_points(group=GROUP):
        try:
            row = point.load()
            if not isinstance(row, ApiRow):
                raise TypeError(f"it is not an ApiRow but {type(row).__name__}")
            add_api(row)
        except Exception as error:
            raise UnknownApiError(
                f"the API {point.name!r} of an installed package ({point.value}) can't be used: "
                f"{error}"
            ) from error
    _installed_is_loaded = True


def by_name(role: Role) -> Mapping[Api, Any]:
    """What serves each API in a role, of those that have it; the built-in ones first."""
    return {name: serving(name, role) for name in api_names() if serves(name, role)}
