"""Calls whose effect is unknown: equal calls are not run until somebody has decided."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from lutumpy import ToolMetadata
from lutumpy.hooks import BaseToolCall
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import explain_misfit
from lutumpy.plain.values import dataclass
from lutumpy.tools import call_arguments, final_arguments, written_text

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["UnresolvedCall"]

_CALL = ("id", "name", "arguments")


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call of a tool with the effect `once` that began and gave no usable answer.

    Attributes:
        scope: The scope of the run.
        metadata: The call.
        arguments: The arguments that it began with, as JSON text: those of hooks and people where
            they edited the call. `metadata` has what the model wrote.
        equal_to: A text that is the same for equal calls of one tool; `arguments`, where nobody
            edited the call.
    """

    scope: str
    metadata: ToolMetadata
    arguments: str
    equal_to: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.equal_to:
            object.__setattr__(self, "equal_to", self.arguments)

    @staticmethod
    def of(scope: str, metadata: ToolMetadata, equal_to: str) -> UnresolvedCall:
        """The call of a scope that is equal to those with this text (`call_arguments`)."""
        return UnresolvedCall(scope, metadata, final_arguments(metadata, equal_to), equal_to)

    def dump(self) -> dict[str, JsonValue]:
        """The call as JSON values."""
        call: dict[str, JsonValue] = dict(self.metadata._asdict())
        if self.metadata.is_text:
            call["is_text"] = True
        # The text that is compared, under the name that it had when it was the only one.
        return {"scope": self.scope, "call": call, "arguments": self.equal_to}

    @staticmethod
    def load(data: Mapping[str, Any]) -> UnresolvedCall:
        """The call of a dump.

        Raises:
            ValueError: it isn't one; the message says what is wrong.
        """
        try:
            call = data["call"]
            texts = [data["scope"], data["arguments"], *[call[name] for name in _CALL]]
            if not all(isinstance(text, str) for text in texts):
                raise TypeError("something in it is no text")
            make = ToolMetadata.of_text if call.get("is_text") is True else ToolMetadata
        except (AttributeError, KeyError, TypeError) as error:
            what = explain_misfit(error)
            raise ValueError(f"the dump of an unresolved call is invalid: {what}") from error
        scope, equal_to, *fields = texts
        metadata = make(*fields)
        if equal_to == metadata.arguments:
            # Older releases wrote the model's own spelling of calls that were given up.
            equal_to = written_text(metadata)
        return UnresolvedCall.of(scope, metadata, equal_to)


class Unresolved:
    """The calls of an executor that wait for a decision, by scope, tool and arguments."""

    __slots__ = ("_calls",)

    def __init__(self, calls: Iterable[UnresolvedCall] = ()) -> None:
        self._calls: dict[tuple[str, str, str], UnresolvedCall] = {}
        for call in calls:
            if not isinstance(call, UnresolvedCall):
                raise TypeError(f"unresolved= takes UnresolvedCalls, not {type(call).__name__}")
            self._calls[_key_of(call)] = call

    def add(self, call: BaseToolCall, scope: str) -> None:
        """Keep a call."""
        found = UnresolvedCall.of(scope, call.metadata, call_arguments(call))
        self._calls[_key_of(found)] = found

    def find(self, call: BaseToolCall, scope: str) -> UnresolvedCall | None:
        """The kept call that is equal to this one."""
        if not self._calls:
            return None  # as nearly always; comparing arguments would cost a validation
        return self._calls.get((scope, call.metadata.name, call_arguments(call)))

    def all(self) -> tuple[UnresolvedCall, ...]:
        """Every kept call, oldest first."""
        return tuple(self._calls.values())

    def remove(
        self, decided: BaseToolCall | ToolMetadata | UnresolvedCall, scope: str
    ) -> list[UnresolvedCall]:
        """Forget the calls that are equal to `decided`, and give them.

        A call is compared by its input, as it would be run; metadata by the arguments that the
        model wrote, whatever hooks made of them.
        """
        if isinstance(decided, UnresolvedCall):
            keys = [_key_of(decided)]
        elif isinstance(decided, BaseToolCall):
            keys = [(scope, decided.metadata.name, call_arguments(decided))]
        else:
            keys = [
                key
                for key, kept in list(self._calls.items())
                if (kept.scope, kept.metadata.name) == (scope, decided.name)
                and json_values.equal_arguments(kept.metadata.arguments, decided.arguments)
            ]
        return [self._calls.pop(key) for key in keys if key in self._calls]

    def remove_scope(self, scope: str) -> list[UnresolvedCall]:
        """Forget every call of a scope, and give them."""
        keys = [key for key in self._calls if key[0] == scope]
        return [self._calls.pop(key) for key in keys]


def _key_of(call: UnresolvedCall) -> tuple[str, str, str]:
    return call.scope, call.metadata.name, call.equal_to
