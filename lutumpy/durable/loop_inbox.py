"""What people and other programs tell a durable loop: decisions, answers, late results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from lutumpy import CallTicket, HookError, ToolRoundPlan
from lutumpy.durable.decisions import read_decision
from lutumpy.durable.delivery_spans import DeliverySpans
from lutumpy.durable.effects import RoundSettings, held_calls
from lutumpy.durable.late import LateStore, late_value, result_of_delivery, withdrawn_result
from lutumpy.durable.questions import QuestionStore, check_answers
from lutumpy.durable.store import SessionStore
from lutumpy.errors import StoreError

if TYPE_CHECKING:
    from pydantic import JsonValue

__all__ = ["LoopInbox"]


class LoopInbox:
    """The part of a `DurableLoop` that any process may use at any time: it claims nothing.

    Each method checks what it is given against the tools, and leaves it in the store; the next run
    takes it.

    Args:
        store: Where conversations are kept.
        settings: How rounds are taken up.
    """

    def __init__(self, store: SessionStore, settings: RoundSettings) -> None:
        self._store = store
        self._settings = settings

    async def decide(
        self, scope: str, digest: str, decisions: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """Decide calls that are held, as `store.decide`, and check first that decisions fit.

        Args:
            scope: The conversation's id.
            digest: The digest of the plan, as `Waiting` has it.
            decisions: By call id: `{"decision": "run"}`, with an `input` for an edited one;
                `{"decision": "complete", "output": ...}`; `{"decision": "reject", "reason": ...}`.
            by: Who decides.

        Returns:
            `True` if all of them were taken; a second one for a call is ignored.

        Raises:
            StoreError: `plan`: no such plan is waiting. `decision`: a call isn't held, or a
                decision doesn't fit its tool; the message says how. Nothing was decided.
            PlanError: the plan can't be taken up by this release (`drift`, `verify`).
        """
        held = await self._store.held(scope=scope)
        for each in held:
            if each.scope == scope and each.digest == digest:
                await self._check_decisions(scope, each.plan, decisions, by)
        return await self._store.decide(scope, digest, decisions, by=by)

    async def deliver(
        self, ticket: CallTicket, output: Any, *, earlier: Mapping[str, str] | None = None
    ) -> bool:
        """Leave the late result of a call, from any process, at any time, as often as one likes.

        The next run takes it, once. It may come before the round of the call is recorded.

        Args:
            ticket: The ticket that the tool got; `CallTicket.load` reads its dump.
            output: What the tool gave; an exception for one that failed; or a `ToolResult`.
            earlier: What the telemetry's `carrier` gave in the tool, where that ran in another
                process: the span of the delivery is linked to that of the call.

        Returns:
            `True`; `False` if the call had its late result already: that one stands.

        Raises:
            PlanError: `schema`: the tool is another one now than that which was called.
            CommitError: `wrong_output`: the output doesn't fit the tool. Nothing was left.
            StoreError: the store has no such conversation.
            TypeError: the store keeps no late results.
        """
        toolset = self._settings.tools.__view__().toolset
        result = result_of_delivery(ticket, output, toolset)
        store = self._late_store()
        spans = DeliverySpans(self._settings.telemetry, ticket.scope)
        with spans.leave(result, ticket.key, earlier) as marks:
            value = late_value(ticket.call_id, ticket.tool, result, digest=ticket.tool_digest)
            return await store.deliver(ticket.scope, ticket.call_id, {**value, **marks})

    async def withdraw(self, scope: str, call_id: str, *, reason: str, by: str) -> bool:
        """Give an open call up: its late result says that it was rejected, and why.

        Args:
            scope: The conversation's id.
            call_id: The id of the call.
            reason: Why; the model is told.
            by: Who says so.

        Returns:
            `True`; `False` if the call had its late result already: that one stands.

        Raises:
            StoreError: the store has no such conversation.
        """
        result = await withdrawn_result(self._store, scope, call_id, reason)
        value = late_value(call_id, result.metadata.name, result, digest=None, by=by)
        return await self._late_store().deliver(scope, call_id, value)

    async def answer(
        self, scope: str, call_id: str, answers: Mapping[str, JsonValue], *, by: str
    ) -> bool:
        """Answer what a server asks in the middle of a call; the next run sends the answers to it.

        Args:
            scope: The conversation's id.
            call_id: The id of the call.
            answers: By `Question.key`: `{"action": "accept", "content": {...}}` with what was
                filled in (no content for an address), `{"action": "decline"}` or
                `{"action": "cancel"}`. Questions that are left out stay open.
            by: Who answers.

        Returns:
            `True`; `False` if a question was answered by somebody else meanwhile: that answer
            stands.

        Raises:
            StoreError: `answer`: the call asks no such question, it was answered, or an answer
                doesn't fit its form; the message says how, for the person who gave it. Nothing was
                taken. `unknown_scope`: the store has no such conversation.
            TypeError: the store keeps no questions.
        """
        if not callable(getattr(self._store, "asked", None)):
            raise TypeError(
                f"{type(self._store).__name__} keeps no questions: it has no asked() and answer()"
            )
        store = cast("QuestionStore", self._store)
        asked = [call for call in await store.asked(scope) if call.call_id == call_id]
        if not asked:
            raise StoreError(
                "answer",
                f"the call {call_id!r:.100} of {scope!r} asks nothing, or was answered; nothing "
                "was taken",
            )
        check_answers(call_id, asked, answers)
        taken = True
        for call in asked:
            own = {each.key: answers[each.key] for each in call.questions if each.key in answers}
            if own:
                taken = await store.answer(scope, call_id, call.leg, own, by=by) and taken
        return taken

    def _late_store(self) -> LateStore:
        if not callable(getattr(self._store, "deliver", None)):
            raise TypeError(
                f"{type(self._store).__name__} keeps no late results: it has no deliver()"
            )
        return cast("LateStore", self._store)

    async def _check_decisions(
        self,
        scope: str,
        data: Mapping[str, JsonValue],
        decisions: Mapping[str, JsonValue],
        by: str,
    ) -> None:
        """Raise `StoreError` where a decision doesn't fit; of another form, the store says so."""
        settings = self._settings
        plan: ToolRoundPlan[Any] = ToolRoundPlan.resume(
            data,
            await self._store.session(scope),
            tools=settings.tools,
            scope=scope,
            verify=settings.verify,
            drift=settings.drift,
            counted=False,
        )
        try:
            for call in held_calls(plan):
                call_id = call.metadata.id
                if call_id in decisions:
                    plan = plan.decide({call_id: read_decision(call, decisions[call_id])}, by=by)
        except HookError as error:
            raise StoreError("decision", str(error)) from error
        finally:
            plan.discard()
