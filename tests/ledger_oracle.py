"""A model whose answers come from the test server's own judge, without HTTP: it signs reasoning,
refuses what was signed over something else, and counts what its cache can serve (rule PB21).
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import Any

from lutumpy import AdapterError, AssistantTurn, Transcript
from lutumpy.adapters.sdk_model import SdkModel
from lutumpy.adapters.writing import RequestRecord, body_dict
from lutumpy.apis import serving
from lutumpy.models import ToolOffering, TurnOptions
from lutumpy.testing import Failure, Reply
from lutumpy.testing.api_server import ApiServer, first_refusal

__all__ = ["JudgedModel"]

Json = dict[str, Any]


class JudgedModel:
    """An adapter whose requests are judged and answered in this process.

    Args:
        adapter: What makes the requests.
        new_account: Whether reasoning that was signed over something else is refused of new
            accounts, too.

    Attributes:
        bodies: What was sent and taken.
        refusals: What the judge has refused.
        transformed: How many pieces of reasoning it has hidden or dropped.
    """

    structured = "native"

    def __init__(self, adapter: SdkModel, *, new_account: bool = True) -> None:
        self.adapter: Any = adapter
        self.api: str = adapter.api
        kind: type[ApiServer] = serving(self.api, "server")
        self.judge = kind(self.api, {})
        self.judge.is_new_account = new_account
        self.bodies: list[Json] = []
        self.refusals: list[str] = []
        self.transformed = 0
        self._next: list[Reply | Failure | Json] = []
        self._number = 0

    @property
    def model(self) -> str:
        name: str = self.adapter.model
        return name

    def play(self, *replies: Reply | Failure | Json) -> None:
        self._next += replies

    def takes_forced_choice(self, extra: Any) -> bool:
        return bool(self.adapter.takes_forced_choice(extra))

    def respond_sync(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        record = RequestRecord()
        fields = self.adapter._request(transcript, offering, options, record)
        body = json.loads(json.dumps(body_dict(fields)))
        reply = self._next.pop(0)
        if isinstance(reply, Failure):
            raise AdapterError(reply.message, provider=self.api, status=reply.status)
        refused = first_refusal(self.judge.check_at_host(body, headers=record.headers))
        if refused is not None:
            self.refusals.append(f"{refused.position}: {refused.message}")
            raise AdapterError(refused.message, provider=self.api, status=400)
        self.bodies.append(copy.deepcopy(body))
        self._number += 1
        if isinstance(reply, Reply):
            reply = self.judge.render_reply(reply, number=self._number, model=self.model, body=body)
        answer = reply
        sent = self.judge.arrange(answer, body)
        self.judge.remember(body, answer)
        turn: AssistantTurn = self.adapter.response(sent)
        self.transformed += len(turn.input_transformations)
        return record.stamp(turn)

    async def respond(
        self, transcript: Transcript, offering: ToolOffering | None, options: TurnOptions
    ) -> AssistantTurn:
        return self.respond_sync(transcript, offering, options)

    def shown(self) -> int:
        """How many pieces of signed reasoning the last request had."""
        memory = self.judge.reasoning
        return 0 if memory is None else len(memory.binding.find(self.bodies[-1], None))


def signed_reply(number: int, call: str | None = None, arguments: Json | None = None) -> Reply:
    """An answer with reasoning: words, or a call."""
    from lutumpy.testing import Call

    reply = Reply(text=f"answer {number}", reasoning=f"thought {number}")
    if call is None:
        return reply
    return replace(reply, text="", calls=[Call(call, arguments or {})])
