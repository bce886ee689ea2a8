"""llama.cpp's own HTTP server on the loopback, for any GGUF file."""

# What is hard: a native server must never outlive its block, whatever fails while it starts or
# ends, and the block may be sync or async.
#
#   state         _process   _clients      url, chat() ...        entering
#   -----------------------------------------------------------------------------
#   not running   None       empty         LocalServerError       starts the server
#   running       set        made on use   work                   LocalServerError
#   crashed       set        made on use   LocalServerError       LocalServerError
#
# `_start` leads from the first to the second; when it raises, the first remains and no process is
# left. `_stop` leads back from the other two, so the same object can be entered again.
#
# `async with` does the same work in a thread. Cancelling the task can't stop that thread, so a
# cancellation waits until the start has ended; leaving the block is shielded for the same reason.
# Clients are closed before the server: they hold connections, which it would wait for.

from __future__ import annotations

import importlib.util
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.errors import LocalServerError
from lutumpy.local.missing import missing_extra
from lutumpy.local.model_file import fetch
from lutumpy.local.process import ServerProcess, logger

if TYPE_CHECKING:
    from anthropic import Anthropic, AsyncAnthropic
    from openai import AsyncOpenAI, OpenAI

__all__ = ["LocalServer", "serve"]

HOST = "127.0.0.1"
API_KEY = "no-key-needed"
NO_PROXY: Mapping[str, None] = {"http://": None}


def serve(
    model: str | os.PathLike[str] | None = None,
    *,
    port: int = 0,
    context_tokens: int | None = 8192,
    slots: int = 1,
    threads: int | None = None,
    options: Mapping[str, Any] | None = None,
    start_timeout: float = 120.0,
) -> LocalServer:
    """A server to be entered: `with serve() as server:` or `async with`.

    It speaks Chat Completions, Responses and Messages on the loopback, without a key, and ends with
    the block or with the program, whichever ends first. It runs in a process of its own. Several
    may run at once.

    Args:
        model: A GGUF file; SmolLM2-135M-Instruct if omitted, which is fetched on entering if
            it isn't in the cache.
        port: Port to listen on, 0 for a free one.
        context_tokens: Longest conversation, its answer included, in tokens; `None` for what the
            model was trained with, which may need much memory. A model that was trained with less
            gets less.
        slots: How many requests are answered at the same time; further ones wait.
        threads: Threads for computing. Left out, it is one for SmolLM2, and llama.cpp's choice, a
            thread for each core, for a file of your own. They wait busily for each other: on a
            machine that has other work too, fewer are faster.
        options: Further parameters of llama.cpp, by their names in `xllamacpp.CommonParams`:
            `{"n_gpu_layers": 0}`, `{"sampling.top_k": 1}`. They win over what is here.
        start_timeout: Seconds that loading may take.

    Raises:
        ValueError: a number makes no sense.
    """
    return LocalServer(
        model,
        port=port,
        context_tokens=context_tokens,
        slots=slots,
        threads=threads,
        options=options,
        start_timeout=start_timeout,
    )


