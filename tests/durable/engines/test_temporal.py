"""What holds on Temporal alone: its histories, and what somebody stops there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from durable_toolkit import ANSWER, call, calls, results
from engines_toolkit import Site

from lutumpy.durable import TemporalRunner, temporal_workflows

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def temporal(temporal_address: str, tmp_path: Path) -> Any:
    site = Site("temporal", temporal_address, tmp_path)
    yield site
    site.close()


async def histories(site: Site) -> list[Any]:
    from temporalio.client import Client

    client = await Client.connect(site.where)
    with anyio.fail_after(30):
        while True:  # what is listed comes a moment after what has ended
            query = f"TaskQueue = '{site.queue}'"
            found = [each async for each in client.list_workflows(query)]
            if found and all(each.close_time is not None for each in found):
                break
            await anyio.sleep(0.1)
    return [await client.get_workflow_handle(each.id).fetch_history() for each in found]


async def test_the_workflow_is_deterministic_and_holds_one_ticket_as_json(temporal: Site) -> None:
    from temporalio.worker import Replayer

    temporal.start_worker()
    await temporal.create()
    await temporal.run(
        [calls(call("look", "l1", word="cat"), call("charge", "p1", amount=5)), ANSWER]
    )
    found = await histories(temporal)
    assert len(found) == 2
    for history in found:
        assert history.workflow_id.startswith("call:")
        await Replayer(workflows=temporal_workflows()).replay_workflow(history)
        text = history.to_json()
        assert len(text) < 20_000
        kinds = {
            payload["metadata"]["encoding"]
            for event in json.loads(text)["events"]
            for values in event.values()
            if isinstance(values, dict)
            for payload in (values.get("input") or values.get("result") or {}).get("payloads", [])
        }
        assert kinds == {"anNvbi9wbGFpbg=="}  # json/plain


@pytest.mark.parametrize(
    ("tool", "arguments", "said"),
    [
        ("charge", {"amount": 20}, "may have taken effect"),
        ("save", {"title": "slow"}, "calling it again does no harm"),
    ],
)
async def test_a_call_that_somebody_stops_there_ends_the_wait(
    temporal: Site, tool: str, arguments: dict[str, Any], said: str
) -> None:
    from temporalio.client import Client

    # No worker takes the idempotent one: it waits in the queue, and is stopped there.
    if tool == "charge":
        temporal.start_worker()
    await temporal.create()
    async with anyio.create_task_group() as group:
        group.start_soon(temporal.run, [calls(call(tool, "x1", **arguments)), ANSWER])
        client = await Client.connect(temporal.where)
        if tool == "charge":
            await temporal.notes.wait_for("charge")
        with anyio.fail_after(30):
            stopped = False
            while not stopped:
                query = f"TaskQueue = '{temporal.queue}'"
                async for each in client.list_workflows(query):
                    await client.get_workflow_handle(each.id).terminate("no")
                    stopped = True
                await anyio.sleep(0.1)
    ((status, text),) = results(await temporal.store.session(temporal.scope))
    assert status == "error"
    assert "stopped by somebody" in text
    assert said in text


async def test_arguments_that_don_t_fit_are_refused(temporal: Site) -> None:
    from temporalio.client import Client

    client = await Client.connect(temporal.where)
    with pytest.raises(TypeError, match=r"takes a temporalio\.client\.Client, not str"):
        TemporalRunner("localhost")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="heartbeat= is a number of seconds, not str"):
        TemporalRunner(client, heartbeat="5")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="heartbeat=0 is not"):
        TemporalRunner(client, heartbeat=0)
    assert repr(TemporalRunner(client, "q")) == "<TemporalRunner on the task queue 'q'>"
