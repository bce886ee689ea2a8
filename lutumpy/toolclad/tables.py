"""The tables of a `.clad.toml` file: which keys there are, and what they may hold.

toolclad itself checks little of this: it ignores a key that it doesn't know, so a misspelled
`human_approval` would be no approval, and it takes any type for any other.
"""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError
from typing_extensions import Self

__all__ = [
    "RISK_TIERS",
    "ArgumentTable",
    "CommandTable",
    "HttpTable",
    "ManifestTable",
    "RiskTier",
    "explain_tables",
]

RiskTier = Literal["info", "low", "medium", "high", "critical"]
"""How much harm a tool can do, as its manifest says."""

RISK_TIERS: tuple[RiskTier, ...] = ("info", "low", "medium", "high", "critical")

# TOML has whole numbers of any length, NaN and infinities. What a manifest counts or compares with
# has to fit where it is used: schemas are JSON, and clocks take seconds that are a float.
_MOST = 2**63 - 1
_MOST_SECONDS = 10**9
_Whole: TypeAlias = Annotated[int, Field(ge=-_MOST, le=_MOST)]
_Status: TypeAlias = Annotated[int, Field(ge=100, le=599)]
_Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]


def _check_scalar(value: Any) -> Any:
    # A union of types would fail once for each of them, at the same place.
    if value is None or isinstance(value, (str, bool)):
        return value
    if isinstance(value, int) and -_MOST <= value <= _MOST:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise PydanticCustomError("scalar", "Input should be a text, a boolean or a number of 64 bits")


_Scalar: TypeAlias = Annotated[Any, AfterValidator(_check_scalar)]


class _Table(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True, frozen=True)


class ArgumentTable(_Table):
    """`[args.NAME]`."""

    position: _Whole = 0
    required: bool = False
    type: str = "string"
    description: str = ""
    default: _Scalar = None
    allowed: list[str] = []
    pattern: str = ""
    min: _Whole | None = None
    max: _Whole | None = None
    min_float: _Finite | None = None
    max_float: _Finite | None = None
    clamp: bool = False
    sanitize: list[str] = []
    schemes: list[str] = []
    scope_check: bool = False


class ToolTable(_Table):
    """`[tool]`."""

    name: str
    version: str = ""
    binary: str = ""
    description: str | None = Field(default=None, min_length=1)
    mode: Literal["oneshot"] = "oneshot"
    timeout_seconds: int = Field(default=60, gt=0, le=_MOST_SECONDS)
    risk_tier: RiskTier = "low"
    human_approval: bool = False
    dispatch: Literal["exec"] = "exec"
    # For policy engines, evidence stores and signatures: not for whoever runs the command.
    cedar: dict[str, Any] = {}
    evidence: dict[str, Any] = {}
    scope: dict[str, Any] = {}


class ConditionalTable(_Table):
    """`[command.conditionals.NAME]`."""

    when: str
    template: str


class CommandTable(_Table):
    """`[command]`, in the one form that is run; of a template, `exec` has the words."""

    exec: list[str] = Field(min_length=1)
    template: bool = False
    defaults: dict[str, _Scalar] = {}
    mappings: dict[str, dict[str, str]] = {}
    conditionals: dict[str, ConditionalTable] = {}


class HttpTable(_Table):
    """`[http]`."""

    method: Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    url: str
    headers: dict[str, str] = {}
    body_template: str | None = None
    success_status: list[_Status] = []
    error_status: list[_Status] = []


class OutputTable(_Table):
    """`[output]`."""

    format: Literal["text", "json", "jsonl", "csv", "xml"] = "text"
    parser: str = ""
    envelope: bool = True
    schema_: dict[str, Any] = Field(default={}, alias="schema")


class ManifestTable(_Table):
    """A whole file."""

    tool: ToolTable
    args: dict[str, ArgumentTable] = {}
    command: CommandTable | None = None
    http: HttpTable | None = None
    output: OutputTable

    @model_validator(mode="after")
    def _has_one_way(self) -> Self:
        if (self.command is None) == (self.http is None):
            raise PydanticCustomError(
                "one_way", "it has either [command], for a program, or [http], for a request"
            )
        return self


def explain_tables(error: ValidationError) -> list[str]:
    """What is wrong with the tables, a text for each place."""
    found: dict[str, str] = {}
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(map(str, one["loc"]))
        message = "there is no such key" if one["type"] == "extra_forbidden" else one["msg"]
        found.setdefault(place, message)
    return [f"{place}: {message}" if place else message for place, message in found.items()]
