"""The rules about what a request says beside its contents and tools: settings, tool choice, cache.

Sources: the discovery document of Vertex AI, the types of google-genai (3.4), recorded and reported
refusals by their words.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.gemini.fields import field, holder, snake, spellings, word
from lutumpy.rules.gemini.limits import TEMPERATURES, TOP_P
from lutumpy.rules.gemini.models import generation
from lutumpy.rules.gemini.tools import declarations, own_tools
from lutumpy.rules.gemini.wording import KIND
from lutumpy.rules.problem import Certainty, Problem, is_array, is_number, text

__all__ = ["GENERATION_KEYS", "MODES", "PARAMETERS", "TOOL_CONFIG_KEYS", "check_parameters"]

PARAMETERS = spellings(
    "contents model systemInstruction tools toolConfig generationConfig safetySettings labels "
    "cachedContent continuationToken modelArmorConfig outputConfig store serviceTier".split()
)
"""Every parameter of a request."""

GENERATION_KEYS = spellings(
    "audioTimestamp audioTranscriptionConfig candidateCount enableAffectiveDialog frequencyPenalty "
    "imageConfig logprobs maxOutputTokens mediaResolution presencePenalty responseFormat "
    "responseJsonSchema responseLogprobs responseMimeType responseModalities responseSchema "
    "routingConfig seed speechConfig stopSequences temperature thinkingConfig topK topP "
    "translationConfig modelSelectionConfig enableEnhancedCivicAnswers".split()
)
"""Every key of `generationConfig`."""

TOOL_CONFIG_KEYS = spellings(
    ("functionCallingConfig", "retrievalConfig", "includeServerSideToolInvocations")
)
_CALLING_KEYS = spellings(("mode", "allowedFunctionNames", "streamFunctionCallArguments"))
MODES = ("MODE_UNSPECIFIED", "AUTO", "ANY", "NONE", "VALIDATED")
"""The modes of calling functions; in any case, or by number."""

_NAMING_MODES = ("ANY", "VALIDATED")
_NUMBERS = (
    "temperature topP topK presencePenalty frequencyPenalty maxOutputTokens candidateCount seed "
    "logprobs"
).split()
_NOT_WITH_CACHE = ("systemInstruction", "tools", "toolConfig")


def check_parameters(body: Mapping[str, Any]) -> list[Problem]:
    """Problems of everything but contents, system and the declarations themselves."""
    found = [
        _refused(
            "gemini.unknown_parameter",
            str(key),
            f'Invalid JSON payload received. Unknown name "{key}": Cannot find field.',
        )
        for key in body
        if key not in PARAMETERS
    ]
    found += _check_generation(field(body, "generationConfig"))
    found += _check_cache(body)
    found += _check_tool_config(body)
    return found + _check_mixtures(body)


def _refused(
    rule: str, where: str, message: str, certainty: Certainty = "refused", **more: Any
) -> Problem:
    return Problem(rule, where, message, certainty, kind=KIND, **more)


def _not_an_object(rule: str, where: str, kind: str, value: Any) -> Problem:
    message = (
        f"Invalid value at '{where}' "
        f"(type.googleapis.com/google.ai.generativelanguage.v1beta.{kind}), {value!r:.100}"
    )
    return _refused(rule, where, message)


def _unknown_keys(
    rule: str, where: str, value: Mapping[str, Any], known: frozenset[str]
) -> list[Problem]:
    return [
        _refused(
            rule,
            f"{where}.{key}",
            f"Invalid JSON payload received. Unknown name \"{key}\" at '{where}': Cannot find "
            "field.",
        )
        for key in value
        if key not in known
    ]


# ---------------------------------------------------------- generationConfig


def _check_generation(config: Any) -> list[Problem]:
    rule, where = "gemini.generation_config", "generation_config"
    if config is None:
        return []
    if not isinstance(config, Mapping):
        return [_not_an_object(rule, where, "GenerationConfig", config)]
    found = _unknown_keys(rule, where, config, GENERATION_KEYS)
    for name in _NUMBERS:
        value = field(config, name)
        if value is None or _as_number(value) is not None:
            continue
        kind = "TYPE_FLOAT" if name in _NUMBERS[:5] else "TYPE_INT32"
        message = f"Invalid value at '{where}.{snake(name)}' ({kind}), {value!r:.100}"
        found.append(_refused(rule, f"{where}.{snake(name)}", message))
    return found + _check_sampling(config) + _check_thinking(field(config, "thinkingConfig"))


def _check_thinking(config: Any) -> list[Problem]:
    """How much the model thinks is said in one of two ways [error text]."""
    rule, where = "gemini.thinking", "generation_config.thinking_config"
    if config is None:
        return []
    if not isinstance(config, Mapping):
        return [_not_an_object(rule, where, "ThinkingConfig", config)]
    level, budget = field(config, "thinkingLevel"), field(config, "thinkingBudget")
    if budget is not None and _as_number(budget) is None:
        message = f"Invalid value at '{where}.thinking_budget' (TYPE_INT32), {budget!r:.100}"
        return [_refused(rule, f"{where}.thinking_budget", message)]
    if budget is None or level in (None, "", 0) or word(level) == "THINKING_LEVEL_UNSPECIFIED":
        return []
    message = "You can only set only one of thinking budget and thinking level."
    return [_refused(rule, where, message)]


def _as_number(value: Any) -> float | None:
    """A number; proto JSON takes one in a text as well."""
    if is_number(value):
        return float(value)
    try:
        return float(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _check_sampling(config: Mapping[str, Any]) -> list[Problem]:
    rule = "gemini.sampling"
    found: list[Problem] = []
    temperature = _as_number(config.get("temperature"))
    least, limit = TEMPERATURES
    if temperature is not None and not least <= temperature < limit:
        message = (
            f"Unable to submit request because it has a temperature value of {temperature:g} but "
            f"the supported range is from {least:g} (inclusive) to {limit:g} (exclusive). Update "
            "the value and try again."
        )
        found.append(_refused(rule, "generation_config.temperature", message))
    top_p = _as_number(field(config, "topP"))
    if top_p is not None and not TOP_P[0] <= top_p <= TOP_P[1]:
        message = (
            f"Unable to submit request because it has a topP value of {top_p:g} but the supported "
            f"range is from {TOP_P[0]:g} (inclusive) to {TOP_P[1]:g} (inclusive). Update the value "
            "and try again."
        )
        found.append(_refused(rule, "generation_config.top_p", message))
    return found


# ------------------------------------------------------- cache, tool choice


def _check_cache(body: Mapping[str, Any]) -> list[Problem]:
    """What a cache holds isn't said again."""
    if field(body, "cachedContent") is None:
        return []
    if all(field(body, name) in (None, [], {}) for name in _NOT_WITH_CACHE):
        return []
    message = (
        "CachedContent can not be used with GenerateContent request setting system_instruction, "
        "tools or tool_config.\n\nProposed fix: move those values to CachedContent from "
        "GenerateContent request."
    )
    return [_refused("gemini.cached_content", "cached_content", message)]


