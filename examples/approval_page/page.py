"""The web page: what waits in the store, and what somebody decides about it."""

from __future__ import annotations

import json
import socket
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from lutumpy.durable import HeldPlan, SqliteStore
from lutumpy.errors import StoreError

from .agent import make_loop

FORM = """<form method="post"><h2>{tool}</h2><p>{reason}</p>
<input type="hidden" name="scope" value="{scope}">
<input type="hidden" name="digest" value="{digest}">
<input type="hidden" name="call" value="{call_id}">
<textarea name="input">{input}</textarea>
<button name="do" value="run">Run</button> <input name="reason" placeholder="why not">
<button name="do" value="reject">Reject</button></form>"""


def draw(held: HeldPlan) -> str:
    """A form for each call that waits. Whatever the model wrote is text on the page."""
    forms: list[str] = []
    calls: Any = held.plan["calls"]
    for call in calls:
        if call["call_id"] in held.held:
            own = {"scope": held.scope, "digest": held.digest, "input": json.dumps(call["input"])}
            shown = {name: escape(str(value)) for name, value in {**call, **own}.items()}
            forms.append(FORM.format_map(shown))
    return "".join(forms)


def make_page(store: SqliteStore, model: str) -> Starlette:
    """The page. In your program, your login stands before it and says who decides."""
    loop = make_loop(store, model)

    async def show(request: Request) -> Response:
        forms = [draw(held) for held in await store.held()]
        return HTMLResponse("".join(forms) or "<p>Nothing waits.</p>")

    async def decide(request: Request) -> Response:
        form = dict(parse_qsl((await request.body()).decode(errors="replace")))
        decision: dict[str, Any]
        try:
            if form["do"] == "run":
                decision = {"decision": "run", "input": json.loads(form["input"])}
            else:
                decision = {"decision": form["do"], "reason": form.get("reason", "")}
            scope, digest, call = form["scope"], form["digest"], form["call"]
            by = request.headers.get("x-user", "somebody")
            is_first = await loop.decide(scope, digest, {call: decision}, by=by)
        except StoreError as error:
            return Response(str(error), 409 if error.kind == "plan" else 422)
        except (KeyError, ValueError) as error:
            return Response(f"the form can't be read: {error!r}", 400)
        return RedirectResponse("/", 303) if is_first else Response("it was decided before", 409)

    return Starlette(routes=[Route("/", show), Route("/", decide, methods=["POST"])])


async def run_page(file: Path, model: str) -> None:
    async with SqliteStore(file) as store:
        config = uvicorn.Config(make_page(store, model), log_level="warning", ws="none")
        with socket.create_server(("127.0.0.1", 0)) as door:
            print(f"http://127.0.0.1:{door.getsockname()[1]}/", flush=True)
            await uvicorn.Server(config).serve(sockets=[door])
