"""One file to a manifest that was checked, or to everything that is wrong with it."""

# What is refused here, because toolclad would run it in a way that isn't safe, or not at all:
#
#   in the file                          why
#   -----------------------------------  --------------------------------------------------------
#   [mcp]                                `lutumpy.mcp` calls servers, and knows their tools
#   [session], [browser]                 nothing runs them
#   command.executor                     a script gets values as variables
#   command.template beside exec         one of them would be ignored
#   output.parser, a script              a second program that would read what strangers wrote
#   dispatch = "callback"                there is nothing to run
#
# A template is a command in one text. toolclad splits it when the values are in it, at their blanks
# as well. Here it is split once, when it is loaded and has no values: then each of its words is one
# element of `exec`, and everything that holds for these holds for it. A mapping or conditional that
# is a word of a template is split in the same way: the manifest's author wrote it. What only a
# shell would understand, such as a pipe, is refused.

from __future__ import annotations

import hashlib
import re
import shlex
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import ValidationError

from lutumpy.plain.preview import shorten
from lutumpy.toolclad import library
from lutumpy.toolclad.arguments import Argument, make_argument
from lutumpy.toolclad.command import Command, compile_command, find_shell
from lutumpy.toolclad.http_request import HttpTemplate, compile_http
from lutumpy.toolclad.manifest import Manifest
from lutumpy.toolclad.output import PARSERS, OutputReader
from lutumpy.toolclad.tables import ManifestTable, explain_tables
from lutumpy.tools.json_schema import JsonSchema

__all__ = ["Surroundings", "read_manifest"]

_BACK_ENDS = {
    "mcp": "calls of MCP servers are not made from a manifest; lutumpy.mcp makes them",
    "session": "sessions are not run",
    "browser": "browsers are not run",
}
_COMMANDS = {
    "executor": "a script that gets values as variables is not run; write exec = [...]",
}
_OF_SHELLS = re.compile(r"[|&;<>`]|\$[({A-Za-z_]")


class Surroundings(NamedTuple):
    """What is the same for every manifest.

    Attributes:
        types: Custom types by name.
        directory: Where programs run.
        search_path: Where programs are looked for, as in `PATH`.
        secrets: Variables, among them those with secrets for requests.
        most_seconds: Of one run, by the caller.
    """

    types: Mapping[str, Any]
    directory: Path
    search_path: str
    secrets: Mapping[str, str]
    most_seconds: float


def read_manifest(path: Path, around: Surroundings) -> Manifest | list[str]:
    """The manifest in a file, or everything that is wrong with it. The file is read here alone."""
    try:
        data = path.read_bytes()
        tables = library.read_toml(data)
    except (OSError, ValueError) as error:
        return [f"it can't be read: {shorten(str(error), 300)}"]
    problems = _refuse_forms(tables)
    _split_template(tables, problems)
    try:
        table = ManifestTable.model_validate(tables)
    except ValidationError as error:
        # A form that is refused leaves gaps, which would be told a second time.
        known = _BACK_ENDS.keys() | {"command"} if problems else ()
        found = explain_tables(error)
        problems += [one for one in found if re.split(r"[.:]", one)[0] not in known]
        return problems or found
    if problems:
        return problems
    try:
        library.parse_manifest(path)
    except Exception as error:  # whatever it stumbles on
        return [f"toolclad refuses it: {shorten(str(error), 300)}"]
    return _make_manifest(path, data, table, around)


def _refuse_forms(tables: dict[str, Any]) -> list[str]:
    problems = [f"[{name}]: {why}" for name, why in _BACK_ENDS.items() if name in tables]
    tool, command = tables.get("tool"), tables.get("command")
    if isinstance(command, dict):
        problems += [f"command.{key}: {why}" for key, why in _COMMANDS.items() if key in command]
    if isinstance(tool, dict) and tool.get("dispatch") == "callback":
        problems.append("tool.dispatch: a callback has nothing to run; declare a DynamicTool")
    return problems


def _split_template(tables: dict[str, Any], problems: list[str]) -> None:
    """Put the words of a template in the place of `exec`."""
    command = tables.get("command")
    if not isinstance(command, dict) or "template" not in command:
        return
    template = command.pop("template")
    if not isinstance(template, str):
        problems.append("command.template: it is a text")
        return
    if "exec" in command:
        problems.append("command.template: exec stands beside it; write exec = [...] alone")
        return
    if _OF_SHELLS.search(template):
        problems.append(
            "command.template: it has what only a shell understands, and none runs it; write "
            "exec = [...]"
        )
    try:
        words = shlex.split(template)
    except ValueError as error:
        problems.append(f"command.template: {error}; write exec = [...]")
        words = []
    if words:
        command["exec"], command["template"] = words, True


