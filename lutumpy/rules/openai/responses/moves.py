"""What of the items of one host of Responses another one may get (rules OR2 and OR3).

Sources: OpenAI's API description of an assistant's message and of the calls that a client runs; its
refusal `invalid_encrypted_content`, which users report for reasoning of another key or host.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.rules.moves import Move
from lutumpy.rules.openai.responses.kinds import is_by_model, is_call, kind_of_item
from lutumpy.rules.problem import Certainty, Problem, is_object, items, text

__all__ = ["ITEM_KEYS", "PART_KEYS", "check_move", "refuse_seal"]

ITEM_KEYS: Mapping[str, tuple[str, ...]] = {
    "message": ("type", "role", "status", "phase", "content"),
    "function_call": ("type", "call_id", "name", "namespace", "arguments", "status"),
    "custom_tool_call": ("type", "call_id", "name", "namespace", "input", "status"),
}
"""What every host of the API knows of an assistant's message and of the calls that a client runs,
without ids, which name what one host has stored.
"""

PART_KEYS: Mapping[str, tuple[str, ...]] = {
    "output_text": ("type", "text", "annotations"),
    "refusal": ("type", "refusal"),
}
"""The same of the parts of such a message."""


def refuse_seal(where: str, seal: str, *, is_sure: bool = True) -> Problem:
    """The refusal of reasoning that somebody else has sealed."""
    shown = f"{seal[:4]}...{seal[-4:]}"
    message = f"The encrypted content {shown} could not be verified."
    code = "invalid_encrypted_content"
    certainty: Certainty = "refused" if is_sure else "some"
    return Problem("responses.sealed", where, message, certainty, code=code)


def check_move(sent: Any, move: Move) -> list[Problem]:
    """What items hold that is private to the host that said them, or sealed for it.

    Calls that another host's tools wait for are left: only the program knows how to tell them.
    """
    if move.can_open:
        return []
    found: list[Problem] = []
    for index, item in enumerate(items(sent)):
        if not is_object(item) or not is_by_model(item):
            continue
        where, kind = f"input[{index}]", kind_of_item(item)
        seal = text(item.get("encrypted_content"))
        if seal:
            found.append(refuse_seal(where, seal, is_sure=move.is_vendor))
        elif kind in ITEM_KEYS:
            found += [] if move.is_own else _check_keys(where, item, kind)
        elif not is_call(kind) and not move.is_own:
            words = f"{where}: only the host that said this knows '{kind}' items of it"
            found.append(Problem("responses.host_field", where, words, "some"))
    return found


def _check_keys(where: str, item: Mapping[str, Any], kind: str) -> list[Problem]:
    # OpenAI names a field that it has nothing to say in, and has none.
    places = [
        f"{where}.{key}"
        for key, value in item.items()
        if key not in ITEM_KEYS[kind] and value is not None
    ]
    if kind == "message":
        for number, part in enumerate(items(item.get("content"))):
            known = PART_KEYS.get(str(part.get("type"))) if is_object(part) else None
            if known is not None:
                at = f"{where}.content[{number}]"
                places += [f"{at}.{key}" for key in part if key not in known]
    words = "{}: only the host that said this item has it"
    return [Problem("responses.host_field", at, words.format(at), "some") for at in places]
