"""The routes of chats beside FastAPI's own; skipped where it isn't installed."""

from __future__ import annotations

import json

import httpx2
import pytest
from test_starlette import answered, said, who
from web_toolkit import FULL, ChatClient, make_loop

from lutumpy.durable import MemoryStore
from lutumpy.web.starlette import chat_routes

fastapi = pytest.importorskip("fastapi")


async def test_the_one_line_of_the_page_is_enough() -> None:
    app, store = fastapi.FastAPI(), MemoryStore()

    @app.get("/health")
    async def health() -> dict[str, bool]:
        return {"ok": True}

    # As in docs/front_ends.md.
    loop = make_loop(store, FULL)
    app.router.routes.extend(chat_routes(loop, store, who=who))
    transport, headers = httpx2.ASGITransport(app), {"authorization": "ann"}
    async with httpx2.AsyncClient(
        transport=transport, base_url="http://site", headers=headers
    ) as client:
        assert (await client.get("/health")).json() == {"ok": True}
        read = ChatClient().read((await client.post("/chat", content=json.dumps(said()))).content)
        assert read.finished == {"type": "finish", "finishReason": "tool-calls"}
        approval = json.dumps(answered(read, True))
        read.read((await client.post("/chat", content=approval)).content)
        assert read.finished == {"type": "finish", "finishReason": "stop"}
        assert (await client.get("/chat/c1/messages")).json()[-1] == read.message
        refused = await client.post("/chat", content=b"{}")
        assert refused.status_code == 422
        denied = await client.get("/chat/c1/messages", headers={"authorization": ""})
        assert denied.status_code == 401
