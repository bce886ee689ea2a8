"""What a hook decides about one call."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, Union

from typing_extensions import TypeVar

from lutumpy.core.values import dataclass

I = TypeVar("I", default=Any)
O = TypeVar("O", default=Any)
I_co = TypeVar("I_co", covariant=True, default=Any)
O_co = TypeVar("O_co", covariant=True, default=Any)


@dataclass(frozen=True, slots=True)
class RunNormally(Generic[I_co]):
    """The call goes on, with this input: to the next hook, and at the end to the code that executes it."""

    input: I_co


@dataclass(frozen=True, slots=True)
class Complete(Generic[O_co]):
    """The call is answered with this output; the tool isn't run."""

    output: O_co


@dataclass(frozen=True, slots=True)
class Reject:
    """The call is not run; the model is told why."""

    reason: str


ToolDecision: TypeAlias = Union[RunNormally[I], Complete[O], Reject]
"""What a hook says of a call: pass it on, answer it, or reject it."""
