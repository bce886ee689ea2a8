"""What a hook decides about one call."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, Union, overload

from typing_extensions import TypeVar

from lutumpy.plain.values import dataclass

C = TypeVar("C", default=Any)
I = TypeVar("I", default=Any)
O = TypeVar("O", default=Any)
I_co = TypeVar("I_co", covariant=True, default=Any)
O_co = TypeVar("O_co", covariant=True, default=Any)


class Unchanged:
    """The input that the hook got, so that the hook need not hold it."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "unchanged"

    def __reduce__(self) -> str:
        # It is recognised by identity, so a copied or pickled one has to be this very object.
        return "UNCHANGED"


class Changes:
    """The input that the hook got, with other values for some arguments.

    Attributes:
        values: The new values by argument name.
    """

    __slots__ = ("values",)

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values: Mapping[str, Any] = values

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Changes) and self.values == other.values

    def __hash__(self) -> int:
        # Of the names alone: the values need not be hashable.
        return hash(tuple(self.values))

    def __repr__(self) -> str:
        from lutumpy.plain.brief_repr import brief, brief_list

        return brief_list([f"{name}={brief(held, 40)}" for name, held in self.values.items()], 80)


UNCHANGED: Any = Unchanged()


@dataclass(frozen=True, slots=True)
class RunNormally(Generic[I_co]):
    """The call goes on: to the next hook, and at the end to the code that executes it.

    `RunNormally()` passes it on as it is, `RunNormally(input)` with this input,
    `RunNormally.edited(...)` with other values for some arguments.
    """

    input: I_co = UNCHANGED

    # A checker can't infer `I` from a default, so it is shown two ways to make one.
    if TYPE_CHECKING:

        @overload
        def __init__(self: RunNormally[Any]) -> None: ...
        @overload
        def __init__(self, input: I_co) -> None: ...
        def __init__(self, input: Any = ...) -> None: ...

    @staticmethod
    def edited(**changes: Any) -> RunNormally[Any]:
        """The call goes on with these values for some of its arguments; the others stay.

        The values are validated when the decision is applied. A name that is not an argument of
        the tool, or a value that doesn't fit, is a `HookError` then.
        """
        return RunNormally(Changes(changes)) if changes else RunNormally()

    def __repr__(self) -> str:
        if self.input is UNCHANGED:
            return "RunNormally()"
        if isinstance(self.input, Changes):
            return f"RunNormally.edited({self.input!r})"
        from lutumpy.plain.brief_repr import brief

        return f"RunNormally(input={brief(self.input)})"


@dataclass(frozen=True, slots=True)
class Complete(Generic[O_co]):
    """The call is answered with this output; the tool isn't run."""

    output: O_co


@dataclass(frozen=True, slots=True)
class Reject:
    """The call is not run; the model sees the reason."""

    reason: str


@dataclass(frozen=True, slots=True)
class Hold:
    """A person has to decide the call. Later hooks aren't asked; `ToolRoundPlan.decide` is.

    Until then the plan can't be committed, but it can be written down (`suspend`) and taken up
    again, in another process too.

    Attributes:
        reason: The reason that the person sees.
    """

    reason: str = ""


ToolDecision: TypeAlias = Union[RunNormally[I], Complete[O], Reject, Hold]
"""What a hook decides about a call: pass it on, answer it, reject it, or hold it for a person."""

Policy: TypeAlias = Callable[[C], Union[ToolDecision[Any, Any], Awaitable[ToolDecision[Any, Any]]]]
"""A plain function that decides every call in place of a registry of hooks."""
