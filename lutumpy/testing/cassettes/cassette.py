"""Real traffic of a program, recorded once and replayed without a network."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from lutumpy.testing.cassettes.clients import make_client
from lutumpy.testing.cassettes.tape import CassetteMatch, CassetteMode, Tape

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import ParamSpec, Self

    P = ParamSpec("P")

__all__ = ["Cassette", "CassetteMatch", "CassetteMode"]

C = TypeVar("C")


class Cassette:
    """Real traffic in a file: recorded once, and replayed without a network, a key or a cost.

    Give its clients to the adapters, or to whatever else uses an SDK:

        with Cassette("tests/cassettes/refund.jsonl") as cassette:
            llm = OpenAIResponses("gpt-5.6", client=cassette.client(AsyncOpenAI))

    On leaving, recordings that nobody asked for are an error, unless the block has raised.

    Args:
        path: The file: JSON Lines, an exchange on each, in the form that `lutumpy check` reads.
        mode: `replay` asks nobody, `record` asks for everything anew, `record-new` asks for what is
            behind the first request that differs.
        match: `order`: each request is held against the one that was recorded in its place. `any`:
            against all that are left, for sessions that run at the same time.
        ignore: JSON Pointers into the body to what isn't compared, as `/metadata`; a step `*`
            stands for any key or index.
        redact: Is given each text of a request or an answer before it is written, and gives what to
            write. Keys need no such function: see below.
        outputs: `False` leaves out what tools gave: it is neither written nor compared. What the
            model says of it is written all the same, and so are results in text in a `ResultForm`
            of your own.

    No header of a request is written, and of an answer only a few. The keys that a request sends in
    headers or query, and those in the environment, are masked wherever they are, and so is what
    looks like a key of a known maker. A file that would still hold a key isn't written.

    Raises:
        CassetteError: the file isn't there in mode `replay`, or can't be read.
        ValueError: there is no such mode or way to match.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        mode: CassetteMode = "replay",
        *,
        match: CassetteMatch = "order",
        ignore: Iterable[str] = (),
        redact: Callable[[str], str] | None = None,
        outputs: bool = True,
    ) -> None:
        self._tape = Tape(path, mode, match=match, ignore=ignore, redact=redact, outputs=outputs)

    def __repr__(self) -> str:
        return f"Cassette({str(self.path)!r}, {self.mode!r})"

    def __len__(self) -> int:
        """How many exchanges it holds."""
        return len(self._tape)

    @property
    def path(self) -> Path:
        """The file."""
        return self._tape.path

    @property
    def mode(self) -> CassetteMode:
        """As given."""
        return self._tape.mode

    @property
    def unused(self) -> tuple[int, ...]:
        """Which recordings nobody has asked for yet, counted from 1."""
        return self._tape.unused

    def client(self, make: Callable[P, C], *args: P.args, **options: P.kwargs) -> C:
        """A client of an SDK whose requests go through this cassette.

        Args:
            make: Makes the client: a class of an SDK (`AsyncOpenAI`, `AnthropicBedrock`,
                `genai.Client`), `boto3.client`, or `httpx2.AsyncClient`.
            args: Its arguments.
            options: Its options, as `base_url`. In mode `replay` no key is needed.

        A request that differs from what was recorded raises `CassetteMismatch`, through the SDK and
        its retries.

        Raises:
            TypeError: nothing is known of how such a client sends its requests, or the options have
                an HTTP client of their own.
        """
        return make_client(self._tape, make, args, options)

    def close(self, *, check: bool = True) -> None:
        """Close the connections for recording, and say what is wrong.

        Args:
            check: Whether what is wrong is raised; `False` where something else was raised already.

        Raises:
            CassetteError: recordings were left over, or the file wasn't written, since it would
                have held a key.
            CassetteMismatch: a request differed, and nobody has heard of it.
        """
        self._tape.close_connections()
        if check:
            self._tape.check()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # What was raised says more than what is left over because of it.
        self.close(check=error is None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._tape.aclose_connections()
        self.__exit__(kind, error, trace)
