"""What is known of each host that speaks OpenAI's APIs or Anthropic's: one row a host.

A fact is here only where something shows it: a vendor's page, a recorded exchange, or a refusal
that was reported. What isn't known of a host is as the vendor of the API has it.
"""

# Sources, by row:
#   mistral   "extra_forbidden" for `max_completion_tokens` (mistralai/platform-docs-public issue 7
#             and many reports of the same 422); its API has `max_tokens`. Every field that it
#             doesn't know is refused so; its accepted requests that were recorded never hold
#             `stream_options`, and its streams end with the usage unasked. Ids: see `call_ids`.
#   ollama    docs.ollama.com, "OpenAI compatibility": `max_tokens` and `stream_options` are among
#             the supported fields, `max_completion_tokens` isn't.
#   openai,   OpenAI's API description; Azure serves the same, to each customer at an address of
#   azure     its own.
#   cerebras  "property 'messages.2.assistant.reasoning_content' is unsupported", for every field
#             that it doesn't know (Kilo-Org/kilocode issue 10375, QwenLM/qwen-code issue 11045);
#             its own `reasoning` is taken back (proxysoul/Empryo pull request 209, measured).
#   groq      "property 'reasoning_content' is unsupported" (janhq/jan issue 8136), and the same of
#             `reasoning_details` (agentjido/req_llm issue 772); `reasoning` is in its API
#             description of an assistant's message.
#   deepseek  api-docs.deepseek.com, "Thinking Mode": `reasoning_content` goes back with the calls
#             of the task, or "Missing `reasoning_content` field in the assistant message at message
#             index 2" (continuedev/continue issue 9720 and many more); an empty text will do
#             (its pull request 10027).
#   moonshot  "thinking is enabled but reasoning_content is missing in assistant tool call message
#             at index 2" (continuedev/continue issue 11600); an empty text will do
#             (openclaw/openclaw pull request 74846).
#   zai       docs.z.ai, "Thinking Mode": with tools, thinking is returned with their results, as
#             `reasoning_content`.
#   llama.cpp `reasoning_content` goes back (ggml-org/llama.cpp pull request 21249).
#   vllm      `reasoning` goes back since it is called so (vllm-project/router pull request 115).
#   openrouter "Preserving reasoning": `reasoning` as a text, or `reasoning_details` as they came.
#             It serves models of many makers, and what one has sealed no other can open; so do
#             huggingface, vercel, litellm, databricks, snowflake, foundry and github.
#   vertex    Google's page of locations: `LOCATION-aiplatform.googleapis.com` for each region, and
#             `aiplatform.LOCATION.rep.googleapis.com` for the European and American ones.
#   gemini    A signature of Gemini's is good for the model and the host that issued it
#             (ai.google.dev, "Thought signatures", and refusals after a switch: "Thought signature
#             is not valid"); nobody says that Vertex opens those of the Gemini API.
#   bedrock   AWS, "Amazon Bedrock endpoints and quotas": `bedrock-runtime.REGION.amazonaws.com`,
#             also `bedrock-runtime-fips`; inference profiles go to several regions by themselves,
#             with the reasoning of each.
# All other rows are addresses that the hosts document.

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from lutumpy.plain.values import dataclass
from lutumpy.rules.call_ids import CALL_ID_RULES, CallIds

__all__ = [
    "HOST_FACTS",
    "UNKNOWN_HOST",
    "FieldRefusal",
    "HostFacts",
    "LimitName",
    "checked_host",
    "facts_of",
    "is_same_service",
]

LimitName = Literal["max_completion_tokens", "max_tokens"]
"""How Chat Completions calls the limit of an answer."""

_LIMIT_NAMES: tuple[LimitName, ...] = ("max_completion_tokens", "max_tokens")


