"""The operations of a web API as tools: an OpenAPI document, a server on this machine, and httpx.

The document comes from the server itself. The library makes tools of its operations and validates
calls; sending them, with the server's address and a key, is this program's own. What the server
refuses is told to the model as the result of the call.

Run:    python examples/openapi_tools.py            a scripted model, no key
        python examples/openapi_tools.py --live     OpenAI, with OPENAI_API_KEY;
                                                    --model NAME for another model,
                                                    OPENAI_BASE_URL for any compatible host
Prints: the tools, what was skipped, what the server was asked, each result, a call that never
reached it, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lutumpy import AdapterError, Finished, Model, NeedsTools, Session, ToolError, Toolset
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.openapi import OperationRequest, tools
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 8

# --- the server: any web framework, in any language -----------------------------------------------

ORDER_ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}
STATUS = {"type": "array", "items": {"enum": ["open", "paid"]}}
PERCENT = {"type": "integer", "minimum": 1, "maximum": 100}
REFUND = {"schema": {"properties": {"percent": PERCENT}, "required": ["percent"]}}
DOCUMENT = {
    "openapi": "3.1.0",
    "info": {"title": "Orders", "version": "1"},
    "paths": {
        "/orders": {
            "get": {
                "operationId": "list_orders",
                "summary": "List the numbers of orders.",
                "parameters": [{"name": "status", "in": "query", "schema": STATUS}],
            }
        },
        "/orders/{id}": {
            "parameters": [ORDER_ID],
            "get": {"operationId": "get_order", "summary": "Look an order up."},
            "delete": {"operationId": "delete_order", "summary": "Delete an order for good."},
            "patch": {"operationId": "add_photo", "requestBody": {"content": {"image/png": {}}}},
        },
        "/orders/{id}/refund": {
            "parameters": [ORDER_ID],
            "post": {
                "operationId": "refund",
                "summary": "Pay a part of an order's price back.",
                "requestBody": {"required": True, "content": {"application/json": REFUND}},
            },
        },
    },
}
PAID, OPEN = {"status": "paid", "price": 40}, {"status": "open", "price": 25}
ORDERS: dict[str, Any] = {"7": PAID, "8": OPEN}


async def serve_orders(request: Request) -> JSONResponse:
    if request.url.path == "/openapi.json":
        return JSONResponse(DOCUMENT)
    print(f"  server: {request.method} {request.url.path} {request.url.query}".rstrip())
    if request.headers.get("authorization") != "Bearer a key":
        return JSONResponse({"error": "who are you?"}, 401)
    if request.url.path == "/orders":
        asked = request.query_params.getlist("status")
        return JSONResponse([key for key in ORDERS if ORDERS[key]["status"] in asked])
    order = ORDERS.get(request.path_params["id"])
    if order is None:
        return JSONResponse({"error": "no such order"}, 404)
    if request.method == "POST":
        percent = (await request.json())["percent"]
        return JSONResponse({"paid_back": order["price"] * percent / 100})
    return JSONResponse(order)


@asynccontextmanager
async def serve() -> AsyncIterator[str]:
    """The address of the server, while it runs."""
    paths = ["/openapi.json", "/orders", "/orders/{id}", "/orders/{id}/refund"]
    app = Starlette(routes=[Route(path, serve_orders, methods=["GET", "POST"]) for path in paths])
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", lifespan="off", ws="none"))
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        door.listen()  # from here on it is reached: a request waits until the server runs
        running = asyncio.create_task(server.serve([door]))
        try:
            yield "http://{}:{}".format(*door.getsockname())
        finally:
            server.should_exit = True
            await running


# --- the program ----------------------------------------------------------------------------------


async def talk(llm: Model, client: httpx2.AsyncClient, base: str, question: str) -> str:
    async def send(request: OperationRequest) -> Any:
        answer = await client.request(
            request.method, request.url_at(base), headers=request.headers, content=request.content
        )
        if answer.is_error:
            raise ToolError(f"{answer.status_code}: {answer.text}")
        return answer.json() if answer.content else None

    document = (await client.get("/openapi.json")).json()
    operations = tools(document, call=send, include=lambda one: one.method != "DELETE")
    print("tools:", *[tool.name for tool in operations])
    print("skipped:", *[f"{name}: {why}" for name, why in operations.skipped.items()])
    orders = Toolset.of("Orders", operations)
    session = Session()
    session.push_user(question)
    for _ in range(MAX_ROUNDS):
        match await session.text_turn(llm, tools=orders).collect():
            case Finished(result=result):
                return result.refusal or result.text
            case NeedsTools(round=round):
                results = []
                for call in round.calls:
                    try:
                        results.append(call.complete(await call.call()))
                    except ToolError as error:
                        results.append(call.fail(str(error)))
                    print(f"{call.metadata.name} {call.arguments}: {results[-1].content}")
                for issue in round.issues:
                    print(f"{issue.metadata.name} {issue.metadata.arguments}: {issue.detail}")
                round.commit(session, results)
    return f"No answer after {MAX_ROUNDS} rounds."


SCRIPT = [
    Reply(calls=[Call("list_orders", {"status": ["paid"]})]),
    Reply(calls=[Call("get_order", {"id": "7"}), Call("get_order", {"id": "9"})]),
    Reply(calls=[Call("refund", {"id": "../7", "body": {"percent": 10}})]),
    Reply(calls=[Call("refund", {"id": "7", "body": {"percent": 500}})]),
    Reply(calls=[Call("refund", {"id": "7", "body": {"percent": 50}})]),
    Reply(text="Order 7 was paid; 20 are paid back."),
]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    key = {"authorization": "Bearer a key"}
    try:
        async with serve() as url, httpx2.AsyncClient(base_url=url, headers=key) as client:
            print(await talk(llm, client, url, "Pay half of the paid order back."))
    except AdapterError as error:
        parser.exit(2, f"{error}\n")


if __name__ == "__main__":
    asyncio.run(main())
