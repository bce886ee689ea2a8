"""A manifest that was checked: what its file says, and what it makes of values."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lutumpy import ToolError
from lutumpy.plain.values import dataclass
from lutumpy.toolclad.arguments import Argument
from lutumpy.toolclad.command import Command, Spelled
from lutumpy.toolclad.output import OutputReader
from lutumpy.toolclad.tables import RiskTier

__all__ = ["Manifest"]


@dataclass(frozen=True, slots=True)
class Manifest:
    """One manifest, as it was when it was loaded.

    Attributes:
        name: The name of the tool.
        version: What the manifest says of the program's version.
        description: What the model is told.
        risk_tier: How much harm the tool can do.
        human_approval: Whether a person has to approve each call.
        timeout: Seconds for one run; at most those of the caller.
        cedar: `[tool.cedar]`, for a policy engine.
        path: The file.
        digest: SHA-256 of the file.
        program: The absolute path of the program, as it was found.
        schema: JSON Schema of the arguments.
        arguments: The arguments by name.
        template: The command with its places.
        reader: What reads the program's output.
        warnings: What a person should look at.
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
    schema: Mapping[str, Any]
    arguments: Mapping[str, Argument]
    template: Command
    reader: OutputReader
    warnings: tuple[str, ...]

    def clean(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of a call as they are used.

        Raises:
            ToolError: Some can't be used; the text names all of them, for the model.
        """
        cleaned, _ = self._fence(values)
        return cleaned

    def command(self, values: Mapping[str, Any]) -> tuple[str, ...]:
        """The command that a call with these values runs: the program's name and its arguments.

        Raises:
            ToolError: Some values can't be used.
        """
        _, command = self._fence(values)
        return command

    def _fence(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        cleaned: dict[str, Any] = {}
        spelled: dict[str, Spelled] = {}
        problems = [
            f"{name}: there is no such argument" for name in values if name not in self.arguments
        ]
        for name, argument in self.arguments.items():
            if name in values:
                try:
                    value = argument.clean(values[name])
                except ValueError as error:
                    problems.append(f"{name}: {error}")
                    continue
                cleaned[name] = value
                spelled[name] = Spelled(argument.spell(value), argument.is_free_text)
            elif argument.required:
                problems.append(f"{name}: Field required")
            else:
                spelled[name] = Spelled(argument.default, False)
        command: tuple[str, ...] = ()
        if not problems:
            try:
                command = self.template.build(spelled)
            except ValueError as error:
                problems.append(str(error))
        if problems:
            raise ToolError("\n".join(problems))
        return cleaned, command
