"""Parameters that OpenAI's reasoning models refuse; the model is known by its name.

An unknown name forbids nothing.

Sources: OpenAI's API description (`stop`: not with the latest reasoning models o3 and o4-mini;
`max_tokens`: not with o-series models), and refusals that users report: `stop` smolagents#1671 and
#1893, n8n#18149, crewAI#2738; `temperature` langchaingo#1355, qwen-code#921, llmcomp#69; `top_p`
chatbox#2627; `max_tokens` gollm#33, opencode#37964. Of the models since 5.1 the sources say both,
and without reasoning they take more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.rules.problem import Certainty, Problem, is_number, text

__all__ = [
    "HOST",
    "allowed_tools_may_name_appended",
    "binds_reasoning",
    "check_model_parameters",
    "is_known",
    "refuses_allowed_appended",
    "refuses_configuration_update",
    "takes_additional_tools",
    "takes_async_tools",
    "takes_configuration_update",
    "takes_instructions_per_turn",
    "takes_tool_search",
    "version",
]

HOST = "api.openai.com"
"""The vendor's own host: the only one that is known to take the carriers below."""

# What a conversation binds, and what can be changed in its middle, by the version of a GPT, and
# from that version on. The vendor's pages "Keep the prefix unchanged" and "Using GPT-6.2" say so
# [DOC]; `additional_tools` was taken by GPT-5 in 19 recorded exchanges [REC].
BINDS_FROM = (6, 2)
CONFIGURATION_UPDATE_FROM = (6, 0)
ASYNC_TOOLS_FROM = (6, 0)
INSTRUCTIONS_PER_TURN_FROM = (6, 2)
ALLOWED_APPENDED_FROM = (5, 6)

_VERSION = re.compile(r"(?:ft:)?gpt-(\d{1,2})(?!\d)(?:\.(\d{1,2})(?!\d))?")
_OTHERS = re.compile(r"(?:ft:)?(?:o\d|codex|chatgpt|computer-use)")

# Group 1: a model of the o series. Group 2: the minor version of a gpt-5. The `-chat` variants
# don't reason, so none of this holds for them.
_REASONING_MODEL = re.compile(r"(?:ft:)?(?:(o[134])|gpt-5(?:\.(\d+))?)(?=[-:]|\Z)(?!\S*-chat)")
_TAKES_STOP_FROM = 5  # a minor version of gpt-5
# Known to refuse `stop`; other reasoning models may.
_NO_STOP = re.compile(r"(?:ft:)?(?:o3(?!-mini)|o4-mini|gpt-5(?:\.2)?(?=[-:]|\Z))")
# Beside `temperature` and `top_p`, which have rules of their own.
# "Only gpt-5.4 and later models support tool search" [OpenAI's guide].
_NO_TOOL_SEARCH = re.compile(r"(?:ft:)?(?:o\d|gpt-[34]|chatgpt|codex|gpt-5(?:\.[0-3])?(?=[-:]|\Z))")

_SAMPLING_PARAMETERS = (
    "presence_penalty",
    "frequency_penalty",
    "logprobs",
    "top_logprobs",
    "logit_bias",
)


def takes_tool_search(model: str) -> bool:
    """Whether a model may load tools on demand; yes for names that aren't known."""
    return _NO_TOOL_SEARCH.match(model) is None


def binds_reasoning(model: str | None) -> bool:
    """Whether encrypted reasoning is removed, without an error, behind a beginning that changed.

    A name that isn't known counts as binding: wrongly taken so, it costs reasoning that would have
    been read; wrongly taken for free, reasoning is lost unseen.
    """
    known = version(model)
    if known is not None:
        return known >= BINDS_FROM
    return model is None or _OTHERS.match(model) is None


def takes_additional_tools(model: str | None, host: str | None = HOST) -> bool:
    """Whether an `additional_tools` item can bring a new tool: any of the vendor's models [REC]
    [LIVE].

    Args:
        model: The name of the model.
        host: The authority that the request goes to; with `None`, or one that isn't known, nothing
            is taken for granted.
    """
    return host == HOST and is_known(model)


def is_known(model: str | None) -> bool:
    """Whether a name is one of the vendor's own models."""
    return version(model) is not None or _OTHERS.match(model or "") is not None


def takes_async_tools(model: str | None, host: str | None = HOST) -> bool:
    """Whether calls of a tool with `async: true` may stay open: GPT-6 Astra and later [guide "Async
    tool calling"]. Arguments as for `takes_additional_tools`.
    """
    known = version(model)
    if host != HOST or known is None or known < ASYNC_TOOLS_FROM:
        return False
    return known > ASYNC_TOOLS_FROM or "-astra" in (model or "")