def _check_tool_config(body: Mapping[str, Any]) -> list[Problem]:
    rule, where = "gemini.tool_config", "tool_config"
    config = field(body, "toolConfig")
    if config is None:
        return []
    if not isinstance(config, Mapping):
        return [_not_an_object(rule, where, "ToolConfig", config)]
    found = _unknown_keys(rule, where, config, TOOL_CONFIG_KEYS)
    calling = field(config, "functionCallingConfig")
    where = f"{where}.function_calling_config"
    if calling is None:
        return found
    if not isinstance(calling, Mapping):
        return [*found, _not_an_object(rule, where, "FunctionCallingConfig", calling)]
    found += _unknown_keys(rule, where, calling, _CALLING_KEYS)
    mode = calling.get("mode")
    is_number_of_one = isinstance(mode, int) and not isinstance(mode, bool)
    if mode is not None and not is_number_of_one and word(mode) not in MODES:
        found.append(_not_an_object(rule, f"{where}.mode", "FunctionCallingConfig.Mode", mode))
    return found + _check_choice(body, calling)


def _check_choice(body: Mapping[str, Any], calling: Mapping[str, Any]) -> list[Problem]:
    mode = word(calling.get("mode"))
    if isinstance(calling.get("mode"), int) and 0 <= calling["mode"] < len(MODES):
        mode = MODES[calling["mode"]]
    declared = declarations(field(body, "tools"))
    where = "tool_config.function_calling_config"
    if not declared and field(body, "cachedContent") is None:
        # Nothing is known of a choice that calls none.
        certainty: Certainty = "some" if mode == "NONE" else "refused"
        message = "Function calling config is set without function_declarations."
        return [_refused("gemini.choice_needs_tools", where, message, certainty)]
    allowed = field(calling, "allowedFunctionNames")
    if allowed is None or allowed == []:
        return []
    where = f"{where}.allowed_function_names"
    if not is_array(allowed):
        message = f"Invalid value at '{where}' (TYPE_STRING), {allowed!r:.100}"
        return [_refused("gemini.tool_config", where, message)]
    for number, name in enumerate(allowed):
        if not isinstance(name, str):
            place = f"{where}[{number}]"
            message = f"Invalid value at '{place}' (TYPE_STRING), {name!r:.100}"
            return [_refused("gemini.tool_config", place, message)]
    if mode not in _NAMING_MODES:
        # The error text is reported for AUTO, which no mode means as well. A number may be that of
        # a mode that is new.
        message = "Please set allowed_function_names only when function calling mode is ANY."
        sure: Certainty = "some" if isinstance(calling.get("mode"), int) and not mode else "refused"
        return [_refused("gemini.choice_names", where, message, sure)]
    known = {text(entry.get("name")) for entry in declared if isinstance(entry, Mapping)}
    missing = [name for name in allowed if isinstance(name, str) and name not in known]
    if not missing:
        return []
    message = f"Allowed function names contain {missing[0]!r}, which no function declaration has."
    return [_refused("gemini.choice_unknown", where, message, "some", tools=tuple(missing))]


# -------------------------------------------------- what doesn't go together


def _check_mixtures(body: Mapping[str, Any]) -> list[Problem]:
    """Functions beside the provider's own tools, and beside a JSON answer."""
    tools, known = field(body, "tools"), generation(text(body.get("model")))
    if known is None or not declarations(tools):
        return []
    found: list[Problem] = []
    config = holder(body, "toolConfig")
    own = [name for name in own_tools(tools) if name != "codeExecution"]
    if known >= (3, 0) and own and not field(config, "includeServerSideToolInvocations"):
        # Vertex doesn't have the field.
        message = (
            "Please enable tool_config.include_server_side_tool_invocations to use Built-in tools "
            "with Function calling."
        )
        found.append(_refused("gemini.own_tools", "tool_config", message, "some"))
    media_type = field(holder(body, "generationConfig"), "responseMimeType")
    mode = word(field(holder(config, "functionCallingConfig"), "mode"))
    if known < (3, 0) and media_type == "application/json" and mode != "NONE":
        message = "Function calling with a response mime type: 'application/json' is unsupported"
        where = "generation_config.response_mime_type"
        found.append(_refused("gemini.json_with_tools", where, message))
    return found
