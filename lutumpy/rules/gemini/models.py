"""What is known of models by their names. Nothing is claimed of a model that isn't known."""

from __future__ import annotations

import re

__all__ = ["bare_name", "generation", "is_misspelled", "signs_calls"]

# `models/gemini-2.5-flash`, `publishers/google/models/gemini-3-pro-preview`, `gemini-3.5-flash`
_GENERATION = re.compile(r"gemini-(\d+)(?:\.(\d+))?(?:-|\Z)")
_NAME = re.compile(r"gemini-([a-z0-9.-]+)\Z")
_WORDS = frozenset(
    "flash pro ultra nano lite preview exp experimental latest image images audio live native "
    "dialog tts thinking vision generation computer use robotics er customtools text embedding "
    "deep research".split()
)
"""Words of which the names of models are made, as the vendor lists them [documentation]."""


def bare_name(model: str | None) -> str:
    """The name without what the path has before it."""
    return (model or "").rpartition("/")[2].lower()


def generation(model: str | None) -> tuple[int, int] | None:
    """The version that a model's name says; `None` where it says none."""
    found = _GENERATION.match(bare_name(model))
    return (int(found[1]), int(found[2] or 0)) if found is not None else None


def signs_calls(model: str | None) -> bool | None:
    """Whether a model requires the signatures of its calls back: from Gemini 3 on [recorded: 274 of
    274 accepted]; `None` for a model of which nothing is known.
    """
    known = generation(model)
    return None if known is None else known >= (3, 0)


def takes_allowed_names(model: str | None) -> bool:
    """Whether the choice of a request may name the functions that may be called while words stay
    possible (the mode VALIDATED): from Gemini 2.5 on [documentation: "Function calling"]; not for
    a model of which nothing is known.
    """
    known = generation(model)
    return known is not None and known >= (2, 5)


def is_misspelled(model: str | None) -> bool:
    """Whether a name begins like a Gemini model's and goes on in words that none has."""
    found = _NAME.match(bare_name(model))
    if found is None:
        return False
    words = [word for word in found[1].split("-") if not word.replace(".", "").isdecimal()]
    return any(word not in _WORDS and not re.fullmatch(r"\d+[a-z]|v\d+", word) for word in words)