@dataclass(frozen=True, slots=True)
class FieldRefusal:
    """How a host refuses a field of a message that its schema doesn't know, or one that is missing.

    Attributes:
        words: What it says; `{index}` stands for the message, `{field}` for the field.
        status: The HTTP status.
        code: The error's code, where it has one.
    """

    words: str
    status: int = 400
    code: str | None = None

    def say(self, index: int, field: str) -> str:
        """The words about a field of a message."""
        return self.words.replace("{index}", str(index)).replace("{field}", field)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFacts:
    """What is known of a host; as it is, the vendor's own schema and nothing known beyond.

    `dataclasses.replace` changes one fact of a row: `replace(facts_of("api.groq.com"),
    limit_name="max_tokens")`.

    Attributes:
        address: The host's name on the network, with its port where it is local. A region or a
            customer may come before it.
        further: Other names of the same host, each as a whole.
        limit_name: What Chat Completions calls the limit of an answer there.
        stream_options: Whether a streamed request of Chat Completions may ask for the usage by
            `stream_options`.
        call_ids: The rule about ids of calls; `None` for a host whose own ids go back as they came.
        custom_tools: Whether it is known to take the API's "custom" tools, of a text.
        allowed_tools: Whether it is known to take the choice `allowed_tools` of Chat Completions,
            which narrows the tools of a request; at a vendor's own host this holds for models of a
            known name.
        reasoning_field: The field of an assistant's message of Chat Completions in which it takes
            reasoning back that can be read, whoever said it; `None` where it isn't known to.
        missing_reasoning: How it refuses a message with calls that hasn't that field; `None` where
            it isn't known to. An empty text will do.
        unknown_field: How it refuses a field of a message that it doesn't know; `None` where it
            takes any.
        own_parts: Types of parts in an assistant's message that it has beside the API's, and takes
            back.
        by_customer: Each customer has an address of his own, and can't open what was sealed at
            another.
        many_makers: It serves models of many makers: what one of them has sealed, no other can
            open.

    Raises:
        ValueError: There is no such name of a limit, or no such rule about ids.
    """

    address: str = ""
    further: re.Pattern[str] | None = None
    limit_name: LimitName = "max_completion_tokens"
    stream_options: bool = True
    call_ids: CallIds | None = None
    custom_tools: bool = False
    allowed_tools: bool = False
    reasoning_field: str | None = None
    missing_reasoning: FieldRefusal | None = None
    unknown_field: FieldRefusal | None = None
    own_parts: frozenset[str] = frozenset()
    by_customer: bool = False
    many_makers: bool = False

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


def _at(address: str, reasoning_field: str | None = None) -> HostFacts:
    return HostFacts(address=address, reasoning_field=reasoning_field)


def _gateway(
    address: str, reasoning_field: str | None = None, *, by_customer: bool = False
) -> HostFacts:
    return HostFacts(
        address=address,
        reasoning_field=reasoning_field,
        by_customer=by_customer,
        many_makers=True,
    )


