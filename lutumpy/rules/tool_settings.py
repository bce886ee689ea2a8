"""What an API lets a user say about one tool beside its declaration, as data.

Such settings are beside the name, the description and the schema of a tool, which the adapter
writes. Each API has one `ToolSettingRules` in its `law`. Other keys are sent whether they are known
or not, since an API may have learned some; what it is known to refuse, the rules about its tools
say.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

__all__ = ["ToolSettingRules"]


@dataclass(frozen=True, slots=True)
class ToolSettingRules:
    """What settings of one tool may hold.

    Attributes:
        own: The keys of a tool that the adapter writes itself, each with what says it instead.
        check_type: Why a `type` can't take the place of the declaration of a tool, given the type
            and the tool's name; `None` if it can.
        examples: The key whose entries are examples of the tool's input, if there is one.
        nameless: Whether a tool whose `type` takes the place of its declaration is sent without a
            name, since its calls are items of a kind of their own.
    """

    own: Mapping[str, str]
    check_type: Callable[[str, str], str | None]
    examples: str | None = None
    nameless: bool = False

    def refusals(self, name: str, settings: Mapping[str, Any]) -> list[str]:
        """Why settings of the tool `name` can't be sent; a sentence for each reason.

        The settings alone are looked at. What the API says of the whole list of tools is found by
        the rules about that list.
        """
        reasons = [
            f"{key!r} can't be set: {instead}"
            for key, instead in self.own.items()
            if key in settings and (key == "name" or "type" not in settings)
        ]
        if "type" in settings:
            kind = settings["type"]
            if not isinstance(kind, str) or not kind:
                reasons.append(f"'type' is the name of a type of tools, not {kind!r}")
            else:
                reason = self.check_type(kind, name)
                reasons += [] if reason is None else [reason]
        examples = settings.get(self.examples) if self.examples is not None else None
        if examples is not None and not isinstance(examples, (list, tuple)):
            reasons.append(f"{self.examples!r} is a list of inputs, not {examples!r:.100}")
        return reasons
