"""What a program gives an adapter, checked at once: a wrong argument would otherwise show at the first request, or never."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.tool_specs import ToolOffering

__all__ = ["check_connection", "check_model_and_client", "checked_offer"]

# The SDKs by their packages: the class that their clients are of, and the adapters that speak with them.
_ADAPTERS: Mapping[str, tuple[str, str]] = {
    "openai": ("OpenAI", "OpenAIChat or OpenAIResponses"),
    "anthropic": ("Anthropic", "AnthropicMessages"),
}


def check_model_and_client(adapter: str, sdk: str, model: Any, client: Any) -> None:
    """Refuse a model that isn't a name, and a client that can't be one of this API.

    Raises:
        TypeError: The message says what to write, also where the two were given in the other order.
        ValueError: The name is blank.
    """
    if not isinstance(model, str):
        swapped = model is not None and hasattr(model, "post")
        hint = f"; the name comes first: {adapter}(model, client)" if swapped else ""
        raise TypeError(f"{adapter} takes the model's name as text, not {type(model).__name__}{hint}")
    if not model.strip():
        raise ValueError(f"{adapter} needs the model's name, not {model!r}")
    if client is None:
        return
    wanted = f"Async{_ADAPTERS[sdk][0]} or {_ADAPTERS[sdk][0]}"
    if isinstance(client, type):
        raise TypeError(f"{adapter} takes a client, not the class {client.__name__}: make one, as {client.__name__}()")
    for kind in type(client).__mro__:
        package = kind.__module__.partition(".")[0]
        if package == sdk:
            return
        if package in _ADAPTERS:
            raise TypeError(
                f"{adapter} takes a client of {sdk} ({wanted}), not {package}'s {type(client).__name__}; "
                f"{_ADAPTERS[package][1]} speaks with that"
            )
    if not hasattr(client, "post"):
        raise TypeError(f"{adapter} takes a client of {sdk} ({wanted}), not {type(client).__name__}")


def check_connection(made_here: Mapping[str, Any], headers: Any, timeout: Any) -> None:
    """Refuse addresses, keys, headers and timeouts of another type.

    Args:
        made_here: Texts by the names of their arguments, or `None`.
        headers: Texts by name, or `None`.
        timeout: Seconds, or `None`.
    """
    for name, value in made_here.items():
        if value is not None and not isinstance(value, str):
            raise TypeError(f"{name} takes text, not {type(value).__name__}")
    if headers is not None:
        if not isinstance(headers, Mapping):
            raise TypeError(f"headers takes a mapping of texts by name, not {type(headers).__name__}")
        wrong = [name for name, value in headers.items() if not isinstance(name, str) or not isinstance(value, str)]
        if wrong:
            raise TypeError(f"headers takes texts by name; that of {wrong[0]!r} isn't one")
    if timeout is not None:
        if not isinstance(timeout, (int, float)) or isinstance(timeout, bool):
            raise TypeError(f"timeout takes seconds as a number, not {timeout!r:.100}")
        if not timeout > 0:
            raise ValueError(f"timeout is more than 0 seconds, not {timeout}")


def checked_offer(offer: Any) -> ToolOffering:
    """The offer that a user has given; raises `TypeError` for anything else, a toolset among it."""
    if isinstance(offer, ToolOffering):
        return offer
    name = getattr(offer, "__name__", "AppTools")
    hint = f"; write {name}.offer()" if hasattr(offer, "__view__") else ""
    raise TypeError(f"an offer is needed, as {name}.offer() gives it, not {type(offer).__name__}{hint}")