HOST_FACTS: Mapping[str, HostFacts] = {
    "openai": HostFacts(
        address="api.openai.com",
        call_ids="openai",
        custom_tools=True,
        allowed_tools=True,
    ),
    "anthropic": _at("api.anthropic.com"),
    "azure": HostFacts(
        address="openai.azure.com",
        further=re.compile(r".+\.openai\.azure\.(?:us|cn)"),
        call_ids="openai",
        custom_tools=True,
        allowed_tools=True,
        by_customer=True,
    ),
    "bedrock": HostFacts(
        address="bedrock-runtime.us-east-1.amazonaws.com",
        further=re.compile(r"bedrock-runtime(?:-fips)?\.[a-z0-9-]+\.amazonaws\.com"),
    ),
    "cerebras": HostFacts(
        address="api.cerebras.ai",
        reasoning_field="reasoning",
        unknown_field=FieldRefusal(
            "messages.{index}.assistant.{field}: property 'messages.{index}.assistant.{field}' is "
            "unsupported",
            code="wrong_api_format",
        ),
    ),
    "dashscope": _at("dashscope.aliyuncs.com"),
    "databricks": _gateway("azuredatabricks.net", by_customer=True),
    "deepinfra": _at("api.deepinfra.com"),
    "deepseek": HostFacts(
        address="api.deepseek.com",
        reasoning_field="reasoning_content",
        missing_reasoning=FieldRefusal(
            "Missing `{field}` field in the assistant message at message index {index}. For more "
            "information, please refer to "
            "https://api-docs.deepseek.com/guides/thinking_mode#tool-calls",
            code="invalid_request_error",
        ),
    ),
    "fireworks": _at("api.fireworks.ai"),
    "foundry": _gateway("services.ai.azure.com", by_customer=True),
    "gemini": _at("generativelanguage.googleapis.com"),
    "github": _gateway("models.github.ai"),
    "groq": HostFacts(
        address="api.groq.com",
        reasoning_field="reasoning",
        unknown_field=FieldRefusal(
            "'messages.{index}' : for 'role:assistant' the following must be satisfied"
            "[('messages.{index}' : property '{field}' is unsupported)]"
        ),
    ),
    "huggingface": _gateway("router.huggingface.co"),
    "litellm": _gateway("localhost:4000"),
    "llama.cpp": _at("localhost:8080", "reasoning_content"),
    "lmstudio": _at("localhost:1234"),
    "mistral": HostFacts(
        address="api.mistral.ai",
        further=re.compile(r"(?:.+\.)?mistral\.ai"),
        limit_name="max_tokens",
        stream_options=False,
        call_ids="mistral",
        own_parts=frozenset({"thinking"}),
        unknown_field=FieldRefusal(
            "body.messages.{index}.assistant.{field}: Extra inputs are not permitted",
            status=422,
            code="extra_forbidden",
        ),
    ),
    "moonshot": HostFacts(
        address="api.moonshot.ai",
        further=re.compile(r"(?:.+\.)?moonshot\.cn"),
        reasoning_field="reasoning_content",
        missing_reasoning=FieldRefusal(
            "thinking is enabled but {field} is missing in assistant tool call message at index "
            "{index}"
        ),
    ),
    "nebius": _at("api.studio.nebius.com"),
    "ollama": HostFacts(
        address="localhost:11434",
        further=re.compile(r"127\.0\.0\.1:11434|\[::1\]:11434|ollama\.com"),
        limit_name="max_tokens",
    ),
    "openrouter": _gateway("openrouter.ai", "reasoning"),
    "perplexity": _at("api.perplexity.ai"),
    "sambanova": _at("api.sambanova.ai"),
    "sglang": _at("localhost:30000"),
    "snowflake": _gateway("snowflakecomputing.com", by_customer=True),
    "together": _at("api.together.xyz"),
    "vercel": _gateway("ai-gateway.vercel.sh"),
    "vertex": HostFacts(
        address="aiplatform.googleapis.com",
        further=re.compile(r"(?:[\w.-]+-)?aiplatform(?:\.[\w-]+\.rep)?\.googleapis\.com"),
    ),
    "vllm": _at("localhost:8000", "reasoning"),
    "xai": _at("api.x.ai"),
    "zai": _at("api.z.ai", "reasoning_content"),
}
"""The hosts by the names that people use for them."""


def facts_of(host: str | None) -> HostFacts:
    """The facts of a host.

    Args:
        host: Its name on the network, with or without a port; `None` if it isn't known.
    """
    return _find_facts((host or "").lower())


# Each new adapter asks, and a host that isn't known is compared with all of them.
@lru_cache(maxsize=256)
def _find_facts(name: str) -> HostFacts:
    # A local server is known by its port; others are the same host at any.
    found = [name.removesuffix("."), name.partition(":")[0].removesuffix(".")]
    for facts in HOST_FACTS.values():
        if any(facts.is_at(one) for one in found if one):
            return facts
    return UNKNOWN_HOST


def is_same_service(one: str, other: str) -> bool:
    """Whether two names on the network are the same host's, so that it can open what it has sealed
    under the other.
    """
    if one == other:
        return True
    facts = facts_of(one)
    return facts is not UNKNOWN_HOST and not facts.by_customer and facts is facts_of(other)


def checked_host(host: object) -> HostFacts | None:
    """The facts that a program gives; `None` where it leaves them to the address.

    Raises:
        TypeError: It is something else.
    """
    if host is not None and not isinstance(host, HostFacts):
        raise TypeError(f"host takes HostFacts, not {host!r:.100}")
    return host
