"""A toolset for each request of a web application: the tools of the program, and the user's own.

Users keep saved searches, each with a name, a description and a JSON Schema: rows of a table, known
only when a request arrives. The handler puts those of the request's user into the place that the
toolset has for them. The tools of the program stay the same objects, and come first in each offer.

Run:    python examples/web_handler.py            a scripted model, no key
        python examples/web_handler.py --live     OpenAI, with OPENAI_API_KEY;
                                                  --model NAME for another model,
                                                  OPENAI_BASE_URL for any compatible host
Prints: for each request its user, the tools that were offered, what ran, and the answer.
"""

from __future__ import annotations

import argparse
import asyncio
from typing import Any

import httpx2
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from lutumpy import (
    AdapterError,
    DynamicOutput,
    DynamicTool,
    Finished,
    Model,
    NeedsTools,
    Session,
    Skip,
    Toolset,
    dynamic,
    tool,
    tool_fn,
)
from lutumpy.adapters.openai import OpenAIChat
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.testing import Call, Reply, ScriptedModel

MAX_ROUNDS = 5

# --- what the application keeps -------------------------------------------------------------------

USERS = {"token-1": "ada", "token-2": "bob"}
YEAR = {"type": "object", "properties": {"year": {"type": "integer"}}, "required": ["year"]}
SEARCHES = [
    {"user": "ada", "name": "papers", "about": "Ada's papers of a year.", "schema": YEAR},
    {"user": "bob", "name": "bikes", "about": "Bikes in Bob's shop.", "schema": {}},
]


@tool_fn(effect="read")
async def whoami(user: Skip[str]) -> str:
    """Say who asks."""
    return user


class AppTools(Toolset):
    whoami = tool(whoami)
    searches = dynamic()


def make_search(row: dict[str, Any]) -> DynamicTool:
    """A saved search as a tool."""

    async def search(arguments: dict[str, Any], user: str) -> DynamicOutput:
        return f"{row['name']} of {user}: {arguments}"

    return DynamicTool(row["name"], row["about"], row["schema"], run=search, effect="read")


# --- the application ------------------------------------------------------------------------------


async def ask(request: Request) -> JSONResponse:
    user = USERS.get(request.headers.get("x-token", ""))
    if user is None:
        return JSONResponse({"error": "who are you?"}, 401)
    own = [make_search(row) for row in SEARCHES if row["user"] == user]
    offered = AppTools.with_dynamic_tools({AppTools.searches: own})
    dispatch, executor = Dispatcher(offered, context={"user": user}), ToolExecutor()
    session = Session()
    session.push_user((await request.json())["question"])
    ran: list[str] = []
    llm: Model = request.app.state.llm
    for _ in range(MAX_ROUNDS):
        try:
            outcome = await session.text_turn(llm, tools=offered).collect()
        except AdapterError as error:
            return JSONResponse({"error": str(error)}, 502)
        match outcome:
            case Finished(result=result):
                offer = [selector.name for selector in offered.selectors()]
                answer = result.refusal or result.text
                return JSONResponse({"user": user, "tools": offer, "ran": ran, "answer": answer})
            case NeedsTools(round=round):
                results = await executor.run(round.calls, dispatch)
                ran += [f"{one.metadata.name}: {one.content}" for one in results]
                ran += [f"{issue.metadata.name}: {issue.detail}" for issue in round.issues]
                round.commit(session, results)
    return JSONResponse({"error": f"no answer after {MAX_ROUNDS} rounds"}, 500)


def make_app(llm: Model) -> Starlette:
    app = Starlette(routes=[Route("/ask", ask, methods=["POST"])])
    app.state.llm = llm
    return app


# --- two users ------------------------------------------------------------------------------------

SCRIPT = [
    Reply(calls=[Call("whoami", {}), Call("papers", {"year": 1843})]),
    Reply(text="Ada, you wrote one."),
    # A tool of somebody else's is no tool here, whatever the model thinks.
    Reply(calls=[Call("bikes", {"color": "red"}), Call("papers", {"year": 1843})]),
    Reply(text="There is a red one."),
]
QUESTIONS = [("token-1", "What did I write in 1843?"), ("token-2", "Is there a red bike?")]


async def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    options = parser.parse_args()
    llm: Model = OpenAIChat(options.model) if options.live else ScriptedModel(SCRIPT)
    wire = httpx2.ASGITransport(app=make_app(llm))
    async with httpx2.AsyncClient(transport=wire, base_url="http://app") as client:
        for token, question in QUESTIONS:
            body = {"question": question}
            answer = await client.post("/ask", json=body, headers={"x-token": token})
            read = answer.json()
            if answer.is_error:
                parser.exit(2, f"{read['error']}\n")
            print(f"{read['user']}: {question} (tools: {', '.join(read['tools'])})")
            for line in read["ran"]:
                print(f"  {line}")
            print(f"  {read['answer']}")


if __name__ == "__main__":
    asyncio.run(main())
