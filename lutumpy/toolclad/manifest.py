"""A manifest that was checked: what its file says, and what it makes of values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lutumpy import ToolError
from lutumpy.plain.values import dataclass
from lutumpy.toolclad.arguments import Argument
from lutumpy.toolclad.command import Command, Spelled
from lutumpy.toolclad.http_request import HttpRequest, HttpTemplate
from lutumpy.toolclad.output import OutputReader
from lutumpy.toolclad.tables import RiskTier
from lutumpy.tools.json_schema import JsonSchema

__all__ = ["Manifest"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest, as it was when it was loaded.

    Attributes:
        name: The name of the tool.
        version: What the manifest says of the program's version.
        description: What the model sees.
        risk_tier: How much harm the tool can do.
        human_approval: Whether a person has to approve each call.
        timeout: Seconds for one run; at most those of the caller.
        cedar: `[tool.cedar]`, for a policy engine.
        path: The file.
        digest: SHA-256 of the file.
        program: The absolute path of the program, as it was found; empty where a request is sent.
        values: What the arguments have to fit.
        arguments: The arguments by name.
        template: The command with its places; or the request, of a manifest with `[http]`.
        reader: What reads the program's output, or the answer.
        warnings: What a person should look at.
        directory: Where the program runs, so where files of credentials have to be.
    """

    name: str
    version: str
    description: str
    risk_tier: RiskTier
    human_approval: bool
    timeout: float
    cedar: Mapping[str, Any]
    path: Path
    digest: str
    program: str
    values: JsonSchema
    arguments: Mapping[str, Argument]
    template: Command | HttpTemplate
    reader: OutputReader
    warnings: tuple[str, ...]
    directory: Path

    @property
    def schema(self) -> Mapping[str, Any]:
        """JSON Schema of the arguments. Not to be changed."""
        document: Mapping[str, Any] = self.values.document
        return document

    def clean(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as they are used.

        Raises:
            ToolError: Some can't be used; the text names all of them, for the model.
        """
        cleaned = self._clean_each(values)
        self._build(cleaned)
        return cleaned

    def command(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """What a call with these values runs: the program's name and its arguments; or the method
        and the address of a request, with the names of secrets in their places.

        Raises:
            ToolError: Some values can't be used.
        """
        built = self.build(values)
        return built.shown if isinstance(built, HttpRequest) else built

    def build(self, values: Mapping[str, Any]) -> tuple[str, ...] | HttpRequest:
        """What a call with these values runs: a command, or a request with its secrets.

        Raises:
            ToolError: Some values can't be used.
        """
        return self._build(self._clean_each(values))

    def _clean_each(self, values: Mapping[str, Any]) -> dict[str, Any]:
        misfits = self.values.failures(dict(values))
        if misfits:
            lines = [f"{'.'.join(map(str, path))}: {words}" for path, words in misfits]
            raise ToolError("\n".join(lines))
        cleaned: dict[str, Any] = {}
        problems: list[str] = []
        for name, value in values.items():
            try:
                cleaned[name] = self.arguments[name].clean(value)
                self._find_credentials(name, cleaned[name])
            except ValueError as error:
                problems.append(f"{name}: {error}")
        if problems:
            raise ToolError("\n".join(problems))
        return cleaned

    def _find_credentials(self, name: str, value: Any) -> None:
        """Raise `ValueError` for a file of credentials that isn't there."""
        if self.arguments[name].kind != "credential_file":
            return
        if not (self.directory / str(value)).is_file():
            raise ValueError(f"there is no file {str(value)[:200]!r}")

    def _build(self, cleaned: Mapping[str, Any]) -> tuple[str, ...] | HttpRequest:
        spelled: dict[str, Spelled] = {}
        for name, argument in self.arguments.items():
            if name in cleaned:
                spelled[name] = Spelled(argument.spell(cleaned[name]), argument.is_free_text)
            else:
                spelled[name] = Spelled(argument.default, False)
        try:
            return self.template.build(spelled)
        except ValueError as error:
            raise ToolError(str(error)) from None
