"""What a tool is, once declared: plain frozen values, without any of the user's classes."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict, get_args

from lutumpy.core.tool_names import TOOL_NAME
from lutumpy.errors import DeclarationError
from lutumpy.plain.strict_json import copy_json
from lutumpy.plain.values import dataclass

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.core.text_inputs import TextInput

__all__ = [
    "TOOL_NAME",
    "Effect",
    "ProviderSettings",
    "ToolDef",
    "ToolOptions",
    "content_of",
    "copy_settings",
    "make_options",
]

DEFAULT_TIMEOUT = 15.0
"""Seconds for one attempt of a tool that doesn't say how long it may take."""

DEFAULT_MAX_RETRIES = 3
"""Attempts after the first one, for a tool that doesn't say how many."""

Effect = Literal["read", "idempotent", "once"]
"""What running a tool again does: nothing, the same once more, or something new each time."""


ProviderSettings: TypeAlias = "Mapping[str, Mapping[str, JsonValue]]"
"""What single APIs are told of a tool, by the name of each: keys that are in the tool it gets."""


def copy_settings(value: Any) -> dict[str, dict[str, Any]] | None:
    """A copy of what `provider=` was given, without APIs that are told nothing; `None` for nothing.

    Raises:
        ValueError: It is not a mapping from names of APIs to mappings, or holds what is not JSON.
    """
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(
            f"provider= takes a mapping from the name of an API to what it is told, not "
            f"{value!r:.100}"
        )
    copied: dict[str, dict[str, Any]] = {}
    for api, settings in value.items():
        if not isinstance(api, str) or not isinstance(settings, Mapping):
            raise ValueError(
                "provider= takes a mapping from the name of an API to what it is told, a mapping "
                f"too; it has {api!r:.100}: {settings!r:.100}"
            )
        try:
            copied[api] = copy_json(settings, api)
        except (TypeError, ValueError) as error:
            raise ValueError(f"provider= takes JSON; {error}") from error
    return {api: settings for api, settings in copied.items() if settings} or None


def _copy_annotations(value: Any) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, Mapping):
        raise ValueError(f"annotations= takes a mapping, not {value!r:.100}")
    try:
        copied: dict[str, Any] = copy_json(value, "annotations")
    except (TypeError, ValueError) as error:
        raise ValueError(f"annotations= takes JSON; {error}") from error
    return copied


if TYPE_CHECKING:
    # A name for checkers alone: typed dictionaries are slow to build.

    class ToolSettings(TypedDict, total=False):
        """What every decorator of tools takes: names, and the fields of `ToolOptions`."""

        name: str | None
        description: str | None
        timeout: float
        max_retries: int
        idempotent: bool
        effect: Effect
        strict: bool | None
        late: bool
        provider: ProviderSettings | None
        annotations: Mapping[str, JsonValue] | None


def make_options(decorator: str, settings: Mapping[str, Any]) -> ToolOptions:
    """The options in the keyword arguments of a decorator.

    Raises:
        TypeError: One of them isn't an option.
        DeclarationError: A value is out of range, or not JSON where it has to be.
    """
    for name in settings:
        if name not in ToolOptions.__match_args__:
            raise TypeError(f"{decorator}() got an unexpected keyword argument {name!r}")
    return ToolOptions(**settings)


