"""What is known of each host that speaks OpenAI's APIs or Anthropic's: one row a host.

A fact stands here only where something shows it: a vendor's page, a recorded exchange, or a refusal
that was reported. What isn't known of a host is as the vendor of the API has it.
"""

# Sources, by row:
#   mistral   "extra_forbidden" for `max_completion_tokens` (mistralai/platform-docs-public issue 7
#             and many reports of the same 422); its API has `max_tokens`. Every field that it
#             doesn't know is refused so; its accepted requests that were recorded never hold
#             `stream_options`, and its streams end with the usage unasked. Ids: see `call_ids`.
#   ollama    docs.ollama.com, "OpenAI compatibility": `max_tokens` and `stream_options` are among
#             the supported fields, `max_completion_tokens` isn't.
#   openai,   OpenAI's API description; Azure serves the same.
#   azure
# All other rows are addresses that the hosts document.

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from lutumpy.plain.values import dataclass
from lutumpy.rules.call_ids import CALL_ID_RULES, CallIds

__all__ = ["HOST_FACTS", "UNKNOWN_HOST", "HostFacts", "LimitName", "checked_host", "facts_of"]

LimitName = Literal["max_completion_tokens", "max_tokens"]
"""How Chat Completions calls the limit of an answer."""

_LIMIT_NAMES: tuple[LimitName, ...] = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of a host; as it is, the vendor's own schema and nothing known beyond.

    `dataclasses.replace` changes one fact of a row: `replace(facts_of("api.groq.com"),
    limit_name="max_tokens")`.

    Attributes:
        address: The host's name on the network, with its port where it is local. A region or a
            customer may stand before it.
        further: Other names of the same host, each as a whole.
        limit_name: What Chat Completions calls the limit of an answer there.
        stream_options: Whether a streamed request of Chat Completions may ask for the usage by
            `stream_options`.
        call_ids: The rule about ids of calls; `None` for a host whose own ids go back as they came.
        custom_tools: Whether it is known to take the API's "custom" tools, of a text.

    Raises:
        ValueError: There is no such name of a limit, or no such rule about ids.
    """

    address: str = ""
    further: re.Pattern[str] | None = None
    limit_name: LimitName = "max_completion_tokens"
    stream_options: bool = True
    call_ids: CallIds | None = None
    custom_tools: bool = False

    def __post_init__(self) -> None:
        if self.limit_name not in _LIMIT_NAMES:
            raise ValueError(
                f"limit_name is one of {', '.join(map(repr, _LIMIT_NAMES))}, "
                f"not {self.limit_name!r:.100}"
            )
        if self.call_ids is not None and self.call_ids not in CALL_ID_RULES:
            raise ValueError(
                f"call_ids is None or one of {', '.join(map(repr, CALL_ID_RULES))}, "
                f"not {self.call_ids!r:.100}"
            )

    def is_at(self, host: str) -> bool:
        """Whether this is the host of a name on the network, in lower case."""
        if host == self.address or (self.address and host.endswith(f".{self.address}")):
            return True
        return self.further is not None and self.further.fullmatch(host) is not None


UNKNOWN_HOST = HostFacts()
"""A host of which nothing is known."""


def _at(address: str) -> HostFacts:
    return HostFacts(address=address)


HOST_FACTS: Mapping[str, HostFacts] = {
    "openai": HostFacts(
        address="api.openai.com",
        call_ids="openai",
        custom_tools=True,
    ),
    "anthropic": _at("api.anthropic.com"),
    "azure": HostFacts(
        address="openai.azure.com",
        further=re.compile(r".+\.openai\.azure\.(?:us|cn)"),
        call_ids="openai",
        custom_tools=True,
    ),
    "bedrock": _at("bedrock-runtime.us-east-1.amazonaws.com"),
    "cerebras": _at("api.cerebras.ai"),
    "dashscope": _at("dashscope.aliyuncs.com"),
    "databricks": _at("azuredatabricks.net"),
    "deepinfra": _at("api.deepinfra.com"),
    "deepseek": _at("api.deepseek.com"),
    "fireworks": _at("api.fireworks.ai"),
    "foundry": _at("services.ai.azure.com"),
    "gemini": _at("generativelanguage.googleapis.com"),
    "github": _at("models.github.ai"),
    "groq": _at("api.groq.com"),
    "huggingface": _at("router.huggingface.co"),
    "litellm": _at("localhost:4000"),
    "llama.cpp": _at("localhost:8080"),
    "lmstudio": _at("localhost:1234"),
    "mistral": HostFacts(
        address="api.mistral.ai",
        further=re.compile(r"(?:.+\.)?mistral\.ai"),
        limit_name="max_tokens",
        stream_options=False,
        call_ids="mistral",
    ),
    "moonshot": _at("api.moonshot.ai"),
    "nebius": _at("api.studio.nebius.com"),
    "ollama": HostFacts(
        address="localhost:11434",
        further=re.compile(r"127\.0\.0\.1:11434|\[::1\]:11434|ollama\.com"),
        limit_name="max_tokens",
    ),
    "openrouter": _at("openrouter.ai"),
    "perplexity": _at("api.perplexity.ai"),
    "sambanova": _at("api.sambanova.ai"),
    "sglang": _at("localhost:30000"),
    "snowflake": _at("snowflakecomputing.com"),
    "together": _at("api.together.xyz"),
    "vercel": _at("ai-gateway.vercel.sh"),
    "vertex": _at("aiplatform.googleapis.com"),
    "vllm": _at("localhost:8000"),
    "xai": _at("api.x.ai"),
    "zai": _at("api.z.ai"),
}
"""The hosts by the names that people use for them."""


def facts_of(host: str | None) -> HostFacts:
    """The facts of a host.

    Args:
        host: Its name on the network, with or without a port; `None` if it isn't known.
    """
    name = (host or "").lower()
    # A local server is known by its port; others are the same host at any.
    found = [name.removesuffix("."), name.partition(":")[0].removesuffix(".")]
    for facts in HOST_FACTS.values():
        if any(facts.is_at(one) for one in found if one):
            return facts
    return UNKNOWN_HOST


def checked_host(host: object) -> HostFacts | None:
    """The facts that a program gives; `None` where it leaves them to the address.

    Raises:
        TypeError: It is something else.
    """
    if host is not None and not isinstance(host, HostFacts):
        raise TypeError(f"host takes HostFacts, not {host!r:.100}")
    return host
