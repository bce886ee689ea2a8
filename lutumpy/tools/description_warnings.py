"""Descriptions never vanish silently: what a declaration warns of (rule D3)."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FrameType
from typing import Any

from lutumpy.tools.annotations import unused_texts
from lutumpy.tools.definition import ToolDef

__all__ = ["unused_descriptions", "warn_lost", "warn_undescribed"]


def unused_descriptions(
    schema: Mapping[str, Any], annotations: Iterable[tuple[str, Any, Iterable[Any]]]
) -> list[str]:
    """The texts in annotations that the model isn't shown, as sentences for a warning.

    Args:
        schema: The tool's schema.
        annotations: For each property its name, its type and what is beside the type.
    """
    properties = schema["properties"]
    return [
        problem
        for name, hint, metadata in annotations
        if metadata or type(hint) is not type  # a plain class, as most are, says nothing
        for problem in unused_texts(properties, name, hint, metadata)
    ]


def warn_lost(
    part: str, about: Callable[[], str], problems: Iterable[str], frame: FrameType
) -> None:
    """One warning for each description that is lost in a part of the declaration (rule D3)."""
    for problem in problems:
        _warn_at(f"the {part} of {about()} {problem}", frame)


def warn_undescribed(about: Callable[[], str], definition: ToolDef, frame: FrameType) -> None:
    """Warn of a tool without any description (rule D3)."""
    if not definition.description.strip():
        _warn_at(
            f"{about()}: the tool {definition.name!r} has no description, so a model is told only "
            "its name; write a docstring, or pass description=",
            frame,
        )


def _warn_at(text: str, frame: FrameType) -> None:
    """Warn at the line of the declaration."""
    # `warnings.warn` counts frames from its caller (`stacklevel`), and how many lie between depends
    # on how the decorator was used. The frame is known, so what `warn` would look up is given.
    warnings.warn_explicit(
        text,
        UserWarning,
        frame.f_code.co_filename,
        frame.f_lineno,
        module=str(frame.f_globals.get("__name__", "<unknown>")),
        registry=frame.f_globals.setdefault("__warningregistry__", {}),
    )
