"""What the tool doctor found, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lutumpy.apis import Api

__all__ = ["Finding", "OfferName", "Severity", "ToolListSize", "ToolReport"]

Severity = Literal["error", "warning", "info"]
"""`error`: the tool or the list will be refused. `warning`: something is missing, lost, or not
enforced as asked. `info`: it is spelled differently, and means the same to the model.
"""

OfferName = Literal["default", "all"]
"""The tools that an offer has by default, or all of the toolset."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that the developer of a toolset may want to know.

    Attributes:
        severity: How much it matters.
        rule: Its id: `tool.*` for the declaration, `strict.*` for the strict form, else the broken
            rule of an API.
        message: What it is, in words.
        tool: The tool's name; `None` when the list of tools is meant.
        apis: The APIs where it holds.
        path: Where in the input schema, as a JSON Pointer; empty for the whole.
        strict: Whether it holds only where the tool is sent as a strict one.
    """

    severity: Severity
    rule: str
    message: str
    tool: str | None = None
    apis: tuple[Api, ...] = ()
    path: str = ""
    strict: bool = False


@dataclass(frozen=True, slots=True)
class ToolListSize:
    """What the list of tools adds to every request of one API.

    Attributes:
        api: The API.
        strict: Whether the adapter makes tools strict where it can; otherwise only those are that
            ask for it.
        offer: Which tools.
        tools: How many.
        bytes: Of the JSON that is sent.
        tokens: About how many tokens of input that is; a rough figure, from recorded traffic.
        strict_tools: How many are sent as strict ones.
        optional_parameters: Optional parameters in those, which Anthropic limits.
        union_parameters: Union parameters in those, which Anthropic limits.
    """

    api: Api
    strict: bool
    offer: OfferName
    tools: int
    bytes: int
    tokens: int
    strict_tools: int
    optional_parameters: int
    union_parameters: int


@dataclass(frozen=True, slots=True)
class ToolReport:
    """Everything found out about a toolset.

    Attributes:
        name: The toolset's name.
        tools: The names of its tools, in order.
        findings: What was found: by tool in their order, errors first; what concerns the list comes
            last.
        sizes: The size of the list, for each API and way of sending it.
    """

    name: str
    tools: tuple[str, ...]
    findings: tuple[Finding, ...]
    sizes: tuple[ToolListSize, ...]

    def of(self, severity: Severity) -> tuple[Finding, ...]:
        """The findings of one severity."""
        return tuple([finding for finding in self.findings if finding.severity == severity])

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What will be refused."""
        return self.of("error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        """What is missing, lost or not enforced as asked."""
        return self.of("warning")
