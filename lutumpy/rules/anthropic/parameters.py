"""The sampling parameters of Messages, and the marks for the cache: what their values may be, and
which models take them.

Sources: Anthropic's API description (models released after Opus 4.6 take a `temperature` of 1 and a
`top_p` from 0.99 on for backwards compatibility, everything else is a 400;
`CacheControlEphemeral`), and answers that users report: anthropic-sdk-python#893 (range),
inspect_ai#3721, pr-agent#2456 and nanobot#4685 (models), one-hub#529 (thinking), bedrock-chat#979
(both parameters), headroom#2939 (order of lifetimes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lutumpy.plain.pointer import Path
from lutumpy.rules.anthropic import models as anthropic_models
from lutumpy.rules.anthropic.limits import RANGES
from lutumpy.rules.problem import Certainty, Problem, is_number, items, text

__all__ = ["cache_problems", "check_sampling"]

NO_SAMPLING_FROM: Mapping[str, tuple[int, int]] = {
    "opus": (4, 7),
    "sonnet": (5, 0),
    "haiku": (5, 0),
    "fable": (5, 0),
    "mythos": (5, 0),
}
"""Family to the first version that takes no sampling parameters."""

ONE_OF_BOTH: Mapping[tuple[str, tuple[int, int]], Certainty] = {
    ("opus", (4, 1)): "refused",
    ("opus", (4, 5)): "some",
    ("sonnet", (4, 5)): "some",
    ("haiku", (4, 5)): "some",
}
"""Models that take `temperature` or `top_p`, not both."""

KEPT: Mapping[str, Callable[[float], bool]] = {
    "temperature": lambda value: value == 1,
    "top_p": lambda value: value >= 0.99,
}
"""The values that those models take for backwards compatibility."""

TTLS = ("5m", "1h")
CACHE_KEYS = frozenset({"type", "ttl"})


def check_sampling(
    body: Mapping[str, Any], model: str | None, thinking: str | None
) -> list[Problem]:
    """`temperature`, `top_p` and `top_k` of a request."""
    rule = "anthropic.sampling"
    found: list[Problem] = []
    values = {
        key: body[key] for key in ("temperature", "top_p", "top_k") if body.get(key) is not None
    }
    for key, value in values.items():
        if not is_number(value):
            found.append(Problem(rule, key, f"{key}: Input should be a valid number", "refused"))
        elif key in RANGES:
            least, most = RANGES[key]
            if not least <= value <= most:
                found.append(Problem(rule, key, f"{key}: range: {least}..{most}", "refused"))
    if found:
        return found
    known = anthropic_models.version(model)
    if known is not None and known[1] >= NO_SAMPLING_FROM[known[0]]:
        rule = "anthropic.parameter_for_model"
        return [
            Problem(rule, key, f"`{key}` is deprecated for this model.", "refused")
            for key, value in values.items()
            if key not in KEPT or not KEPT[key](value)
        ]
    if thinking == "enabled" and values.get("temperature", 1) != 1:
        message = "`temperature` may only be set to 1 when thinking is enabled."
        return [Problem(rule, "temperature", message, "refused")]
    if known is not None and known in ONE_OF_BOTH and {"temperature", "top_p"} <= values.keys():
        message = (
            "`temperature` and `top_p` cannot both be specified for this model. Please use only "
            "one."
        )
        return [
            Problem("anthropic.parameter_for_model", "temperature", message, ONE_OF_BOTH[known])
        ]
    return []


def cache_problems(rule: str, body: Mapping[str, Any]) -> list[Problem]:
    """Marks for the cache that are none, and a longer lifetime behind a shorter one.

    Args:
        rule: Id of the rule.
        body: What may hold marks: `tools`, `system` and `messages`.
    """
    found: list[Problem] = []
    is_short = False
    for where, path, holder in _find_holders(body):
        mark = holder.get("cache_control")
        if mark is None:
            continue
        where = f"{where}.cache_control"
        path = (*path, "cache_control")
        wrong = [
            replace(problem, path=(*path, "ttl") if problem.position.endswith(".ttl") else path)
            for problem in _check_breakpoint(rule, where, mark)
        ]
        found += wrong
        if wrong or not isinstance(mark, Mapping):
            continue
        if mark.get("ttl") != "1h":
            is_short = True
        elif is_short:
            message = (
                f"{where}.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' "
                "cache_control block. Note that blocks are processed in the following order: "
                "`tools`, `system`, `messages`."
            )
            found.append(Problem(rule, f"{where}.ttl", message, "refused", path=(*path, "ttl")))
    return found


def _check_breakpoint(rule: str, where: str, mark: Any) -> list[Problem]:
    if not isinstance(mark, Mapping):
        return [Problem(rule, where, f"{where}: Input should be an object", "refused")]
    kind = mark.get("type")
    if kind != "ephemeral":
        if kind is None:
            message = "Unable to extract tag using discriminator 'type'"
        else:
            message = (
                f"Input tag '{kind}' found using 'type' does not match any of the expected tags: "
                "'ephemeral'"
            )
        return [Problem(rule, where, f"{where}: {message}", "refused")]
    ttl = mark.get("ttl")
    if "ttl" in mark and ttl is not None and ttl not in TTLS:
        message = f"{where}.ephemeral.ttl: Input should be '5m' or '1h'"
        return [Problem(rule, f"{where}.ttl", message, "refused")]
    found: list[Problem] = []
    for key in mark:
        if key not in CACHE_KEYS:
            # A beta knows `scope`.
            certainty: Certainty = "some" if key == "scope" else "refused"
            message = f"{where}.ephemeral.{key}: Extra inputs are not permitted"
            found.append(Problem(rule, where, message, certainty))
    return found


def _find_holders(body: Mapping[str, Any]) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Everything that may have a mark, with its position and path, in the order in which the API
    looks.
    """
    for index, tool in enumerate(items(body.get("tools"))):
        if isinstance(tool, Mapping):
            yield f"tools.{index}", ("tools", index), tool
    yield from _find_blocks("system", ("system",), body.get("system"))
    for index, message in enumerate(items(body.get("messages"))):
        content = message.get("content") if isinstance(message, Mapping) else None
        yield from _find_blocks(f"messages.{index}.content", (index, "content"), content)


def _find_blocks(
    root: str, path: Path, content: Any
) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """Blocks, those inside of results and documents before the one that they are in."""
    stack = [(root, path, number, block) for number, block in enumerate(items(content))][::-1]
    seen: set[Path] = set()
    while stack:
        at, above, number, block = stack.pop()
        if not isinstance(block, Mapping):
            continue
        here = (*above, number)
        where = f"{at}.{number}.{text(block.get('type')) or 'text'}"
        inner = items(block.get("content"))
        if inner and here not in seen:
            seen.add(here)
            stack.append((at, above, number, block))
            stack += [
                (f"{where}.content", (*here, "content"), k, part) for k, part in enumerate(inner)
            ][::-1]
            continue
        yield where, here, block
