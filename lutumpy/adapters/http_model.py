"""The base of adapters for APIs without an SDK: they say how a request is built and an answer read,
and this sends the one and gets the other.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar

from lutumpy.adapters.authority import host_of
from lutumpy.adapters.http_transport import HttpTransport, StreamFormat
from lutumpy.adapters.sdk_body import Fields
from lutumpy.adapters.sdk_model import RequestDefaults, SdkModel
from lutumpy.adapters.settings_keeper import SettingsKeeper, record_settings
from lutumpy.core.items import AssistantTurn
from lutumpy.core.output_spec import OutputSpec
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.unset import unset_names, without_unset
from lutumpy.errors import AdapterError
from lutumpy.plain.json_values import encode

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["HttpModel"]


class HttpModel(SdkModel):
    """A model behind an HTTP API that has no SDK, for an adapter to derive from.

    The adapter sets `api`, `path` and `default_url`, and defines the static methods `request`,
    `response` and `stream_decoder`. It inherits `respond`, `open_stream` and their sync twins,
    which send what `request` gives through an `HttpTransport` and read what comes back.

    Args:
        model: The model's name.
        client: An `httpx2.AsyncClient` or `httpx2.Client`, with a `base_url`. Left out, one is made
            at the first request; only then is httpx2 imported.
        base_url: For a client made here: where the API is, if not at `default_url`.
        api_key: For a client made here: sent as `Authorization: Bearer ...`.
        max_retries: How often a failed request is sent again at most; see `HttpTransport`.
        defaults: `temperature`, `max_output_tokens`, `strict`, `structured`, `extra`, `headers` and
            `timeout` of every request, as of the other adapters.

    Raises:
        TypeError: An argument is of another type.
        ValueError: The model's name is blank, or a limit is out of its range.
    """

    sdk: ClassVar[str] = "httpx2"
    _clients: ClassVar[str] = "AsyncClient or Client"
    _mark: ClassVar[str] = "build_request"

    path: ClassVar[str] = ""
    """The path of a request, behind the base URL."""

    default_url: ClassVar[str] = ""
    """Where the API is, if the constructor isn't told another address."""

    stream_format: ClassVar[StreamFormat] = "events"
    """How its streams are written."""

    def __init__(
        self,
        model: str,
        client: Any | None = None,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        max_retries: int = 2,
        **defaults: Unpack[RequestDefaults],
    ) -> None:
        if not isinstance(max_retries, int) or isinstance(max_retries, bool):
            raise TypeError(f"max_retries takes a whole number, not {max_retries!r:.100}")
        if max_retries < 0:
            raise ValueError(f"max_retries is 0 or more, not {max_retries}")
        self._max_retries = max_retries
        self._base_url = base_url
        self._api_key = api_key
        made_here = {"base_url": base_url, "api_key": api_key}
        super().__init__(model, client, _unused, _unused, made_here, **defaults)

    def _make_transport(self, **connection: Any) -> HttpTransport:
        client = connection["client"]
        headers = dict(connection["headers"] or {})
        key = self._api_key if client is not None or self._api_key else self.environment_key()
        if key:
            headers = {"Authorization": f"Bearer {key}", **headers}
        base = self._base_url or (self.environment_url() if client is None else None)
        self._url: str = (base or self.default_url).rstrip("/") + self.path
        return HttpTransport(
            self.api,
            self._url,
            client=client,
            headers=headers,
            timeout=connection["timeout"],
            max_retries=self._max_retries,
            stream_format=self.stream_format,
            explain=self.explain,
        )

    def _find_host(self) -> str | None:
        # A client that is made here has no address of its own.
        return super()._find_host() or host_of(self._url)

    # --- what an adapter may say of its API -------------------------------------------------------

    @staticmethod
    def environment_url() -> str | None:
        """The address that the environment names, or `None`."""
        return None

    @staticmethod
    def environment_key() -> str | None:
        """The key that the environment has, or `None`."""
        return None

    @staticmethod
    def explain(error: AdapterError) -> str | None:
        """What can be done about an error, in a sentence for its message; `None` for nothing."""
        return None

    @staticmethod
    @abstractmethod
    def request(
        transcript: Transcript,
        offer: ToolOffering | None = None,
        *,
        stream: bool = False,
        **options: Any,
    ) -> dict[str, Any]:
        """The body of a request, without its model.

        Args:
            transcript: The conversation.
            offer: The tools of this turn.
            stream: Whether the answer is to be a stream.
            options: Those of `temperature`, `max_output_tokens`, `strict` and `output` (an
                `OutputSpec`) that are set; any other is a parameter of the API.
        """

    @staticmethod
    @abstractmethod
    def response(reply: Any) -> AssistantTurn:
        """The turn in an answer: JSON as text or bytes, or a dict."""

    # --- what sends it ----------------------------------------------------------------------------

    def _fields(self, transcript: Transcript, offer: ToolOffering | None, **options: Any) -> Fields:
        stream, extra = options.pop("stream"), options.pop("extra")
        del options["model"]  # put in by who asks
        record = options.pop("record")
        options["effort"] = record.effort
        known = {name: value for name, value in options.items() if value is not None}
        absent = unset_names(extra)
        requested = {name: without_unset(v) for name, v in extra.items() if name not in absent}
        body = self.request(transcript, offer, stream=stream, **{**known, **requested})
        for name in absent:
            body.pop(name, None)
        if record.settings is None:  # else the adapter's own functions have filled it in
            in_force = transcript.encoded("settings", SettingsKeeper).in_force
            record_settings(record, in_force, offer)
        return {name: encode(value) for name, value in body.items()}

    @staticmethod
    def _with_output(output: OutputSpec, extra: Mapping[str, Any]) -> dict[str, Any]:
        return {"output": output, **extra}

    # SdkModel declares it as static, since the adapters of SDKs know their one class.
    def _decode(  # type: ignore[override]
        self, reply: dict[str, Any], request_id: str | None
    ) -> AssistantTurn:
        turn = self.response(reply)
        return turn if request_id is None else replace(turn, request_id=request_id)


def _unused() -> Any:
    raise AssertionError("HttpTransport makes its clients itself")
