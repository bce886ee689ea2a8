"""Routes for Starlette and FastAPI: chat pages over a `DurableLoop`. Needs the extra `web`."""

# A request does three things, in this order: it is authorized, what it brings is left in the store
# (a message, decisions), and the response follows the log. The run itself isn't part of the request
# (`runs.py`), so it makes no difference which process answers, or whether the browser stays.

from __future__ import annotations

from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Sequence,
)
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from lutumpy import Session
from lutumpy.durable import DurableLoop, OperatorStore, StoredEvent
from lutumpy.durable.log import (
    ENDINGS,
    MessagesTaken,
    RunFailed,
    RunStopped,
    RunWaits,
    ShownMessage,
)
from lutumpy.errors import StoreError
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_repr
from lutumpy.web.ag_ui import AGUIStream
from lutumpy.web.ai_sdk import AISDKStream, ui_messages
from lutumpy.web.frames import HEARTBEAT, encode_data
from lutumpy.web.hub import EventHub
from lutumpy.web.inbound import (
    MOST_BYTES,
    WebError,
    read_ag_ui,
    read_ai_sdk,
    read_answers,
)
from lutumpy.web.incoming import ANSWER_FIRST, Incoming, Past, if_any
from lutumpy.web.parts import Task
from lutumpy.web.runs import Runs, has_ended
from lutumpy.web.show import Show
from lutumpy.web.sse import EventSource
from lutumpy.web.view import View

try:
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import JSONResponse, Response, StreamingResponse
    from starlette.routing import Route
except ImportError as _missing:
    raise ImportError(
        'lutumpy.web.starlette needs starlette; install it with: python -m pip install ".[web]" '
        "(in a clone)"
    ) from _missing

__all__ = ["FrontEnd", "Who", "chat_routes"]

FrontEnd: TypeAlias = Literal["ai_sdk", "ag_ui", "sse"]
"""What a stream may be for: the AI SDK, AG-UI, or a browser's own `EventSource`."""

Who: TypeAlias = Callable[[Request, str], Awaitable[str]]
"""Who sends a request for a conversation; it raises `HTTPException` where they may not."""

Stream: TypeAlias = "AISDKStream | AGUIStream | EventSource"
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


def chat_routes(
    loop: DurableLoop[Any, Any],
    store: OperatorStore,
    *,
    who: Who,
    front_ends: Collection[FrontEnd] = ("ai_sdk", "ag_ui", "sse"),
    on_leave: Literal["go_on", "stop"] = "go_on",
    heartbeat: float = 15.0,
    show: Show | None = None,
    sdk: Literal[6, 7] = 7,
    media_types: Collection[str] = (),
    new_session: Callable[[str, str], Session] | None = None,
    queue: int = 256,
) -> list[Route]:
    """The routes of a chat over a durable loop, on asyncio.

    `POST /chat`, `GET /chat/{id}/stream`, `GET /chat/{id}/messages`, `POST /chat/{id}/stop` and
    `POST /chat/{id}/answers` (to what servers of MCP ask) for the AI SDK; `POST /ag-ui`;
    `GET /events/{id}` for server-sent events of our own.

    Args:
        loop: The loop; it has `events=True`.
        store: Its store.
        who: Who sends a request for a conversation, and whether they may: `await who(request, id)`
            returns a name, which stands by their decisions, or raises `HTTPException`. It is asked
            before anything is read or written, and has no default. Anything else than a name is a
            `TypeError`: the response is a 500.
        front_ends: Which routes there are.
        on_leave: `stop`: a run that nobody has watched for ten seconds is cancelled.
        heartbeat: Seconds between comments that keep a silent connection open.
        show: What is shown.
        sdk: The AI SDK's major version.
        media_types: Which files users may send, as `image/png`; by default none.
        new_session: Makes the session of a conversation that begins: `new_session(id, name)`. By
            default it is empty.
        queue: How many events may wait for one watcher before its connection is closed.

    Raises:
        ValueError: the loop writes no events, or an argument has no such value.
    """
    if not loop.has_events:
        raise ValueError(
            "chat_routes needs a loop with events=True: without a log, nothing is sent"
        )
    unknown = {*front_ends} - {"ai_sdk", "ag_ui", "sse"}
    if unknown or on_leave not in ("go_on", "stop") or not heartbeat > 0:
        raise ValueError(
            "front_ends= has 'ai_sdk', 'ag_ui' and 'sse', on_leave= is 'go_on' or 'stop', and "
            f"heartbeat= is positive: {front_ends!r}, {on_leave!r}, {heartbeat!r}"
        )
    hub = EventHub(store, queue=queue)
    runs = Runs(loop, store, stop_when_left=on_leave == "stop", tell=hub.wake)
    settings = _Settings(
        Show() if show is None else show,
        sdk,
        frozenset(media_types),
        new_session or (lambda scope, by: Session()),
        heartbeat,
    )
    chat = _Chat(loop, store, runs, hub, who, settings)
    routes: list[Route] = []
    if "ai_sdk" in front_ends:
        routes += [
            Route("/chat", _answering(chat.post), methods=["POST"]),
            Route("/chat/{id:path}/stream", _answering(chat.stream), methods=["GET"]),
            Route("/chat/{id:path}/messages", _answering(chat.messages), methods=["GET"]),
            Route("/chat/{id:path}/stop", _answering(chat.stop), methods=["POST"]),
            Route("/chat/{id:path}/answers", _answering(chat.answers), methods=["POST"]),
        ]
    if "ag_ui" in front_ends:
        routes.append(Route("/ag-ui", _answering(chat.ag_ui), methods=["POST"]))
    if "sse" in front_ends:
        routes.append(Route("/events/{id:path}", _answering(chat.events), methods=["GET"]))
    return routes


