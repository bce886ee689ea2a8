"""How much of a server's answer is passed on."""

from __future__ import annotations

from lutumpy.plain.values import dataclass

__all__ = ["Limits"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much of one answer is passed on.

    Attributes:
        max_chars: Characters of text in all; what is more is cut.
        max_bytes: Bytes of one image, sound or file; a larger one becomes a sentence.
    """

    max_chars: int = 50_000
    max_bytes: int = 5_000_000

    def __post_init__(self) -> None:
        for name in ("max_chars", "max_bytes"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name} must be a whole number, not {value!r}")
            if value < 1:
                raise ValueError(f"{name} must be 1 or more, not {value}")
