"""What of a round is recorded before it is used: approvals, reviews, plans with a signature."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from durable_toolkit import (
    ANSWER,
    CHARGE,
    LOOK,
    SCOPE,
    Deaf,
    Desk,
    Form,
    Ledger,
    Model,
    TicketRunner,
    calls,
    decision,
    hold_charges,
    make_loop,
    new_store,
    results,
)

from lutumpy import (
    ApprovalRequest,
    CommitError,
    Hold,
    HookError,
    PlanError,
    Signer,
    ToolDecision,
    ToolMetadata,
    ToolResult,
    hook_impl,
)
from lutumpy.durable import Answered, Waiting
from lutumpy.errors import StoreError
from lutumpy.hooks import BaseToolCall
from lutumpy.testing import Call

SECRET = b"0123456789abcdef0123456789abcdef"


def fail_at(name: str) -> Any:
    """A callback that fails once, at this event."""
    left = [name]

    def tell(event: Any) -> None:
        if left and type(event).__name__ == left[0]:
            left.clear()
            raise ConnectionError("cut off")

    return tell


# --- approvals -----------------------------------------------------------------------------------

ROUTE = Call("route", {"to": "hotel"}, id="mcpr_1", server_label="maps")


@pytest.mark.parametrize("answer", [True, False])
def test_an_approval_is_recorded_before_it_is_used_P1(form: Form, answer: bool) -> None:
    store, asked = form.await_(new_store), []

    def approve(request: ApprovalRequest) -> bool:
        asked.append(request.server_label)
        return answer

    llm = Model([calls(ROUTE, LOOK), ANSWER], api="openai_responses")
    options = {"approve": approve, "on_progress": fail_at("RoundExecuted")}
    with pytest.raises(ConnectionError):
        form.run(make_loop(store, llm, Ledger(), **options))
    assert isinstance(form.run(make_loop(store, llm, Ledger(), **options)), Answered)
    assert asked == ["maps"]


def test_an_approval_that_is_neither_yes_nor_no_is_refused(form: Form) -> None:
    store = form.await_(new_store)
    llm = Model([calls(ROUTE), ANSWER], api="openai_responses")
    with pytest.raises(TypeError, match="approve= gives True or False"):
        form.run(make_loop(store, llm, Ledger(), approve=lambda request: "yes"))
    assert isinstance(form.run(make_loop(store, llm, Ledger())), Answered)


def hold_all(call: BaseToolCall) -> ToolDecision:
    return Hold("ask somebody")


@pytest.mark.parametrize("decided", [decision("run"), decision("reject", reason="no")])
def test_a_request_for_approval_may_wait_for_a_person(form: Form, decided: Any) -> None:
    store = form.await_(new_store)
    llm = Model([calls(ROUTE), ANSWER], api="openai_responses")
    loop = make_loop(store, llm, Ledger(), hooks=hold_all)
    waiting = form.run(loop)
    assert isinstance(waiting, Waiting)
    assert waiting.held == ("mcpr_1",)
    assert form.await_(loop.decide, SCOPE, waiting.digest, {"mcpr_1": decided}, by="ann")
    assert isinstance(form.run(loop), Answered)


def test_a_call_that_the_provider_makes_is_approved_as_it_is_P16(form: Form) -> None:
    store = form.await_(new_store)
    loop = make_loop(store, Model([calls(ROUTE)], api="openai_responses"), Ledger(), hooks=hold_all)
    waiting = form.run(loop)
    assert isinstance(waiting, Waiting)
    edited = decision("run", input={"to": "harbour"})
    with pytest.raises(StoreError, match="makes call 'mcpr_1' of 'route' itself"):
        form.await_(loop.decide, SCOPE, waiting.digest, {"mcpr_1": edited}, by="ann")
    assert form.run(loop) == waiting


# --- reviews -------------------------------------------------------------------------------------


class Reviewer:
    """Marks every result, and counts how often it was asked."""

    def __init__(self, mark: str = "[seen] ", fails: int = 0) -> None:
        self.mark, self.fails, self.asked = mark, fails, 0

    @hook_impl
    def any_result_hook(self, metadata: ToolMetadata, result: ToolResult) -> ToolResult:
        self.asked += 1
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the scanner is down")
        return replace(result, content=f"{self.mark}{result.content}") if self.mark else result


def test_a_reviewed_result_is_recorded_and_not_reviewed_again_P1(form: Form) -> None:
    store, reviewer = form.await_(new_store), Reviewer()
    options = {
        "hooks": Desk.hooks().with_hooks(reviewer),
        "on_progress": fail_at("RoundExecuted"),
    }
    llm = Model([calls(LOOK), ANSWER])
    with pytest.raises(ConnectionError):
        form.run(make_loop(store, llm, Ledger(), **options))
    form.run(make_loop(store, llm, Ledger(), **options))
    assert reviewer.asked == 1
    assert results(form.await_(store.session, SCOPE)) == [("ok", "[seen] cat means tac")]


def test_a_review_that_changes_nothing_leaves_no_record(form: Form) -> None:
    store, reviewer = form.await_(new_store), Reviewer(mark="")
    hooks = Desk.hooks().with_hooks(reviewer)
    form.run(make_loop(store, Model([calls(LOOK), ANSWER]), Ledger(), hooks=hooks))
    assert results(form.await_(store.session, SCOPE)) == [("ok", "cat means tac")]
    assert (1, "review") not in store._conversations[SCOPE].records


def test_a_review_that_fails_leaves_the_round_open_and_is_done_again(form: Form) -> None:
    store, reviewer, ledger = form.await_(new_store), Reviewer(fails=1), Ledger()
    hooks, llm = Desk.hooks().with_hooks(reviewer), Model([calls(CHARGE), ANSWER])
    with pytest.raises(HookError, match="the scanner is down"):
        form.run(make_loop(store, llm, ledger, hooks=hooks))
    assert len(form.await_(store.session, SCOPE).transcript) == 1
    assert isinstance(form.run(make_loop(store, llm, ledger, hooks=hooks)), Answered)
    assert ledger.done == ["charge 5"]
    assert results(form.await_(store.session, SCOPE)) == [("ok", "[seen] charged 5")]


def test_a_hook_that_decides_and_fails_leaves_nothing_behind(form: Form) -> None:
    def fail(call: BaseToolCall) -> ToolDecision:
        raise ConnectionError("no policy")

    store, llm, ledger = form.await_(new_store), Model([calls(LOOK), ANSWER]), Ledger()
    with pytest.raises(HookError):
        form.run(make_loop(store, llm, ledger, hooks=fail))
    assert isinstance(form.run(make_loop(store, llm, ledger)), Answered)
    assert llm.requests == 3  # the answer was not recorded, so it was asked for again


# --- signatures ----------------------------------------------------------------------------------


def test_a_plan_is_signed_and_taken_up_by_who_knows_the_key_P15(form: Form) -> None:
    store, llm = form.await_(new_store), Model([calls(CHARGE), ANSWER])
    signing: dict[str, Any] = {"sign": Signer("k1", SECRET), "verify": {"k1": SECRET}}
    loop = make_loop(store, llm, Ledger(), hooks=hold_charges, **signing)
    waiting = form.run(loop)
    assert waiting.plan["signature"]["key"] == "k1"
    stranger = make_loop(store, llm, Ledger(), verify={"k2": SECRET})
    with pytest.raises(PlanError) as caught:
        form.run(stranger)
    assert caught.value.kind == "unsigned"
    assert form.await_(loop.decide, SCOPE, waiting.digest, {"p1": decision("run")}, by="ann")
    assert isinstance(form.run(loop), Answered)


class Spoiling(TicketRunner):
    """Gives results that no commit takes."""

    async def run(self, tickets: Any, journal: Any) -> Any:
        made = await super().run(tickets, journal)
        return [replace(result, output_error="spoilt") for result in made]


class Unheard(Spoiling):
    """As `Spoiling`, and tells the journal nothing."""

    async def run(self, tickets: Any, journal: Any) -> Any:
        return await super().run(tickets, Deaf())


def test_a_result_that_cannot_be_committed_leaves_the_round_open(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = Model([calls(LOOK), ANSWER])
    with pytest.raises(CommitError, match="spoilt"):
        form.run(make_loop(store, llm, ledger, runner=Unheard(ledger)))
    assert len(form.await_(store.session, SCOPE).transcript) == 1


def test_what_the_journal_has_is_used_whatever_the_runner_gives_P1(form: Form) -> None:
    store, ledger = form.await_(new_store), Ledger()
    llm = Model([calls(LOOK), ANSWER])
    done = form.run(make_loop(store, llm, ledger, runner=Spoiling(ledger)))
    assert isinstance(done, Answered)
