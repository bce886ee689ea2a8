"""What another process needs to run one call: a ticket, as JSON values and back."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from dataclasses import field, fields
from typing import TYPE_CHECKING, Any, get_args

from lutumpy.core.items import ToolMetadata
from lutumpy.plain.safe_text import safe_repr
from lutumpy.plain.values import dataclass
from lutumpy.tools.definition import Effect

if TYPE_CHECKING:
    from pydantic import JsonValue

    from lutumpy.tools.signing import Signer

__all__ = ["CallTicket"]


@dataclass(frozen=True, slots=True)
class CallTicket:
    """One pending call of a plan, for whoever runs it in another process or another program.

    Attributes:
        scope: The conversation's id.
        call_id: The id of the call.
        tool: The name of the tool.
        arguments: The text of the arguments as the model wrote them.
        input: The input that was decided on, as JSON.
        key: The idempotency key of the call. It is never computed again (rule P9).
        effect: What running the tool again does.
        timeout: Seconds for one attempt; infinite where there is no limit.
        max_retries: Attempts after the first one.
        tool_digest: `ToolDef.digest` of the tool that was decided on.
        at: A digest of everything that was committed before the model's answer, as hexadecimal
            text.
        occurrence: How many equal calls of the answer come before this one.
        equal_to: A text that is the same for equal calls of one tool, edits of hooks included.
        is_text: Whether `arguments` is free text, and not JSON.
        late: Whether its result may come later.
        leg: Which leg of the call this is, from 1, where its tool may ask something in the middle
            of it and the sender holds questions for a person; else 0.
        resume: What the tool's code needs for a further leg, with the answers (`CallLeg.resume`).
    """

    scope: str
    call_id: str
    tool: str
    arguments: str
    input: JsonValue
    key: str
    effect: Effect
    timeout: float
    max_retries: int
    tool_digest: str
    at: str
    occurrence: int
    equal_to: str = field(default="", repr=False)
    is_text: bool = False
    late: bool = False
    leg: int = 0
    resume: JsonValue = field(default=None, repr=False)

    @property
    def metadata(self) -> ToolMetadata:
        """Which call it is."""
        make = ToolMetadata.of_text if self.is_text else ToolMetadata
        return make(self.call_id, self.tool, self.arguments)

    def dump(self, *, sign: Signer | None = None) -> dict[str, JsonValue]:
        """The ticket as JSON values; no timeout is `null`.

        Args:
            sign: Makes it tamper-evident to holders of the key, on its way through other hands.

        Raises:
            TypeError: `sign` isn't a signer.
        """
        dumped: dict[str, JsonValue] = {name: getattr(self, name) for name in _FIELDS}
        if self.timeout == math.inf:
            dumped["timeout"] = None
        # As in tickets that were made before these were known.
        if not self.late:
            del dumped["late"]
        if not self.leg:
            del dumped["leg"], dumped["resume"]
        if sign is not None:
            from lutumpy.tools.signing import Signer, seal  # most tickets stay in the house

            if not isinstance(sign, Signer):
                raise TypeError(f"sign= takes a Signer, not {type(sign).__name__}")
            seal(dumped, sign)
        return dumped

    @staticmethod
    def load(data: Mapping[str, Any], *, verify: Mapping[str, bytes] | None = None) -> CallTicket:
        """The ticket of a dump.

        Args:
            data: The dump, as it was decoded from JSON.
            verify: Keys by id. When given, a ticket that is unsigned, or signed with another key,
                is refused.

        Raises:
            ValueError: it isn't one; the message names what is wrong.
            PlanError: `unsigned`: it has no signature, or that of a key that is not known here.
                `tampered`: it was changed after it was signed. A `ValueError` too.
        """
        if not isinstance(data, Mapping):
            raise ValueError(f"a ticket is a JSON object, not {type(data).__name__}")
        if verify is not None or "digest" in data:
            _check_seal(data, verify)
        values = {"late": False, "leg": 0, "resume": None, **data}
        if "timeout" in values and values["timeout"] is None:
            values["timeout"] = math.inf
        for name, kinds in _KINDS.items():
            if name not in values:
                raise ValueError(f"the ticket has no {name}")
            value = values[name]
            if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
                raise ValueError(f"{name} of the ticket is {type(value).__name__}")
        # NaN isn't more than 0, and a whole number may be more than any float.
        timeout, retries = values["timeout"], values["max_retries"]
        if not timeout > 0 or sys.float_info.max < timeout < math.inf:
            raise ValueError("the timeout of the ticket is not a number of seconds above 0")
        if not 0 <= retries <= _MOST_RETRIES:
            raise ValueError("the max_retries of the ticket is not a number of attempts")
        if values["effect"] not in get_args(Effect):
            raise ValueError(f"the effect of the ticket is {values['effect']!r}")
        if not 0 <= values["occurrence"] <= _MOST_CALLS:
            raise ValueError(f"the occurrence of the ticket is {safe_repr(values['occurrence'])}")
        if not 0 <= values["leg"] <= _MOST_LEGS:
            raise ValueError(f"the leg of the ticket is {safe_repr(values['leg'])}")
        if "input" not in values:
            raise ValueError("the ticket has no input")
        # What a later release adds is left out.
        return CallTicket(**{name: values[name] for name in _FIELDS})


def _check_seal(data: Mapping[str, Any], verify: Mapping[str, bytes] | None) -> None:
    """Raise `PlanError` unless a ticket is as it was written, and by whom it should be (LR14)."""
    from lutumpy.tools.signing import check_digest, check_signature

    if verify is not None:
        check_signature(data, verify, "ticket")
    check_digest(data, "ticket")


_MOST_CALLS = 100_000
"""No answer has more calls; a ticket may come from anywhere."""

_MOST_RETRIES = 2**63 - 1

_MOST_LEGS = 1_000_000

_FIELDS = tuple([each.name for each in fields(CallTicket)])
_KINDS: Mapping[str, tuple[type[Any], ...]] = {
    **dict.fromkeys(("scope", "call_id", "tool", "arguments", "key", "effect"), (str,)),
    **dict.fromkeys(("tool_digest", "at", "equal_to"), (str,)),
    **dict.fromkeys(("max_retries", "occurrence", "leg"), (int,)),
    "timeout": (int, float),
    "is_text": (bool,),
    "late": (bool,),
}