def _make_manifest(
    path: Path, data: bytes, table: ManifestTable, around: Surroundings
) -> Manifest | list[str]:
    problems: list[str] = []
    # Each of these says what is wrong by adding to the problems.
    arguments = _make_arguments(table, around.types, problems)
    values = _make_values(arguments, problems)
    template = _make_template(table, arguments, around, problems)
    reader = _make_reader(table, problems)
    program = _find_program(table, around, problems)
    if problems or values is None or template is None or reader is None or program is None:
        return problems
    tool = table.tool
    return Manifest(
        name=tool.name,
        version=tool.version,
        description=tool.description or tool.name,
        risk_tier=tool.risk_tier,
        human_approval=tool.human_approval,
        timeout=min(float(tool.timeout_seconds), around.most_seconds),
        cedar=dict(tool.cedar),
        path=path,
        digest=f"sha256:{hashlib.sha256(data).hexdigest()}",
        program=program,
        values=values,
        arguments=arguments,
        template=template,
        reader=reader,
        warnings=tuple(_find_warnings(table, template)),
        directory=around.directory,
    )


def _make_arguments(
    table: ManifestTable, types: Mapping[str, Any], problems: list[str]
) -> dict[str, Argument]:
    arguments: dict[str, Argument] = {}
    for name, fields in sorted(table.args.items(), key=lambda item: item[1].position):
        try:
            arguments[name] = make_argument(name, fields, types)
        except ValueError as error:
            problems.append(f"args.{name}: {error}")
    return arguments


def _make_values(arguments: Mapping[str, Argument], problems: list[str]) -> JsonSchema | None:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: dict(one.schema) for name, one in arguments.items()},
        "additionalProperties": False,
    }
    required = [name for name, one in arguments.items() if one.required]
    if required:
        schema["required"] = required
    try:
        return JsonSchema(schema)
    except ValueError as error:
        problems.append(f"args: {error}")
        return None


def _make_template(
    table: ManifestTable,
    arguments: Mapping[str, Argument],
    around: Surroundings,
    problems: list[str],
) -> Command | HttpTemplate | None:
    """The command or the request, with its places."""
    template: Command | HttpTemplate | list[str]
    if table.http is not None:
        bare = [name for name, one in arguments.items() if one.is_bare]
        template = compile_http(table.http, table.args.keys(), bare, around.secrets)
    else:
        assert table.command is not None
        template = compile_command(table.command, table.args.keys())
    if isinstance(template, list):
        problems += template
        return None
    return template


def _make_reader(table: ManifestTable, problems: list[str]) -> OutputReader | None:
    parser = table.output.parser or f"builtin:{table.output.format}"
    if parser not in PARSERS:
        problems.append(
            f"output.parser: {parser!r} is not one of {', '.join(PARSERS)}; other programs don't "
            "read what this one prints"
        )
        return None
    try:
        return OutputReader(parser, table.output.schema_)
    except ValueError as error:
        problems.append(f"output.schema: {error}")
        return None


def _find_program(table: ManifestTable, around: Surroundings, problems: list[str]) -> str | None:
    """The absolute path of the program, or `None`; empty where there is none to run."""
    if table.command is None:
        return ""
    name, binary = table.command.exec[0], table.tool.binary
    if binary and Path(binary).name != Path(name).name:
        problems.append(f"tool.binary is {binary!r}, and command.exec runs {name!r}")
    # A name with a slash is a place, as it is for a shell.
    place = str(around.directory / name) if "/" in name else name
    found = None if "\0" in name else shutil.which(place, path=around.search_path)
    if found is None:
        problems.append(f"command.exec: there is no program {name!r}")
    return found


def _find_warnings(table: ManifestTable, template: Command | HttpTemplate) -> list[str]:
    warnings: list[str] = []
    if isinstance(template, HttpTemplate):
        if template.secrets and template.origin.startswith("http:"):
            warnings.append("http.url is not https, so everybody on its way can read the secrets")
    elif template.is_shell and table.command is not None:
        shell = find_shell(table.command.exec)
        warnings.append(
            f"command.exec runs the shell {shell}, so a mistake in its script is one in what the "
            "model can do; name the program itself. Texts of the model's are held to characters "
            "that no shell interprets"
        )
    scoped = [name for name, one in table.args.items() if one.scope_check]
    if scoped:
        warnings.append(
            f"scope_check of {', '.join(scoped)} has no effect: check the scope in a hook"
        )
    return warnings
