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

__all__ = ["check_model_parameters", "takes_tool_search"]

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
