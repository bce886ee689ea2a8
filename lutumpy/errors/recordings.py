"""What can go wrong with recorded traffic, and in runs that are watched."""

from __future__ import annotations

from typing import Any

from lutumpy.errors.base import LutumpyError

__all__ = ["CassetteError", "CassetteMismatch", "ProbeStopped"]


class CassetteError(LutumpyError, ValueError):
    """A cassette can't be used as it is: its file can't be read, recordings were left over, or what
    would be written holds a key. The message says which.
    """


class ProbeStopped(LutumpyError):
    """A check of a probe has stopped a run; the message has the tool and what the check found.

    Nothing of the round was run. It is the `__cause__` of the `HookError` that the loop raises.
    """


# A `BaseException`, as the failures of pytest are: the SDKs take whatever else a transport raises
# for a lost connection and ask again, and a program may have an `except Exception` of its own.
class CassetteMismatch(BaseException):
    """A request differs from the recorded one, or there is none left. Nothing was sent.

    Attributes:
        path: The cassette's file.
        request: Which request of the cassette it was, from 1.
        pointer: Where the two differ, as a JSON Pointer into the body; `None` where it isn't the
            body that differs.
        recorded: What was recorded there; `None` where nothing was.
        sent: What was about to be sent there; `None` where it is nothing.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str = "",
        request: int = 0,
        pointer: str | None = None,
        recorded: Any = None,
        sent: Any = None,
    ) -> None:
        super().__init__(message)
        self.path: str = path
        self.request: int = request
        self.pointer: str | None = pointer
        self.recorded: Any = recorded
        self.sent: Any = sent
