"""One request of a manifest: sent once, with limits, and nothing of it followed elsewhere."""

# What is hard is to say what a failure left behind:
#
#   state         how it gets there                     the server
#   ------------  ------------------------------------  ------------------------------------------
#   not_started   there was no connection               has got nothing
#   ended         an answer came                        says by its status what it did
#   broken        the connection broke behind that      may have done it
#   timed_out     the time is up                        may have done it
#   interrupted   the caller was cancelled              may have done it
#
# Nothing is sent a second time, and no redirect is followed: it would take values, and secrets, to
# a server that the manifest doesn't name.

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal, TypeAlias

import anyio

from lutumpy.plain.key_spellings import spell_key
from lutumpy.toolclad.http_request import HttpRequest
from lutumpy.toolclad.process import Output

__all__ = ["HttpRun", "HttpState"]

HttpState: TypeAlias = Literal["not_started", "ended", "broken", "timed_out", "interrupted"]

_SHORTEST_SECRET = 4  # characters: a shorter one is a part of many texts
_PROXIES = ("https_proxy", "HTTPS_PROXY", "http_proxy", "HTTP_PROXY")


class HttpRun:
    """One request; `run` once.

    Args:
        request: What is sent.
        secrets: The secrets that are in it, by name.
        environment: Where the variables `HTTPS_PROXY` and `HTTP_PROXY` may be.
        most_output: How many bytes of the answer are kept.

    Attributes:
        output: The body of the answer.
        status: The status of the answer; `None` where none came.
        seconds: How long it took.
        error: What kept an answer from coming, if anything did.
    """

    def __init__(
        self,
        request: HttpRequest,
        secrets: Mapping[str, str],
        environment: Mapping[str, str],
        most_output: int,
    ) -> None:
        self.output: Output = Output(most_output)
        self.status: int | None = None
        self.seconds: float = 0.0
        self.error: Exception | None = None
        self._request = request
        self._secrets = secrets
        scheme = request.url.partition(":")[0]
        names = [name for name in _PROXIES if name.lower() == f"{scheme}_proxy"]
        self._proxy = next((environment[name] for name in names if environment.get(name)), None)

    @property
    def text(self) -> str:
        """What is kept of the answer, without the secrets that a server may send back: as they are,
        or as JSON and addresses spell them.
        """
        looked_for = [one for one in self._secrets.items() if len(one[1]) >= _SHORTEST_SECRET]
        if not looked_for:
            return self.output.text
        # The longest one first: a shorter one may be its beginning.
        looked_for.sort(key=lambda one: -len(one[1]))
        names = [name for name, _ in looked_for]
        pattern = "|".join([f"({spell_key(secret)})" for _, secret in looked_for])

        def name_secret(found: re.Match[str]) -> str:
            return f"{{_secret:{names[(found.lastindex or 1) - 1]}}}"

        return re.sub(pattern, name_secret, self.output.text)

    async def run(self, most_seconds: float) -> HttpState:
        """Send it, and read the answer until the time is up.

        Raises:
            BaseException: A cancellation of the caller.
        """
        import httpx2

        started = time.monotonic()
        state: HttpState = "timed_out"
        try:
            with anyio.move_on_after(most_seconds):
                state = await self._send()
        except (httpx2.ConnectError, httpx2.ProxyError, httpx2.UnsupportedProtocol) as error:
            self.error, state = error, "not_started"
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
            self.error, state = error, "broken"
        finally:
            self.seconds = time.monotonic() - started
        return state

    async def _send(self) -> HttpState:
        import httpx2

        sent = self._request
        headers = {"accept-encoding": "identity", **dict(sent.headers)}
        client = httpx2.AsyncClient(
            timeout=None,  # the whole has one, of the manifest
            follow_redirects=False,
            trust_env=False,  # neither proxies nor passwords (.netrc) that nobody has named
            proxy=self._proxy,
            verify=_tls(),
        )
        async with (
            client,
            client.stream(sent.method, sent.url, headers=headers, content=sent.body) as response,
        ):
            self.status = response.status_code
            async for data in response.aiter_bytes():
                self.output.add(data)
        return "ended"


@cache
def _tls() -> Any:
    """What certificates are checked against: made once, since that takes milliseconds."""
    import httpx2

    return httpx2.create_ssl_context(trust_env=False)
