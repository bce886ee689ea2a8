"""What `OpenAIChat` and `OpenAIResponses` share: their clients and options."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlsplit

from lutumpy.adapters.sdk_model import SdkModel
from lutumpy.core.model import OutputSpec, StructuredMode, check_options
from lutumpy.errors import DeclarationError
from lutumpy.rules.strict import OPENAI_STRICT, strict_schema

if TYPE_CHECKING:
    from openai import AsyncOpenAI, OpenAI

__all__ = ["OpenAIModel", "output_format", "passed_options"]

_OPTIONS = frozenset({"model", "temperature", "max_output_tokens", "strict"})


class OpenAIModel(SdkModel):
    """A model behind one of OpenAI's wires.

    Args:
        model: The model's name.
        client: An `AsyncOpenAI` for `collect()`, or an `OpenAI` for `collect_sync()`; subclasses such as the Azure ones
            too. Left out, one is made from the environment at the first request.
        base_url: For a client made here: where the API is, as of a compatible host.
        api_key: For a client made here: the key.
        temperature: Default for every request; an option of the turn wins.
        max_output_tokens: Default limit of an answer, in tokens; an option of the turn wins.
        strict: Offer tools that leave it open as strict ones, where their schema has a strict form.
        structured: How a structured turn asks for its value: `native` by the API's JSON schema output; `tool`, for endpoints
            without one, by a tool that takes it.
        extra: Provider parameters for every request; they win over what the library sets, those of a turn over them.
        headers: Further HTTP headers for every request.
        timeout: Seconds for a request; the client's own when left out.

    Raises:
        TypeError: An argument is of another type, as a client of another SDK.
        ValueError: The model's name is blank, or a limit is below 1.
    """

    sdk: ClassVar[str] = "openai"

    def __init__(
        self,
        model: str,
        client: AsyncOpenAI | OpenAI | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        temperature: float | None = None,
        max_output_tokens: int | None = None,
        strict: bool | None = None,
        structured: StructuredMode = "native",
        extra: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> None:

        def make_async() -> AsyncOpenAI:
            from openai import AsyncOpenAI, DefaultAsyncHttpxClient

            # The SDK's own default, but for a finalizer that would close the connections of a dead event loop in another.
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
            temperature=temperature,
            max_output_tokens=max_output_tokens,
            strict=strict,
            structured=structured,
            extra=extra,
            headers=headers,
            timeout=timeout,
        )
        self._base_url = base_url

    def _host(self) -> str | None:
        """The name of the host that requests go to, as the SDK finds it; `None` where a client doesn't say."""
        client = self._transport.client()
        if client is not None:
            url = getattr(client, "base_url", None)
        elif self._base_url is not None:
            url = self._base_url
        else:
            url = os.environ.get("OPENAI_BASE_URL", "").strip() or "https://api.openai.com/v1"
        if isinstance(host := getattr(url, "host", None), str):  # a URL of the HTTP stack
            return host or None
        try:
            return urlsplit(url).hostname if isinstance(url, str) else None
        except ValueError:
            return None


def passed_options(
    options: Mapping[str, Any],
    with_output: Callable[[OutputSpec, Mapping[str, Any]], dict[str, Any]],
) -> dict[str, Any]:
    """The keywords of `request` as the encoders take them: what is no option of ours is a provider parameter."""
    check_options(
        options.get("temperature"),
        options.get("max_output_tokens"),
        options.get("extra"),
        options.get("strict"),
    )
    known = {name: value for name, value in options.items() if name in _OPTIONS}
    extra = {
        name: value
        for name, value in options.items()
        if name not in _OPTIONS and name not in ("extra", "output")
    }
    extra |= options.get("extra") or {}
    output = options.get("output")
    return {**known, "extra": extra if output is None else with_output(output, extra)}


def output_format(output: OutputSpec) -> dict[str, Any]:
    """Name, schema and `strict` as both wires spell them; strict where the schema has a strict form."""
    try:
        return {
            "name": output.name,
            "schema": strict_schema(output.schema, OPENAI_STRICT),
            "strict": True,
        }
    except DeclarationError:
        return {"name": output.name, "schema": output.schema, "strict": False}
