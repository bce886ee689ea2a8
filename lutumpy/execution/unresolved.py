"""Calls whose effect is unknown: equal calls are not run until somebody has decided."""

from __future__ import annotations

from dataclasses import dataclass

from lutumpy import ToolMetadata
from lutumpy.hooks import BaseToolCall
from lutumpy.plain import json_values
from lutumpy.tools import call_arguments

__all__ = ["UnresolvedCall"]


@dataclass(frozen=True, slots=True)
class UnresolvedCall:
    """A call of a tool with the effect `once` that began and gave no usable answer.

    Attributes:
        scope: The scope of the run.
        metadata: The call.
        arguments: A text that is the same for equal arguments, edits of hooks included.
    """

    scope: str
    metadata: ToolMetadata
    arguments: str


class Unresolved:
    """The calls of an executor that wait for a decision, by scope, tool and arguments."""

    __slots__ = ("_calls",)

    def __init__(self) -> None:
        self._calls: dict[tuple[str, str, str], UnresolvedCall] = {}

    def add(self, call: BaseToolCall, scope: str) -> None:
        """Keep a call."""
        found = UnresolvedCall(scope, call.metadata, call_arguments(call))
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
    return call.scope, call.metadata.name, call.arguments
