"""What of a request no longer begins as the one before it did (rule PB19).

One history can't show that signed reasoning fits what comes before it; two requests can. Reasoning
that both hold, or that answered the earlier one, was signed over what the earlier one says.
"""

# What is hard here
# -----------------
# A block is judged by its digest, and by the block before it: leaving out the oldest is fine, and
# one from the middle spoils all later ones. Of reasoning that came after the answer to the request
# before nothing is known, so nothing is claimed, unless an earlier block is spoiled.
#
#   | a block of the request                                 | is              |
#   |--------------------------------------------------------|-----------------|
#   | in neither the request before nor the answer to it     | taken as good   |
#   | behind the same beginning, and the block before it too | good            |
#   | any other, and all behind it                           | spoiled         |

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lutumpy.rules.paths import path_of
from lutumpy.rules.problem import Certainty, Problem, is_array, is_object, items

if TYPE_CHECKING:
    from lutumpy.rules.bound_blocks import BoundBlock, ReasoningBinding
    from lutumpy.rules.shape import ApiRules

__all__ = ["check_changed_prefix"]

# Marks of the prompt cache move on with the conversation.
_MARKS = ("cache_control", "cachePoint")
_OF_MODEL = ("assistant", "model")


def check_changed_prefix(
    rules: ApiRules, before: Mapping[str, Any], after: Mapping[str, Any], model: str | None
) -> list[Problem]:
    """The reasoning of a request that is bound to another beginning; and where there is none, the
    place from which on the prompt cache starts again.

    Args:
        rules: The rules of the API.
        before: The body of the request before.
        after: The body of this one.
        model: The model that is asked.
    """
    key = rules.SHAPE.messages_key
    find = getattr(rules, "reasoning_binding", None)
    binding: ReasoningBinding | None = None if find is None else find()
    if binding is not None and binding.binds(model) and _is_same_kind(binding, before, model):
        spoiled = _find_spoiled(binding, key, before, after)
        if spoiled:
            enforced = binding.refuses(model)
            certainty: Certainty = "discouraged" if enforced is None else "some"
            certainty = "refused" if enforced == "everybody" else certainty
            rule = f"{rules.PREFIX}.reasoning_bound"
            return [
                Problem(
                    rule,
                    block.path,
                    binding.refusal.replace("{}", block.path),
                    certainty,
                    path=path_of(block.path, after.get(key)),
                )
                for block in spoiled
            ]
    return _check_cache(rules, before, after)


def _is_same_kind(binding: ReasoningBinding, before: Mapping[str, Any], model: str | None) -> bool:
    """Whether the model reads what the one before has signed; else it is hidden, not refused."""
    other = before.get("model")
    known = isinstance(other, str) and model is not None
    return not known or binding.kind_of(str(other)) == binding.kind_of(model)


def _find_spoiled(
    binding: ReasoningBinding, key: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[BoundBlock]:
    """The reasoning that comes after another beginning than the one it was signed over."""
    known = binding.find(before, None)
    sent = [block for block in binding.find(after, None) if block.seal]
    new = _first_unknown({block.seal for block in known}, sent)
    if new is not None:
        entries = _answer_at(items(after.get(key)), new, items(before.get(key)))
        known = binding.find({**before, key: [*items(before.get(key)), *entries]}, None)
    prefixes = {block.seal: block.prefix for block in known}
    seals = [block.seal for block in known if block.seal]
    previous = dict(zip(seals[1:], seals, strict=False))
    shown: list[str] = []
    spoiled: list[BoundBlock] = []
    for block in sent:
        prefix = prefixes.get(block.seal)
        fits = prefix is None or (
            prefix == block.prefix and (not shown or shown[-1] == previous.get(block.seal))
        )
        if spoiled or not fits:
            spoiled.append(block)
        shown.append(block.seal)
    return spoiled


def _first_unknown(known: set[str], sent: Sequence[BoundBlock]) -> int | None:
    """The entry with the first reasoning that the request before doesn't hold."""
    for block in sent:
        if block.seal not in known:
            return int(block.path.split(".")[1])
    return None


def _answer_at(entries: Sequence[Any], index: int, before: Sequence[Any]) -> list[Any]:
    """The entries of the answer that an entry is in, up to that entry."""
    start = index
    last = before[-1] if before else None
    while start > 0 and _is_by_model(entries[start - 1]) and entries[start - 1] != last:
        start -= 1
    return [*entries[start : index + 1]]


def _is_by_model(entry: Any) -> bool:
    if not is_object(entry):
        return False
    role = entry.get("role")
    if role is not None:
        return role in _OF_MODEL
    kind = str(entry.get("type"))
    return not kind.endswith(("_output", "_response", "_update", "_tools"))


# ------------------------------------------------------------------ the cache


def _check_cache(
    rules: ApiRules, before: Mapping[str, Any], after: Mapping[str, Any]
) -> list[Problem]:
    place = _first_change(rules, before, after)
    if place is None:
        return []
    where = rules.SHAPE.position.format(place) if isinstance(place, int) else place
    words = (
        f"This request begins as the one before it only up to {where}: the prompt cache ends there."
    )
    rule = f"{rules.PREFIX}.cached_prefix"
    return [Problem(rule, where, words, "discouraged", path=(place,))]


def _first_change(
    rules: ApiRules, before: Mapping[str, Any], after: Mapping[str, Any]
) -> str | int | None:
    """Where a request stops to be the one before it: a field, or the index of an entry."""
    shape = rules.SHAPE
    tools_of = getattr(rules, "tools_of", lambda body: body.get("tools"))
    if _comparable(tools_of(before)) != _comparable(tools_of(after)):
        return "tools"
    system = shape.system_key
    is_cached = getattr(rules, "caches_system", lambda model: True)
    if (
        system is not None
        and is_cached(after.get("model"))
        and _comparable(before.get(system)) != _comparable(after.get(system))
    ):
        return "system"
    pairs = zip(
        items(before.get(shape.messages_key)), items(after.get(shape.messages_key)), strict=False
    )
    for index, (one, other) in enumerate(pairs):
        if _comparable(one) != _comparable(other):
            return index
    return None


def _comparable(value: Any) -> Any:
    """A value without marks of the cache, and without deferred tools, which nothing has shown."""
    if is_object(value):
        return {
            key: _as_blocks(inner) if key == "content" else _comparable(inner)
            for key, inner in value.items()
            if key not in _MARKS
        }
    if not is_array(value):
        return value if value is not None else []
    kept = [one for one in value if not (is_object(one) and _is_unseen(one))]
    return [_comparable(one) for one in kept]


def _as_blocks(content: Any) -> Any:
    """A text as its one block, as which it costs the same."""
    return [{"type": "text", "text": content}] if isinstance(content, str) else _comparable(content)


def _is_unseen(entry: Mapping[str, Any]) -> bool:
    return entry.get("defer_loading") is True or (len(entry) == 1 and "cachePoint" in entry)
