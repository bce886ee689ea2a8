"""Open calls and their late results on the page and in the terminal (LR19)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from lutumpy import ImagePart, NeedsTools, Session, TextPart, Toolset, page, tool, tool_fn
from lutumpy.cli.app import app
from lutumpy.testing import Call, Reply, ScriptedModel


@tool_fn(late=True)
def render(scene: str) -> str:
    """Render a scene."""
    raise NotImplementedError


class Studio(Toolset):
    render = tool(render)


def conversation() -> Session:
    session = Session()
    session.push_user("Go.")
    calls = [Call("render", {"scene": name}, id=name) for name in ("one", "two")]
    outcome = session.text_turn(ScriptedModel([Reply(calls=calls)]), tools=Studio).collect_sync()
    assert isinstance(outcome, NeedsTools)
    outcome.round.commit(session, [call.later("soon") for call in outcome.round.calls])
    picture = ImagePart(data=b"\x89PNG\r\n\x1a\n", media_type="image/png")
    first = session.open_calls[0]
    result: Any = first.reject("no")
    session.deliver([type(result)(first.metadata, (TextPart("Done."), picture))])
    return session


def test_an_open_call_says_since_when_and_links_to_its_late_item_and_back() -> None:
    html = page.render(conversation())
    assert len(re.findall(r">Open since \d{4}-\d\d-\d\d ", html)) == 1
    assert html.count(">Promised<") == 1
    assert "It came later than its turn" in html
    (late,) = set(re.findall(r'href="#(at-3-0)"', html))
    assert f'id="{late}"' in html
    assert "To the call" in html


def test_show_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    path.write_text(json.dumps(conversation().dump()))
    shown = CliRunner().invoke(app, ["show", str(path)])
    assert "open since" in shown.output
    assert "its result stands at item 3" in shown.output
    listed = CliRunner().invoke(app, ["show", "--json", str(path)])
    assert '"promised"' in listed.output
    assert '"since"' in listed.output