class LocalServer:
    """The running server: where it is, what its model is called, and adapters with clients for it.

    Args: see `serve`.

    Raises:
        ImportError: on entering: a package of the `local` extra is missing.
        FetchError: on entering, without a `model`: it can't be fetched.
        LocalServerError: on entering: the file is missing or no model, the port is taken, an option
            is unknown, or loading took too long. Nothing is left running.
    """

    def __init__(
        self,
        model: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        context_tokens: int | None = 8192,
        slots: int = 1,
        threads: int | None = None,
        options: Mapping[str, Any] | None = None,
        start_timeout: float = 120.0,
    ) -> None:
        _check_number("port", port, 0, 65535)
        _check_number("context_tokens", context_tokens, 1)
        _check_number("slots", slots, 1)
        _check_number("threads", threads, 1)
        if start_timeout <= 0:
            raise ValueError(f"start_timeout must be more than 0 seconds, not {start_timeout}")
        self._path = None if model is None else Path(model)
        self._port = port
        self._context_tokens = context_tokens
        self._slots = slots
        self._threads = threads if threads is not None or model is not None else 1
        self._options = dict(options or {})
        self._start_timeout = start_timeout
        self._process: ServerProcess | None = None
        self._clients: dict[str, Any] = {}
        self._async = False

    def __repr__(self) -> str:
        return f"LocalServer({'not running' if self._process is None else self._process.url})"

    # ------------------------------------------------------------- use

    @property
    def url(self) -> str:
        """`http://127.0.0.1:PORT`, while the server runs.

        Raises:
            LocalServerError: outside the `with` block, or when the server ended on its own.
        """
        process = self._process
        if process is None:
            raise LocalServerError("the server runs only inside its `with` block")
        if process.code is not None:
            raise LocalServerError(
                f"the server ended on its own with code {process.code}{process.failure()}",
                process.log,
            )
        return process.url

    @property
    def openai_base_url(self) -> str:
        """`base_url` for an OpenAI client, which wants a key too: any text."""
        return f"{self.url}/v1"

    @property
    def anthropic_base_url(self) -> str:
        """`base_url` for an Anthropic client, which wants a key too: any text."""
        return self.url

    @property
    def path(self) -> Path:
        """The GGUF file.

        Raises:
            LocalServerError: none was named, and the block hasn't been entered.
        """
        if self._path is None:
            raise LocalServerError(
                "which file is served is known once the `with` block has been entered"
            )
        return self._path

    @property
    def model(self) -> str:
        """The model's name in requests and answers: the name of its file, without the ending."""
        return self.path.stem

    @property
    def chat_template(self) -> str:
        """The chat template of its model, as the server tells it; it is asked for each time.

        `TextTools(server.chat(), parser="auto", template=server.chat_template)` goes by it.

        Raises:
            LocalServerError: outside of the `with` block.
            OSError: the server doesn't answer.
            ValueError: the file holds no template.
        """
        from lutumpy.text_tools import fetch_template

        return fetch_template(self.url)

    def chat(self, **options: Any) -> OpenAIChat:
        """An adapter for this server's Chat Completions; its client is closed when the block is
        left.

        The client is async inside `async with`, and sync inside `with`.

        Args:
            options: Of `OpenAIChat`, as `temperature=0`.
        """
        return OpenAIChat(self.model, self._open_openai(), **options)

    def responses(self, **options: Any) -> OpenAIResponses:
        """The same for Responses."""
        return OpenAIResponses(self.model, self._open_openai(), **options)

    def messages(self, **options: Any) -> AnthropicMessages:
        """The same for Messages."""
        return AnthropicMessages(self.model, self._open_anthropic(), **options)

    # A proxy named by the environment can't reach this machine's loopback, so it is left out.

    def _open_openai(self) -> AsyncOpenAI | OpenAI:
        base_url = self.openai_base_url
        client: AsyncOpenAI | OpenAI | None = self._clients.get("openai")
        if client is None:
            import openai

            if self._async:
                async_http = openai.DefaultAsyncHttpxClient(mounts=NO_PROXY)
                client = openai.AsyncOpenAI(
                    base_url=base_url, api_key=API_KEY, http_client=async_http
                )
            else:
                http = openai.DefaultHttpxClient(mounts=NO_PROXY)
                client = openai.OpenAI(base_url=base_url, api_key=API_KEY, http_client=http)
            self._clients["openai"] = client
        return client

    def _open_anthropic(self) -> AsyncAnthropic | Anthropic:
        base_url = self.anthropic_base_url
        client: AsyncAnthropic | Anthropic | None = self._clients.get("anthropic")
        if client is None:
            import anthropic

            if self._async:
                async_http = anthropic.DefaultAsyncHttpxClient(mounts=NO_PROXY)
                client = anthropic.AsyncAnthropic(
                    base_url=base_url, api_key=API_KEY, http_client=async_http
                )
            else:
                http = anthropic.DefaultHttpxClient(mounts=NO_PROXY)
                client = anthropic.Anthropic(base_url=base_url, api_key=API_KEY, http_client=http)
            self._clients["anthropic"] = client
        return client

    # ---------------------------------------------------- start and stop

    def __enter__(self) -> LocalServer:
        self._start()
        self._async = False
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            while self._clients:
                self._clients.popitem()[1].close()
        finally:
            self._stop()

    async def __aenter__(self) -> LocalServer:
        # A cancellation waits until the server has started or failed, so that none is left behind.
        await anyio.to_thread.run_sync(self._start)
        self._async = True
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with anyio.CancelScope(shield=True):
            try:
                while self._clients:
                    await self._clients.popitem()[1].close()
            finally:
                await anyio.to_thread.run_sync(self._stop)

    def _start(self) -> None:
        if self._process is not None:
            raise LocalServerError("the server runs already; make another one with serve()")
        if importlib.util.find_spec("xllamacpp") is None:
            raise missing_extra("xllamacpp")
        if self._path is None:
            self._path = fetch()
        _check_file(self._path)
        try:
            self._process = ServerProcess(self._collect_parameters(self._path), self._start_timeout)
        except LocalServerError as error:
            reason = _explain_failure(error, self._port, self._path)
            if reason is None:
                raise
            raise LocalServerError(reason, error.log) from error

    def _collect_parameters(self, path: Path) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model.path": str(path.absolute()),
            "model_alias": [self.model],
            "hostnames": [HOST],
            "port": self._port,
            "n_ctx": (self._context_tokens or 0) * self._slots,
            "n_parallel": self._slots,
            # No page in a browser may use it.
            "cors_origins": "",
            "ui": False,
        }
        if self._threads is not None:
            parameters |= {
                "cpuparams.n_threads": self._threads,
                "cpuparams_batch.n_threads": self._threads,
            }
        return parameters | self._options

    def _stop(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        code = process.code
        process.end()
        if code is not None:
            logger.warning("the server ended on its own with code %s%s", code, process.failure())


def _explain_failure(error: LocalServerError, port: int, path: Path) -> str | None:
    """Why the start failed, in plain words; `None` if nothing tells."""
    log = "\n".join(error.log)
    # A process that ends at once may take its last lines along, so the port is asked as well.
    if "couldn't bind" in log or _is_taken(port):
        return (
            f"port {port} can't be listened on, as when it is taken: give another one, or 0 for a "
            "free one"
        )
    _, found, message = log.partition("error loading model: ")
    if found:
        return f"llama.cpp can't load {path}: {message.partition(chr(10))[0].strip()}"
    return None


def _is_taken(port: int) -> bool:
    if not port:
        return False
    try:
        with socket.create_server(("127.0.0.1", port)):
            return False
    except OSError:
        return True


def _check_file(path: Path) -> None:
    if not path.exists():
        raise LocalServerError(f"there is no file {path}")
    if not path.is_file():
        raise LocalServerError(f"{path} is not a file")
    with path.open("rb") as stream:
        if stream.read(4) != b"GGUF":
            raise LocalServerError(f"{path} is not a GGUF file")


def _check_number(name: str, value: int | None, low: int, high: int | None = None) -> None:
    if value is not None and (value < low or (high is not None and value > high)):
        bounds = f"at least {low}" if high is None else f"{low} to {high}"
        raise ValueError(f"{name} must be {bounds}, not {value}")
