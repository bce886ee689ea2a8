"""A web service, three workers, and calls that wait: an approval, a webhook, a question over MCP.

Five processes share one file of SQLite. The service only leaves things in it; whichever worker is
there goes on. After each step a worker is killed and another one started, and nothing is lost or
done twice.

Run:    python -m examples.trip_service           a scripted model, no key; decides by itself
        python -m examples.trip_service --live    OpenAI, with OPENAI_API_KEY;
                                                  --model NAME for another model,
                                                  OPENAI_BASE_URL for any compatible host
Prints: what the conversation waits for at each step, what the service says to whoever decides,
        answers and delivers, and the answer of the model.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2

from lutumpy.testing import Call, Reply, serve

from .processes import run_hotel, run_service, run_worker

SCRIPT = [
    Reply(
        calls=[
            Call("pay", {"amount": 900}, id="pay"),
            Call("visa", {"country": "Peru"}, id="visa"),
            Call("reserve", {"nights": 3}, id="reserve"),
        ]
    ),
    Reply(text="Your trip is booked."),
]
TRIP = "/trips/peru"
SECONDS = 60.0


class Processes:
    """The processes of this program."""

    def __init__(self, file: Path, model: str) -> None:
        self._common = ["--file", str(file), "--model", model]
        self.workers: list[subprocess.Popen[str]] = []
        self._others: list[subprocess.Popen[str]] = []

    def start(self, role: str, *arguments: str) -> tuple[subprocess.Popen[str], str]:
        """A process, and the first line that it prints."""
        command = [sys.executable, "-m", "examples.trip_service", *self._common]
        process = subprocess.Popen(
            [*command, "--role", role, *arguments], stdout=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        self._others.append(process)
        return process, process.stdout.readline().strip()

    def start_worker(self, *addresses: str) -> None:
        self.workers.append(self.start("worker", *addresses)[0])

    def replace_worker(self, *addresses: str) -> None:
        """Kill the oldest worker, and start another one."""
        self.workers.pop(0).kill()
        self.start_worker(*addresses)

    def end(self) -> None:
        for process in self._others:
            process.kill()
            process.communicate()


def trip_at_rest(web: httpx2.Client) -> dict[str, Any]:
    """What the service says of the trip, once no worker is at it.

    A worker that is killed inside a call leaves open whether the call happened: `pay` and the
    hotel's `reserve` would not be tried again, and the model would be told so.
    """
    until = time.monotonic() + SECONDS
    trip: dict[str, Any] = {"status": "open"}
    while trip["status"] == "open":
        if time.monotonic() > until:
            raise TimeoutError(f"the trip is still under way: {trip}")
        time.sleep(0.1)
        trip = web.get(TRIP).json()
    return trip


def tell_story(processes: Processes) -> None:
    _, hotel = processes.start("hotel")
    hotel += "/mcp"
    _, service = processes.start("service", hotel)
    for _ in range(3):
        processes.start_worker(hotel, service)
    with httpx2.Client(base_url=service, timeout=SECONDS) as web:
        web.post(TRIP, json={"id": "request 1", "text": "Book me a trip to Peru."})
        (held,) = trip_at_rest(web)["held"]
        print(f"somebody has to decide: {', '.join(held['calls'])}")
        processes.replace_worker(hotel, service)
        decision = {"digest": held["digest"], "call": "pay", "by": "ann"}
        print("ann:", web.post(f"{TRIP}/decisions", json=decision).json())
        print("bob:", web.post(f"{TRIP}/decisions", json={**decision, "by": "bob"}).json())

        (asked,) = trip_at_rest(web)["asked"]
        print(f"the hotel asks: {asked['message']}")
        processes.replace_worker(hotel, service)
        for name in ("A", "Ada"):
            given = {"action": "accept", "content": {"name": name}}
            answer = {"call": asked["call"], "key": asked["key"], "answer": given, "by": "ann"}
            told = web.post(f"{TRIP}/answers", json=answer).json()
            print(f"{name}:", told.get("error", told))

        assert trip_at_rest(web)["asked"] == []
        processes.replace_worker(hotel, service)
        for application in web.get("/office").json():
            done = {
                "ticket": application["ticket"],
                "result": f"a visa for {application['country']}",
            }
            for _ in range(2):  # webhooks come twice
                print("the office calls:", web.post("/webhook", json=done).json())
        print(trip_at_rest(web)["answer"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--live", action="store_true", help="ask a real model")
    parser.add_argument("--model", default="gpt-4.1-mini", help="which one (%(default)s)")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("addresses", nargs="*", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role == "hotel":
        asyncio.run(run_hotel())
    elif options.role is not None:
        run = run_worker if options.role == "worker" else run_service
        asyncio.run(run(options.file, options.model, *options.addresses))
    elif options.live and "OPENAI_API_KEY" not in os.environ:
        parser.exit(2, "--live needs OPENAI_API_KEY\n")
    else:
        with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
            if not options.live:
                url = stack.enter_context(serve(SCRIPT)).openai_base_url
                os.environ.update(OPENAI_BASE_URL=url, OPENAI_API_KEY="none")
            processes = Processes(Path(folder) / "trips.db", options.model)
            stack.callback(processes.end)
            tell_story(processes)


if __name__ == "__main__":
    main()
