"""What `OpenAIChat` and `OpenAIResponses` share: their clients, their hosts and their options."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from lutumpy.adapters.request_options import request_options
from lutumpy.adapters.sdk_body import Fields
from lutumpy.adapters.sdk_model import RequestDefaults, SdkModel
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.errors import DeclarationError
from lutumpy.rules.host_facts import HostFacts, checked_host, facts_of
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI
    from typing_extensions import Unpack

__all__ = ["OpenAIModel", "checked_custom_tools", "encoder_options", "output_format"]


class OpenAIModel(SdkModel):
    """A model behind one of OpenAI's APIs.

    Args:
        model: The model's name.
        client: An `AsyncOpenAI` for `collect()`, or an `OpenAI` for `collect_sync()`; subclasses,
            such as those for Azure, too. If omitted, a client is created from the environment at
            the first request.
        base_url: For a client that is created here: the address of the API, for example that of a
            compatible host.
        api_key: For a client that is created here: the key.
        temperature: Default for every request; an option of the turn replaces it.
        max_output_tokens: Default limit of an answer, in tokens; an option of the turn replaces it.
        strict: Offer tools that leave it open as strict ones, if their schema has a strict form.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema
            output; `tool`, for endpoints without one, by a tool that takes it.
        extra: Provider parameters for every request. They replace what the library sets, and those
            of a turn replace them.
        headers: Further HTTP headers for every request.
        timeout: Seconds for a request; if omitted, the client's own.
        custom_tools: Whether tools under `text_tool` are sent as the API's "custom" tools, with
            their grammar, or as functions with the one string `input`. If omitted, the model and
            the host's address decide: models before gpt-5, and hosts other than OpenAI's and
            Azure's, aren't known to take custom tools, and get functions.
        host: What is known of the host, `HostFacts`: names of parameters, call ids, custom tools.
            If omitted, its address decides; an unknown host is taken for one that takes what the
            vendor takes.

    Raises:
        TypeError: An argument has the wrong type; for example, it is a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    sdk: ClassVar[str] = "openai"
    _clients: ClassVar[str] = "AsyncOpenAI or OpenAI"

    def __init__(
        self,
        model: str,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        custom_tools: bool | None = None,
        host: HostFacts | None = None,
        **defaults: Unpack[RequestDefaults],
    ) -> None:

        def make_async() -> AsyncOpenAI:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            # The SDK's own default would do, except for its finalizer: it closes the connections of
            # a dead event loop in another one.
            return AsyncOpenAI(
                api_key=api_key, base_url=base_url, http_client=DefaultAsyncHttpxClient()
            )

        def make_sync() -> OpenAI:
            from openai import OpenAI

            return OpenAI(api_key=api_key, base_url=base_url)

        super().__init__(
            model,
            client,
            make_async,
            make_sync,
            {"base_url": base_url, "api_key": api_key},
            **defaults,
        )
        self._base_url = base_url
        self._custom_tools = checked_custom_tools(custom_tools)
        self._host = checked_host(host)
        self._fields = self._ask_host_first

    def _ask_host_first(
        self, transcript: Transcript, offer: ToolOffering | None, **options: Any
    ) -> Fields:
        # Once, and not before the first request: only then does the SDK read the environment.
        host = self._host if self._host is not None else facts_of(self.host)
        custom_tools = self._custom_tools
        if custom_tools is None and not host.custom_tools:
            custom_tools = False
        self._fields = self._fields_for(host, custom_tools)
        return self._fields(transcript, offer, **options)

    def _find_host(self) -> str | None:
        if self._host is not None and self._host.address:
            return self._host.address
        return self._host_of_requests()

    @abstractmethod
    def _fields_for(self, host: HostFacts, custom_tools: bool | None) -> Callable[..., Fields]:
        """What makes the fields of requests to this host."""

    def _host_of_requests(self) -> str | None:
        """The host that requests go to, with its port if the address has one; `None` if the client
        doesn't show it.

        Without a client, it is found in the way the SDK finds it.
        """
        client = self._transport.client()
        if client is not None:
            url = getattr(client, "base_url", None)
        elif self._base_url is not None:
            url = self._base_url
        else:
            url = os.environ.get("OPENAI_BASE_URL", "").strip() or "https://api.openai.com/v1"
        if isinstance(getattr(url, "host", None), str):  # a URL object of the HTTP library
            url = str(url)
        try:
            found = urlsplit(url).netloc if isinstance(url, str) else ""
        except ValueError:
            return None
        return found.rpartition("@")[2] or None


def checked_custom_tools(custom_tools: Any) -> bool | None:
    """Whether text tools are sent as custom tools; `None` where that isn't said.

    Raises:
        TypeError: It is something else.
    """
    if custom_tools is not None and not isinstance(custom_tools, bool):
        raise TypeError(f"custom_tools takes True, False or None, not {custom_tools!r:.100}")
    return custom_tools


def encoder_options(
    api: str,
    options: Mapping[str, Any],
    with_output: Callable[[OutputSpec, Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """The keywords of `request` as the encoders take them.

    Args:
        api: The adapter's API.
        options: The keywords. What isn't an option of this library is a provider parameter.
        with_output: Adds the schema of an answer to provider parameters, as the API spells it.

    Raises:
        TypeError: An option has the wrong type.
        ValueError: A limit is below 1.
    """
    checked_custom_tools(options.get("custom_tools"))
    host = checked_host(options.get("host"))
    known = request_options(api, options, with_output, ("custom_tools", "host"))
    if host is not None and known.get("custom_tools") is None and not host.custom_tools:
        known["custom_tools"] = False
    return known


def output_format(output: OutputSpec) -> dict[str, Any]:
    """Name, description, schema and `strict` of an answer, as both APIs spell them.

    It is strict if the schema has a strict form, unless the output doesn't want that.
    """
    named = {"name": output.name}
    if output.description:
        named["description"] = output.description
    if output.strict is False:
        return {**named, "schema": output.schema, "strict": False}
    try:
        return {**named, "schema": strict_schema(output.schema, OPENAI_STRICT), "strict": True}
    except DeclarationError:
        return {**named, "schema": output.schema, "strict": False}
