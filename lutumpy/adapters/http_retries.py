"""When a request over HTTP is sent again, and after how many seconds. No I/O.

The rules are those of the SDKs of OpenAI and Anthropic, so that an adapter without an SDK behaves
as the others do.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

from lutumpy.adapters.provider_errors import is_connection_error, is_passing_status, retry_after
from lutumpy.adapters.sdk_unsent import is_unsent
from lutumpy.core.sdk_retries import note_retries

__all__ = ["Retries"]

_FIRST_PAUSE = 0.5
_LONGEST_PAUSE = 8.0
# A server that asks for more than this is asked again by whoever called, who reads `retry_after`.
_LONGEST_ASKED_PAUSE = 60.0
_JITTER = 0.25


class Retries:
    """The tries of one request.

    Args:
        most: How often it is sent again at most.

    Attributes:
        was_sent: Whether a try may have reached the provider. The last error alone can't tell.
    """

    __slots__ = ("_done", "_most", "was_sent")

    def __init__(self, most: int) -> None:
        self._most = most
        self._done = 0
        self.was_sent: bool = False

    def after_error(self, error: Exception) -> float | None:
        """Seconds until the next try when no answer came; `None` if there is none."""
        if is_connection_error(error):
            self.was_sent = self.was_sent or not is_unsent(error)
            return self._next_pause(None)
        return None

    def after_status(self, status: int, headers: Mapping[str, str]) -> float | None:
        """Seconds until the next try after an answer with an error; `None` if there is none."""
        self.was_sent = True
        should = headers.get("x-should-retry")
        if should == "false" or (should != "true" and not is_passing_status(status)):
            return None
        return self._next_pause(retry_after(headers))

    def _next_pause(self, asked: float | None) -> float | None:
        if self._done >= self._most:
            return None
        number, self._done = self._done, self._done + 1
        note_retries(1)
        if asked is not None and 0 < asked <= _LONGEST_ASKED_PAUSE:
            return asked
        # Tries of many programs that failed together shouldn't come back together.
        usual = min(_FIRST_PAUSE * 2.0**number, _LONGEST_PAUSE)
        return usual * (1 - _JITTER * random.random())
