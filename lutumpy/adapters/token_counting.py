"""What a provider can be asked beside answers: how many tokens a request has, and what an answer
that it has stored cost.
"""

from __future__ import annotations

from typing import Any, ClassVar
from urllib.parse import quote

from lutumpy.adapters.replies import reply_object
from lutumpy.adapters.request_record import RequestRecord
from lutumpy.adapters.sdk_body import checked_offer, checked_transcript, join_body
from lutumpy.core.model import TurnOptions
from lutumpy.core.tool_specs import ToolOffering
from lutumpy.core.transcript import Transcript
from lutumpy.core.usage import Usage
from lutumpy.errors import AdapterError, NotSupportedError

__all__ = ["TokenCounting", "read_count"]


class TokenCounting:
    """Counts tokens and recovers usages, where the API does that. Adapters say where."""

    api: ClassVar[str]
    # Where tokens are counted, and the fields of a request that are sent there; `None` for nowhere.
    _count_path: ClassVar[str | None] = None
    _count_fields: ClassVar[frozenset[str]] = frozenset()
    # Where stored answers are, by their id; `None` for nowhere.
    _stored_path: ClassVar[str | None] = None

    async def count_tokens(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """How many tokens a request would have, as the provider counts them, with one request.

        Args:
            transcript: The conversation; it must have something to answer.
            offer: The tools.
            options: Those of the turn.

        Raises:
            NotSupportedError: the API has no such call; nothing was sent.
            AdapterError: the request failed, also where a host of the same API has no such call.
        """
        path, body, headers = self._make_count(transcript, offer, options)
        model: Any = self
        return read_count(self.api, await model._transport.ask(path, body, headers))

    def count_tokens_sync(
        self,
        transcript: Transcript,
        offer: ToolOffering | None = None,
        options: TurnOptions | None = None,
    ) -> int:
        """The same without an event loop."""
        path, body, headers = self._make_count(transcript, offer, options)
        model: Any = self
        return read_count(self.api, model._transport.ask_sync(path, body, headers))

    async def recover_usage(self, response_id: str) -> Usage | None:
        """What an answer has cost that the provider has stored, such as one of `session.unsettled`.

        Args:
            response_id: The provider's id of the answer.

        Returns:
            Its usage; `None` if the provider has no such answer, or hasn't finished it.

        Raises:
            NotSupportedError: the API has no such call; nothing was sent.
            AdapterError: the request failed.
        """
        model: Any = self
        path = self._find_stored(response_id)
        try:
            return self._read_usage(await model._transport.ask(path, None))
        except AdapterError as error:
            if error.status == 404:
                return None
            raise

    def recover_usage_sync(self, response_id: str) -> Usage | None:
        """The same without an event loop."""
        model: Any = self
        path = self._find_stored(response_id)
        try:
            return self._read_usage(model._transport.ask_sync(path, None))
        except AdapterError as error:
            if error.status == 404:
                return None
            raise

    def _make_count(
        self, transcript: Transcript, offer: ToolOffering | None, options: TurnOptions | None
    ) -> tuple[str, bytes, Any]:
        if self._count_path is None:
            raise NotSupportedError(
                f"{self.api} has no call that counts tokens; nothing was sent. "
                "lutumpy.models.estimate_of gives an estimate"
            )
        fields, headers = self._request_fields(transcript, offer, options)
        kept = {name: field for name, field in fields.items() if name in self._count_fields}
        return self._count_path, join_body(kept), headers

    def _request_fields(
        self, transcript: Transcript, offer: ToolOffering | None, options: TurnOptions | None
    ) -> tuple[dict[str, Any], Any]:
        """The fields of the request that would be sent, and its headers."""
        model: Any = self
        record: RequestRecord = model.new_record()
        offered = None if offer is None else checked_offer(offer)
        turn_options = TurnOptions() if options is None else options
        fields = model._request(checked_transcript(transcript), offered, turn_options, record)
        return fields, record.headers

    def _find_stored(self, response_id: str) -> str:
        if self._stored_path is None:
            raise NotSupportedError(
                f"{self.api} has no call that gives an answer again; nothing was sent"
            )
        return f"{self._stored_path}/{quote(response_id, safe='')}"

    def _read_usage(self, reply: Any) -> Usage | None:
        model: Any = self
        value = reply_object(reply.content, self.api)
        usage: Usage = model.response(value).usage
        return None if usage == Usage() else usage


def read_count(api: str, reply: Any) -> int:
    """The number of tokens in the answer to a count."""
    value = reply_object(reply.content, api)
    found = value.get("input_tokens")
    if not isinstance(found, int) or isinstance(found, bool):
        raise AdapterError(f"{api}: the count of tokens has no number", provider=api)
    return found
