"""The web service. It runs no conversation: it leaves things in the store, and says what waits."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from lutumpy import CallTicket, Session
from lutumpy.durable import DurableLoop, SqliteStore
from lutumpy.errors import CommitError, PlanError, StoreError

from .desk import opened

REFUSED = (StoreError, PlanError, CommitError, json.JSONDecodeError)


class Service:
    """What the routes do. In your program, a login says who decides and answers."""

    store: SqliteStore
    loop: DurableLoop[Any, Any]

    def __init__(self) -> None:
        self.applications: list[dict[str, Any]] = []  # what the visa office has on its desk

    async def begin(self, request: Request) -> Response:
        scope, body = request.path_params["trip"], await request.json()
        await self.store.create(scope, Session())
        await self.store.push(scope, body["text"], idempotency_key=body["id"])
        return JSONResponse({"trip": scope})

    async def look(self, request: Request) -> Response:
        """What a page shows: the status, the calls to decide, the questions, the answer."""
        scope = request.path_params["trip"]
        (info,) = await self.store.scopes(prefix=scope, limit=1)
        held = await self.store.held(scope=scope)
        asked = await self.store.asked(scope)
        session = await self.store.session(scope)
        return JSONResponse(
            {
                "status": info.status,
                "held": [{"digest": plan.digest, "calls": [*plan.held]} for plan in held],
                "asked": [
                    {"call": call.call_id, "key": each.key, "message": each.message}
                    for call in asked
                    for each in call.questions
                ],
                "answer": session.turns()[-1].text if session.answered else None,
            }
        )

    async def decide(self, request: Request) -> Response:
        scope, body = request.path_params["trip"], await request.json()
        decision: dict[str, Any] = {body["call"]: {"decision": "run"}}
        first = await self.loop.decide(scope, body["digest"], decision, by=body["by"])
        return JSONResponse({"first": first})

    async def answer(self, request: Request) -> Response:
        scope, body = request.path_params["trip"], await request.json()
        answers = {body["key"]: body["answer"]}
        first = await self.loop.answer(scope, body["call"], answers, by=body["by"])
        return JSONResponse({"first": first})

    async def apply(self, request: Request) -> Response:
        """The visa office takes an application. It would be somebody else's service."""
        self.applications.append(await request.json())
        return JSONResponse({})

    async def applied(self, request: Request) -> Response:
        return JSONResponse(self.applications)

    async def webhook(self, request: Request) -> Response:
        """The office is done. Sign tickets that go to strangers, or keep them and send a number."""
        body = await request.json()
        first = await self.loop.deliver(CallTicket.load(body["ticket"]), body["result"])
        return JSONResponse({"first": first})


def make_service(file: Path, model: str, hotel: str, office: str) -> Starlette:
    service = Service()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        async with opened(file, model, hotel, office) as (service.store, service.loop):
            yield

    async def refuse(request: Request, error: Exception) -> Response:
        """What doesn't fit is told to whoever sent it."""
        return JSONResponse({"error": str(error)}, 422)

    return Starlette(
        routes=[
            Route("/trips/{trip}", service.begin, methods=["POST"]),
            Route("/trips/{trip}", service.look),
            Route("/trips/{trip}/decisions", service.decide, methods=["POST"]),
            Route("/trips/{trip}/answers", service.answer, methods=["POST"]),
            Route("/webhook", service.webhook, methods=["POST"]),
            Route("/office", service.apply, methods=["POST"]),
            Route("/office", service.applied),
        ],
        lifespan=lifespan,
        exception_handlers=dict.fromkeys(REFUSED, refuse),
    )