def takes_configuration_update(model: str | None, host: str | None = HOST) -> bool:
    """Whether a `configuration_update` item can change effort and output format: GPT-6 on [DOC].
    Arguments as for `takes_additional_tools`.
    """
    return host == HOST and _is_from(model, CONFIGURATION_UPDATE_FROM)


def takes_instructions_per_turn(model: str | None, host: str | None = HOST) -> bool:
    """Whether `instructions` come after the input, for one turn: GPT-6.2 on [DOC]. Before, they
    are a part of the beginning. Arguments as for `takes_additional_tools`.
    """
    return host == HOST and _is_from(model, INSTRUCTIONS_PER_TURN_FROM)


def allowed_tools_may_name_appended(model: str | None, host: str | None = HOST) -> bool:
    """Whether `tool_choice: allowed_tools` may name a tool that `additional_tools` brought: GPT-5.6
    on [DOC]. Arguments as for `takes_additional_tools`.
    """
    return host == HOST and _is_from(model, ALLOWED_APPENDED_FROM)


def refuses_configuration_update(model: str | None) -> bool:
    """Whether a model is known to be older than `configuration_update`."""
    return _is_before(model, CONFIGURATION_UPDATE_FROM)


def refuses_allowed_appended(model: str | None) -> bool:
    """Whether a model is known to be older than an `allowed_tools` that may name added tools."""
    return _is_before(model, ALLOWED_APPENDED_FROM)


def _is_before(model: str | None, first: tuple[int, int]) -> bool:
    known = version(model)
    return known < first if known is not None else bool(_OTHERS.match(model or ""))


def version(model: str | None) -> tuple[int, int] | None:
    """The version of a GPT: `gpt-6.2-astra` is `(6, 2)`, `gpt-4o` `(4, 0)`."""
    match = _VERSION.match(model) if model is not None else None
    return (int(match[1]), int(match[2] or 0)) if match is not None else None


def _is_from(model: str | None, first: tuple[int, int]) -> bool:
    known = version(model)
    return known is not None and known >= first


def check_model_parameters(
    api: Literal["chat", "responses"], body: Mapping[str, Any]
) -> list[Problem]:
    """The problems of parameters that the request's model refuses.

    Args:
        api: `chat` or `responses`: how the rule's id begins.
        body: The request.
    """
    model = text(body.get("model")) or ""
    match = _REASONING_MODEL.match(model)
    if match is None:
        return []
    minor = int(match[2]) if match[2] else 0
    rule = f"{api}.parameter_for_model"
    found: list[Problem] = []
    # Models since 5.1 sample when they don't reason; the first ones always reason.
    if not minor:
        found += _check_sampling(rule, api, body, "refused", is_o_series=bool(match[1]))
    elif _reasoning_effort(body) != "none":
        found += _check_sampling(rule, api, body, "some", is_o_series=False)
    if api == "responses":
        return found
    if body.get("max_tokens") is not None:
        message = (
            "Unsupported parameter: 'max_tokens' is not supported with this model. "
            "Use 'max_completion_tokens' instead."
        )
        found.append(_problem(rule, "max_tokens", message, "refused"))
    if body.get("stop") is not None and minor < _TAKES_STOP_FROM:
        found.append(_unsupported(rule, "stop", "refused" if _NO_STOP.match(model) else "some"))
    return found


def _reasoning_effort(body: Mapping[str, Any]) -> Any:
    reasoning = body.get("reasoning")
    if isinstance(reasoning, Mapping):
        return reasoning.get("effort")
    return body.get("reasoning_effort")


def _check_sampling(
    rule: str, api: str, body: Mapping[str, Any], certainty: Certainty, *, is_o_series: bool
) -> list[Problem]:
    """Problems of sampling parameters with another value than their default."""
    found: list[Problem] = []
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if is_number(temperature) and temperature != 1:
        if is_o_series or api == "responses":
            found.append(_unsupported(rule, "temperature", certainty))
        else:
            message = (
                f"Unsupported value: 'temperature' does not support {temperature} with this "
                "model. Only the default (1) value is supported."
            )
            found.append(_problem(rule, "temperature", message, certainty, "unsupported_value"))
    if is_number(top_p) and top_p != 1:
        found.append(_unsupported(rule, "top_p", certainty))
    found += [_unsupported(rule, key, "some") for key in _SAMPLING_PARAMETERS if body.get(key)]
    return found


def _unsupported(rule: str, key: str, certainty: Certainty) -> Problem:
    message = f"Unsupported parameter: '{key}' is not supported with this model."
    return _problem(rule, key, message, certainty)


def _problem(
    rule: str, key: str, message: str, certainty: Certainty, code: str = "unsupported_parameter"
) -> Problem:
    return Problem(rule, key, message, certainty, param=key, code=code)
