"""What a tool takes that takes a text in place of a JSON object: any text, or one of a grammar."""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

from lutumpy.plain.values import dataclass

__all__ = ["Lark", "Regex", "TextFormat", "TextInput"]


@dataclass(frozen=True, slots=True)
class Lark:
    """A Lark grammar that the text of a call has to fit.

    An API that knows grammars makes the model write such a text. Its dialect is not that of the
    package `lark` in every point: terminals are regular expressions of Rust, `%import` takes
    `common` alone, and templates and priorities are missing [llguidance's documentation]. So the
    text isn't parsed here: where an API doesn't enforce the grammar, the model is only told of it.

    Attributes:
        definition: The grammar; its first rule is called `start`.
    """

    definition: str
    syntax: ClassVar[Literal["lark"]] = "lark"


@dataclass(frozen=True, slots=True)
class Regex:
    r"""A regular expression that the text of a call has to match as a whole.

    An API that knows grammars makes the model write such a text. It is checked here too, in time
    that is linear in the text, so that a text that doesn't match never becomes a call on any API.

    Attributes:
        definition: The expression, in the syntax of Rust's `regex`, which has no look-around and no
            back-references.
    """

    definition: str
    syntax: ClassVar[Literal["regex"]] = "regex"


TextFormat: TypeAlias = "Lark | Regex"
"""What a text has to fit."""


@dataclass(frozen=True, slots=True)
class TextInput:
    """What a tool says of the text that it takes.

    Attributes:
        format: What the text has to fit; `None` for any text.
        description: What the text is, in words for the model; may be empty.
    """

    format: TextFormat | None = None
    description: str = ""