def _answering(handler: Handler) -> Handler:
    """Turn what is refused into a response; `HTTPException` is Starlette's to answer."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except WebError as error:
            return _respond_json({"error": error.public}, status=error.status)
        except StoreError as error:
            if error.kind != "unknown_scope":
                raise
            return _respond_json({"error": "There is no such conversation."}, status=404)

    return answer


def _respond_json(value: Any, *, status: int = 200) -> Response:
    """A JSON value as a response, whatever a client or a model has put into its texts."""
    return JSONResponse(json_values.clean(value), status_code=status)


async def _read_body(request: Request) -> bytes:
    """The body; one that is too large is given up on before it is there (rule W18)."""
    data = bytearray()
    try:
        async for chunk in request.stream():
            data += chunk
            if len(data) > MOST_BYTES:
                raise WebError(413, f"The body is over {MOST_BYTES} bytes.")
    except ClientDisconnect as error:  # which is no fault of the server, and for no log of it
        raise WebError(400, "The body broke off.") from error
    return bytes(data)


@dataclass(frozen=True)
class _Settings:
    show: Show
    sdk: Literal[6, 7]
    media_types: frozenset[str]
    new_session: Callable[[str, str], Session]
    heartbeat: float


class _Chat:
    """What the routes do."""

    def __init__(
        self,
        loop: DurableLoop[Any, Any],
        store: OperatorStore,
        runs: Runs,
        hub: EventHub,
        who: Who,
        settings: _Settings,
    ) -> None:
        self._store = store
        self._runs = runs
        self._incoming = Incoming(loop, store, runs, settings.new_session, settings.show)
        self._hub = hub
        self._ask_who = who
        self._settings = settings

    async def _who(self, request: Request, scope: str) -> str:
        """The name of who sends a request. Only a name lets somebody in: what isn't one may have
        been meant to keep them out.
        """
        name: Any = await self._ask_who(request, scope)
        if not isinstance(name, str) or not name:
            raise TypeError(
                f"who= returns a name, or raises HTTPException; it returned {safe_repr(name)}, so "
                "nothing was read or written"
            )
        return name

    # --- the AI SDK --------------------------------------------------------------------------

    async def post(self, request: Request) -> Response:
        """A message, or answers; the response is what comes of them."""
        settings = self._settings
        inbound = read_ai_sdk(await _read_body(request), media_types=settings.media_types)
        by = await self._who(request, inbound.scope)
        got = await self._incoming.take(inbound, by)
        stream = AISDKStream(inbound.scope, show=settings.show, sdk=settings.sdk, after=got.after)
        awaited = None if inbound.message is None else inbound.message.id
        return self._respond(request, inbound.scope, stream, got.past, got.task, awaited)

    async def stream(self, request: Request) -> Response:
        """The last task again, and what follows (rule W11)."""
        scope = str(request.path_params["id"])
        await self._who(request, scope)
        found = await if_any(self._incoming.waiting(scope))
        past, waiting = (Past((), 0), ()) if found is None else found
        if waiting and past.is_over:
            return self._stream_to(waiting[-1].id, request, scope, past)
        if past.last_task is None:
            # `useChat` asks this of a chat that its page has just made up, too.
            return Response(status_code=204)
        # Or its process was killed, and whoever watches waits for it.
        if past.is_going_on and request.method != "HEAD":
            self._runs.begin(scope, seen=past.last)
        stream = AISDKStream(scope, show=self._settings.show, sdk=self._settings.sdk)
        return self._respond(request, scope, stream, past, past.last_task)

    def _stream_to(self, message_id: str, request: Request, scope: str, past: Past) -> Response:
        """What the response to a message says that waits behind an answer which is over."""
        stream = AISDKStream(scope, show=self._settings.show, sdk=self._settings.sdk)
        is_head, ending = request.method == "HEAD", past.ending
        if isinstance(ending, (RunFailed, RunStopped)) and not self._runs.is_running(scope):
            # Nobody goes on before something more is said.
            data = b"" if is_head else HEARTBEAT + stream.end(ending)
            return Response(data, headers=dict(stream.headers))
        if not is_head:
            self._runs.begin(scope, seen=past.last)
        return self._respond(request, scope, stream, past, None, message_id)

    async def messages(self, request: Request) -> Response:
        """The conversation as UI messages, from its log, with the messages that wait.

        These come last, unless the answer before them isn't over: a client goes on with its last
        message, and sends answers to questions of no other one.
        """
        scope = str(request.path_params["id"])
        await self._who(request, scope)
        past, waiting = await self._incoming.waiting(scope)
        tasks = self._view(scope, past).tasks
        if not tasks or past.is_over:
            tasks.append(Task(0, ""))
        tasks[-1].messages += self._show(waiting)
        return _respond_json(ui_messages(tasks, sdk=self._settings.sdk))

    def _show(self, waiting: tuple[ShownMessage, ...]) -> tuple[ShownMessage, ...]:
        shown = self._settings.show.apply(MessagesTaken(waiting)) if waiting else None
        return shown.messages if isinstance(shown, MessagesTaken) else ()

    def _view(self, scope: str, past: Past) -> View:
        view = View(scope, self._settings.show)
        for stored in past.events:
            for _ in view.apply(stored):
                pass
        return view

    async def stop(self, request: Request) -> Response:
        """Stop the run (rule W19)."""
        scope = str(request.path_params["id"])
        by = await self._who(request, scope)
        return _respond_json({"stopped": await self._runs.stop(scope, by)})

    async def answers(self, request: Request) -> Response:
        """Answers to what a server asks; the client comes for the rest as it does after a reload
        (rule W9a).
        """
        scope = str(request.path_params["id"])
        body = await _read_body(request)
        by = await self._who(request, scope)
        call_id, answers = read_answers(body)
        asked = {
            question.key
            for call in await self._incoming.asked(scope)
            if call.call_id == call_id
            for question in call.questions
        }
        if not {*answers} <= asked:
            raise WebError(409, "Nobody asks that, or it was answered.")
        seen = await self._store.last_event(scope)
        taken = await self._incoming.answer(scope, call_id, answers, by)
        self._runs.begin(scope, seen=seen)
        return _respond_json({"taken": taken})

    # --- AG-UI, and our own ------------------------------------------------------------------

    async def ag_ui(self, request: Request) -> Response:
        """A run: a message, answers, or neither, which is a client that comes again."""
        settings = self._settings
        inbound = read_ag_ui(await _read_body(request), media_types=settings.media_types)
        scope = inbound.scope
        by = await self._who(request, scope)
        got = await self._incoming.take(inbound, by)
        is_new = bool(inbound.answers or inbound.replies) or (
            inbound.message is not None and got.task is None
        )
        # Whoever sends a message while a run goes on hasn't seen all of it.
        is_behind = not is_new or (inbound.message is not None and got.past.is_going_on)
        stream = AGUIStream(
            scope,
            inbound.run_id,
            show=settings.show,
            after=got.after if is_new else got.past.last,
            snapshot=is_behind,
            is_over=not got.goes_on and not is_new,
            pending=inbound.message if is_new else None,
            waiting=self._show((await self._incoming.waiting(scope))[1]) if is_behind else (),
        )
        return self._respond(request, scope, stream, got.past, None)

    async def events(self, request: Request) -> Response:
        """The log, behind `Last-Event-ID` or `?after=`."""
        scope = str(request.path_params["id"])
        await self._who(request, scope)
        named = request.headers.get("last-event-id") or request.query_params.get("after") or "0"
        if not named.isascii() or not named.isdigit() or len(named) > 18:
            raise WebError(422, "`after` is not a number.")
        after = int(named)
        last = await self._store.last_event(scope)
        if after > last:
            raise WebError(409, "There is no such event yet.")
        if request.method != "HEAD" and not await has_ended(self._store, scope):  # as in `stream`
            self._runs.begin(scope, seen=last)
        show = self._settings.show
        # What was seen is read only where it says which calls aren't shown.
        past = await self._incoming.past(scope) if show.hides_tools else Past((), after)
        stream = EventSource(scope, show=show, after=after)
        return self._respond(request, scope, stream, past, None)

    # --- what goes out -----------------------------------------------------------------------

    def _respond(
        self,
        request: Request,
        scope: str,
        stream: Stream,
        past: Past,
        task: int | None,
        message_id: str | None = None,
    ) -> Response:
        if request.method == "HEAD":  # it has no body that would end it, and watches nothing
            return Response(headers=dict(stream.headers))
        if task is not None:
            past, message_id = past.of_task(task), None
        known = past.events if message_id is None else ()
        frames = self._frames(scope, stream, known, past.last, message_id)
        return StreamingResponse(frames, headers=dict(stream.headers))

    async def _frames(
        self,
        scope: str,
        stream: Stream,
        known: Sequence[StoredEvent],
        last: int,
        message_id: str | None,
    ) -> AsyncIterator[bytes]:
        """The bytes of a response.

        Args:
            scope: The conversation's id.
            stream: The encoder.
            known: What of the log it is given first.
            last: The number of the last event there was.
            message_id: The message of which the task is awaited; `None` where it is known.
        """
        self._runs.watch(scope)
        try:
            yield HEARTBEAT
            is_going_on = _is_going_on(known, last)
            for index, stored in enumerate(known):
                is_past = is_going_on or index < len(known) - 1
                for frame in stream.feed(stored, superseded=is_past):
                    yield frame.data
            if stream.ended and not isinstance(stream, EventSource):
                return
            if isinstance(stream, AGUIStream):
                for event in stream.begin():
                    yield encode_data(event)
                if stream.ended:
                    return
            is_endless = isinstance(stream, EventSource)
            follow = self._follow(scope, last, message_id, is_endless=is_endless)
            async with aclosing(follow) as events:
                async for each in events:
                    if each is None:
                        yield HEARTBEAT
                        continue
                    if isinstance(each, (RunFailed, RunStopped)):
                        if not isinstance(stream, EventSource):
                            yield stream.end(each)
                        return
                    if message_id is not None and isinstance(stream, AISDKStream):
                        waits = each.load()
                        if isinstance(waits, RunWaits):
                            yield await self._end_waiting(scope, stream, waits)
                            return
                    message_id = None  # it was taken
                    for frame in stream.feed(each):
                        yield frame.data
                    if stream.ended and not isinstance(stream, EventSource):
                        return
        finally:
            self._runs.leave(scope)

    async def _end_waiting(self, scope: str, stream: AISDKStream, event: RunWaits) -> bytes:
        """The end of the response to a message that a run which waits hasn't taken."""
        if event.held or event.asked:
            return encode_data({"type": "error", "errorText": ANSWER_FIRST})
        view = self._view(scope, await self._incoming.past(scope))
        return stream.end(event, view.open_promises())

    async def _follow(
        self, scope: str, last: int, message_id: str | None, *, is_endless: bool
    ) -> AsyncGenerator[StoredEvent | RunFailed | RunStopped | None, None]:
        """What comes behind the last event; where a message is awaited, from its task on.

        Where the run waits before the message was taken, a person has to answer first (see
        `Incoming.take`), or a late result has to come, perhaps in hours: the last thing that comes
        is the news of it. So it is where the last run has failed or was stopped, and its end isn't
        among what came, unless it is endless.
        """
        skipped: list[StoredEvent] = []
        source = self._hub.follow_or_wait(
            scope,
            after=last,
            patience=self._settings.heartbeat,
            is_over=lambda: not is_endless and self._runs.failure(scope) is not None,
        )
        async with aclosing(source) as events:
            async for stored in events:
                if stored is None or message_id is None:
                    yield stored
                    continue
                if skipped and skipped[0].task != stored.task:
                    skipped = []
                skipped.append(stored)
                event = stored.load()
                if isinstance(event, MessagesTaken) and any(
                    message.id == message_id for message in event.messages
                ):
                    message_id = None
                    for each in skipped:
                        yield each
                elif isinstance(event, RunWaits):
                    yield stored
                    return
        if not is_endless and (failure := self._runs.failure(scope)) is not None:
            yield failure


def _is_going_on(known: Sequence[StoredEvent], last: int) -> bool:
    """Whether the log goes on behind what is known of a task."""
    return not known or known[-1].seq < last or known[-1].event.get("event") not in ENDINGS
