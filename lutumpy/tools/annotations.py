"""Descriptions in annotations: `Annotated[int, "How many."]` and `Doc` of PEP 727 (rule D3).

`Field(description=)` and an entry of the docstring are the plainer ways to describe a parameter, so
they win. The developer is warned of each text that the model isn't shown.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, get_args, get_origin

__all__ = ["annotated_texts", "type_and_metadata", "unused_texts"]


def type_and_metadata(hint: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type inside `Annotated`, and what is beside it; for others, itself and `()`."""
    if type(hint) is type:
        return hint, ()  # a plain class, as most are
    return (hint.__origin__, hint.__metadata__) if get_origin(hint) is Annotated else (hint, ())


def annotated_texts(metadata: Iterable[Any]) -> list[str]:
    """The descriptions among the metadata of an annotation.

    Those of `Doc` come first: a plain string may have been meant for something else.
    """
    documented: list[str] = []
    plain: list[str] = []
    for entry in metadata:
        if isinstance(entry, str):
            plain.append(entry)
        elif not isinstance(entry, type):
            # `Doc` has three homes (typing_extensions, annotated_doc, annotated_types), one form.
            text = getattr(entry, "documentation", None)
            if isinstance(text, str):
                documented.append(text)
    return [text for text in map(inspect.cleandoc, documented + plain) if text]


def unused_texts(
    properties: Mapping[str, Any], name: str, hint: Any, metadata: Iterable[Any]
) -> Iterator[str]:
    """The descriptions in one annotation that the model isn't shown, as sentences for a warning.

    Args:
        properties: The properties of the tool's schema.
        name: The property.
        hint: Its type.
        metadata: What is beside the type.
    """
    entry = properties.get(name)
    shown = entry.get("description") if isinstance(entry, Mapping) else None
    for text in annotated_texts(metadata):
        if text != shown:
            yield f"describes {name!r} as {text!r}, but the model is told {shown!r}"
    for text in _inner_texts(hint):
        yield (
            f"describes something inside {name!r} as {text!r}, which the model is not told; "
            "use Field(description=...) there"
        )


def _inner_texts(hint: Any) -> Iterator[str]:
    """The descriptions of types inside a type, as in `list[Annotated[int, "..."]]`."""
    if type(hint) is type:
        return  # a plain class, as most are
    # The parameters of a `Callable` are a list.
    for argument in hint if isinstance(hint, list) else get_args(hint):
        inner, metadata = type_and_metadata(argument)
        yield from annotated_texts(metadata)
        yield from _inner_texts(inner)