@dataclass(frozen=True, slots=True)
class ToolOptions:
    """How a tool may be run and offered.

    Attributes:
        timeout: Seconds for one attempt.
        max_retries: Attempts after the first one; only idempotent tools are retried, and only after
            a timeout.
        idempotent: Whether running twice is the same as running once. Short for
            `effect="idempotent"`.
        effect: What running the tool again does: `"read"`, `"idempotent"` or `"once"`.
        strict: Whether the provider should enforce the schema; `None` leaves that to the adapter.
        provider: Settings of the tool for one API alone, by the API's name: keys that its adapter
            puts into the tool. A `type` takes the place of the declaration. A copy of what was
            given, not to be changed.
        annotations: Hints about the tool for programs, as `readOnlyHint` of MCP. Never sent to a
            model. A copy of what was given, not to be changed.
        late: Whether its result may come later (`call.later`, `Later`).

    Raises:
        DeclarationError: A value is out of range, or not JSON where it has to be.
    """

    timeout: float = DEFAULT_TIMEOUT
    max_retries: int = DEFAULT_MAX_RETRIES
    idempotent: bool = False
    effect: Effect = "once"
    strict: bool | None = None
    provider: ProviderSettings | None = field(default=None, hash=False)
    annotations: Mapping[str, JsonValue] | None = field(default=None, hash=False)
    late: bool = False

    def __post_init__(self) -> None:
        # Annotations bind only those who use a type checker, and `bool` is an `int`.
        timeout: Any = self.timeout
        max_retries: Any = self.max_retries
        idempotent: Any = self.idempotent
        strict: Any = self.strict
        if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
            raise DeclarationError(f"timeout must be a number of seconds, not {timeout!r}")
        if not timeout > 0:  # NaN, too
            raise DeclarationError(f"timeout must be more than 0 seconds, not {timeout!r}")
        if sys.float_info.max < timeout < math.inf:
            raise DeclarationError("timeout must be a number of seconds that a float can hold")
        if isinstance(max_retries, bool) or not isinstance(max_retries, int) or max_retries < 0:
            raise DeclarationError(
                f"max_retries must be a whole number of 0 or more, not {max_retries!r}"
            )
        if not isinstance(idempotent, bool):
            raise DeclarationError(f"idempotent must be True or False, not {idempotent!r}")
        if self.effect not in get_args(Effect):
            raise DeclarationError(
                f'effect must be "read", "idempotent" or "once", not {self.effect!r}'
            )
        if strict is not None and not isinstance(strict, bool):
            raise DeclarationError(f"strict must be True, False or None, not {strict!r}")
        if self.late is not True and self.late is not False:
            raise DeclarationError(f"late must be True or False, not {self.late!r}")
        # What the user changes later must change nothing here. The class is frozen.
        try:
            object.__setattr__(self, "provider", copy_settings(self.provider))
            object.__setattr__(self, "annotations", _copy_annotations(self.annotations))
        except ValueError as error:
            raise DeclarationError(str(error)) from error
        # Two spellings of one thing, which must agree afterwards.
        if self.idempotent and self.effect == "once":
            object.__setattr__(self, "effect", "idempotent")
        elif self.effect == "idempotent":
            object.__setattr__(self, "idempotent", True)


@dataclass(frozen=True, slots=True)
class ToolDef:
    """The definition of one tool, as every adapter sees it. Equal by value, hashed by name.

    Attributes:
        name: Matches `[a-zA-Z0-9_-]{1,64}`.
        description: What the model sees; empty when nothing was written.
        input_schema: JSON Schema 2020-12 of the arguments; its root is an object with `properties`.
            Not to be changed.
        output_schema: JSON Schema of the result; `None` when the tool returns nothing.
        options: How it may be run and offered.
        text: What it says of its text, for a tool under `text_tool`; `None` for any other.
    """

    name: str
    description: str = field(hash=False)
    input_schema: dict[str, Any] = field(hash=False)
    output_schema: dict[str, Any] | None = field(default=None, hash=False)
    options: ToolOptions = field(default=ToolOptions(), hash=False)
    text: TextInput | None = field(default=None, hash=False)

    @property
    def digest(self) -> str:
        """`sha256:` and a digest of what can be decided on.

        That is the description, the input and the output schema, `strict`, `provider`, what a text
        tool says of its text, the effect, and whether it may answer later (`late`). It is worked
        out each time.
        """
        # Rare, and hashing is slow to import.
        from lutumpy.tools.digests import canonical_content, digest_of

        # The digest of a lock file (`lutumpy.tool_doctor`) is over what the model is shown alone.
        # Whoever lets a call run has decided on the effect as well.
        content = {**content_of(self), "effect": self.options.effect}
        # Left out where it isn't, as in digests that were made before it was known.
        if self.options.late:
            content["late"] = True
        return digest_of(canonical_content(content))


def content_of(definition: ToolDef) -> dict[str, Any]:
    """What the model is shown of a tool."""
    content: dict[str, Any] = {
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "strict": definition.options.strict,
    }
    # Left out where there is nothing, as in locks that were written before it was known.
    if definition.options.provider:
        content["provider"] = definition.options.provider
    if definition.text is not None:
        wanted = definition.text.format
        grammar = None if wanted is None else {wanted.syntax: wanted.definition}
        content["text"] = {"format": grammar, "description": definition.text.description}
    return content
