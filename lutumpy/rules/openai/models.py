"""What OpenAI's models differ in, read from their names: parameters that reasoning models refuse. Unknown names forbid nothing.

Sources: OpenAI's API description (`stop`: not with the latest reasoning models o3 and o4-mini; `max_tokens`: not with o-series
models), and answers that users report: `stop` smolagents#1671 and #1893, n8n#18149, crewAI#2738; `temperature`
langchaingo#1355, qwen-code#921, llmcomp#69; `top_p` chatbox#2627; `max_tokens` gollm#33, opencode#37964. Of the models since
5.1 the sources say both, and without reasoning they take more.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Literal

from lutumpy.rules.problem import Certainty, Problem, is_number, text

__all__ = ["check_model_parameters"]

_NAME = re.compile(r"(?:ft:)?(?:(o[134])|gpt-5(?:\.(\d+))?)(?=[-:]|\Z)(?!\S*-chat)")
_TAKES_STOP_FROM = 5
_NO_STOP = re.compile(r"(?:ft:)?(?:o3(?!-mini)|o4-mini|gpt-5(?:\.2)?(?=[-:]|\Z))")
_UNSAMPLED = ("presence_penalty", "frequency_penalty", "logprobs", "top_logprobs", "logit_bias")


def check_model_parameters(
    api: Literal["chat", "responses"], body: Mapping[str, Any]
) -> list[Problem]:
    """The parameters of a request that its reasoning model refuses."""
    model = text(body.get("model")) or ""
    match = _NAME.match(model)
    if match is None:
        return []
    minor = int(match[2]) if match[2] else 0
    rule = f"{api}.parameter_for_model"
    effort = _effort(body)
    sampled: Certainty | None = "refused" if not minor else None if effort == "none" else "some"
    found: list[Problem] = []
    if sampled is not None:
        found += _sampling(rule, api, body, sampled, bool(match[1]))
    if api == "responses":
        return found
    if body.get("max_tokens") is not None:
        message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
        found.append(_problem(rule, "max_tokens", message, "refused"))
    if body.get("stop") is not None and minor < _TAKES_STOP_FROM:
        found.append(_unsupported(rule, "stop", "refused" if _NO_STOP.match(model) else "some"))
    return found


def _effort(body: Mapping[str, Any]) -> Any:
    reasoning = body.get("reasoning")
    return (
        reasoning.get("effort") if isinstance(reasoning, Mapping) else body.get("reasoning_effort")
    )


def _sampling(
    rule: str, api: str, body: Mapping[str, Any], certainty: Certainty, first: bool
) -> list[Problem]:
    """Sampling parameters at another value than their default."""
    found: list[Problem] = []
    temperature, top_p = body.get("temperature"), body.get("top_p")
    if is_number(temperature) and temperature != 1:
        if first or api == "responses":
            found.append(_unsupported(rule, "temperature", certainty))
        else:
            message = (
                f"Unsupported value: 'temperature' does not support {temperature} with this model. "
                "Only the default (1) value is supported."
            )
            found.append(_problem(rule, "temperature", message, certainty, "unsupported_value"))
    if is_number(top_p) and top_p != 1:
        found.append(_unsupported(rule, "top_p", certainty))
    found += [_unsupported(rule, key, "some") for key in _UNSAMPLED if body.get(key)]
    return found


def _unsupported(rule: str, key: str, certainty: Certainty) -> Problem:
    return _problem(
        rule, key, f"Unsupported parameter: '{key}' is not supported with this model.", certainty
    )


def _problem(
    rule: str, key: str, message: str, certainty: Certainty, code: str = "unsupported_parameter"
) -> Problem:
    return Problem(rule, key, message, certainty, param=key, code=code)
