"""Origins and settings of turns as JSON values, and back: dumps of version 3 have them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.text_inputs import Lark, Regex, TextFormat, TextInput
from lutumpy.core.tool_specs import ToolSpec
from lutumpy.core.turn_origin import TurnOrigin
from lutumpy.core.turn_settings import KEPT, TurnSettings
from lutumpy.errors import TranscriptError
from lutumpy.plain import json_values

__all__ = ["dump_origin", "dump_settings", "dump_spec", "load_origin", "load_settings"]

_ORIGIN_FIELDS = frozenset({"host", "model", "prefix"})
_FORMATS: Mapping[str, type[Lark] | type[Regex]] = {"lark": Lark, "regex": Regex}


def dump_origin(origin: TurnOrigin) -> dict[str, Any]:
    """An origin as JSON values; what isn't known is left out. Its API is that of the turn."""
    known = {"host": origin.host, "model": origin.model, "prefix": origin.prefix}
    return {name: value for name, value in known.items() if value is not None}


def load_origin(api: str, data: Any) -> TurnOrigin:
    """The origin of a turn. Raises `TranscriptError` if the data isn't one."""
    if type(data) is dict and data.keys() <= _ORIGIN_FIELDS:
        host, model, prefix = data.get("host"), data.get("model"), data.get("prefix")
        # Each turn has one, and a function for each field would be most of what loading it costs.
        if (
            (host is None or type(host) is str)
            and (model is None or type(model) is str)
            and (prefix is None or type(prefix) is str)
        ):
            return TurnOrigin(api, host, model, prefix)
    fields = _expect(data, dict, "origin")
    texts = {name: _optional_text(fields, name) for name in ("host", "model", "prefix")}
    if unknown := sorted(fields.keys() - texts.keys()):
        raise TranscriptError(f"origin has unknown fields: {', '.join(unknown)}")
    return TurnOrigin(api, **texts)


def dump_settings(settings: TurnSettings) -> dict[str, Any]:
    """A record as JSON values; what it doesn't say is left out."""
    dumped: dict[str, Any] = {}
    if settings.is_base:
        dumped["is_base"] = True
    if settings.defined:
        dumped["defined"] = [dump_spec(spec) for spec in settings.defined]
    for name in ("deferred", "added", "removed", "reminders"):
        if getattr(settings, name):
            dumped[name] = list(getattr(settings, name))
    if settings.output is not KEPT:
        dumped["output"] = None if settings.output is None else _dump_output(settings.output)
    if settings.effort is not KEPT:
        dumped["effort"] = settings.effort
    if settings.left_out:
        dumped["left_out"] = settings.left_out
    return dumped


def load_settings(data: Any) -> TurnSettings:
    """A record. Raises `TranscriptError` if the data isn't one."""
    fields = dict(_expect(data, dict, "settings"))
    is_base = _expect(fields.pop("is_base", False), bool, "settings.is_base")
    defined = _expect(fields.pop("defined", []), list, "settings.defined")
    names = {
        name: _texts(fields.pop(name, []), name)
        for name in ("deferred", "added", "removed", "reminders")
    }
    left_out = _expect(fields.pop("left_out", 0), int, "settings.left_out")
    if left_out < 0 or isinstance(left_out, bool):
        raise TranscriptError(f"settings.left_out is {left_out}")
    output: Any = fields.pop("output", KEPT)
    effort: Any = KEPT
    if "effort" in fields:
        effort = _optional_text(fields, "effort")
        del fields["effort"]
    if fields:
        raise TranscriptError(f"settings have unknown fields: {', '.join(sorted(fields))}")
    settings = TurnSettings(
        is_base,
        tuple([_load_spec(spec) for spec in defined]),
        output=output if output is KEPT or output is None else _load_output(output),
        effort=effort,
        left_out=left_out,
        **names,
    )
    _check_names(settings)
    return settings


def _check_names(settings: TurnSettings) -> None:
    defined = [spec.name for spec in settings.defined]
    if len(set(defined)) != len(defined):
        raise TranscriptError("settings define a tool twice")
    if set(settings.added) & set(settings.removed):
        raise TranscriptError("settings add and remove the same tool")


def dump_spec(spec: ToolSpec) -> dict[str, Any]:
    """A tool's definition as JSON values."""
    dumped: dict[str, Any] = {
        "name": spec.name,
        "description": spec.description,
        "schema": json_values.clean(spec.schema),
    }
    if spec.strict is not None:
        dumped["strict"] = spec.strict
    if spec.late:
        dumped["late"] = True
    if spec.provider:
        dumped["provider"] = json_values.clean(spec.provider)
    if spec.text is not None:
        wanted = spec.text.format
        text: dict[str, Any] = {"description": spec.text.description}
        if wanted is not None:
            text |= {"syntax": wanted.syntax, "definition": wanted.definition}
        dumped["text"] = text
    return dumped


def _load_spec(data: Any) -> ToolSpec:
    fields = _expect(data, dict, "a tool of the settings")
    strict = fields.get("strict")
    provider = _expect(fields.get("provider", {}), dict, "provider")
    for api, settings in provider.items():
        _expect(settings, dict, f"provider.{api}")
    # The copies are the transcript's own: whoever has the dump may change it.
    return ToolSpec(
        _expect(fields.get("name"), str, "the name of a tool"),
        _expect(fields.get("description"), str, "the description of a tool"),
        json_values.copied(_expect(fields.get("schema"), dict, "the schema of a tool")),
        None if strict is None else _expect(strict, bool, "strict"),
        json_values.copied(provider),
        None if fields.get("text") is None else _load_text(fields["text"]),
        _expect(fields.get("late", False), bool, "late"),
    )


def _load_text(data: Any) -> TextInput:
    fields = _expect(data, dict, "text")
    wanted: TextFormat | None = None
    if fields.get("syntax") is not None:
        kind = _FORMATS.get(_expect(fields["syntax"], str, "text.syntax"))
        if kind is None:
            raise TranscriptError(f"text.syntax is {fields['syntax']!r}")
        wanted = kind(_expect(fields.get("definition"), str, "text.definition"))
    return TextInput(wanted, _expect(fields.get("description", ""), str, "text.description"))


def _dump_output(output: OutputSpec) -> dict[str, Any]:
    dumped: dict[str, Any] = {"name": output.name, "schema": json_values.clean(output.schema)}
    if output.description:
        dumped["description"] = output.description
    if output.strict is not None:
        dumped["strict"] = output.strict
    return dumped


def _load_output(data: Any) -> OutputSpec:
    fields = _expect(data, dict, "settings.output")
    strict = fields.get("strict")
    return OutputSpec(
        _expect(fields.get("name"), str, "output.name"),
        json_values.copied(_expect(fields.get("schema"), dict, "output.schema")),
        _expect(fields.get("description", ""), str, "output.description"),
        None if strict is None else _expect(strict, bool, "output.strict"),
    )


def _texts(data: Any, name: str) -> tuple[str, ...]:
    entries = _expect(data, list, f"settings.{name}")
    return tuple([_expect(entry, str, f"an entry of settings.{name}") for entry in entries])


def _optional_text(fields: Mapping[str, Any], name: str) -> str | None:
    value = fields.get(name)
    return None if value is None else _expect(value, str, name)


def _expect(value: Any, kind: type[Any], name: str) -> Any:
    if not isinstance(value, kind):
        raise TranscriptError(f"{name} is {type(value).__name__}, not {kind.__name__}")
    return value
