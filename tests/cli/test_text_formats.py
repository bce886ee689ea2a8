"""`lutumpy text-formats` on the command line."""

from __future__ import annotations

from cli_toolkit import Run

from lutumpy.text_tools import TagToolParser, text_formats


def test_it_lists_every_format_and_each_name_that_it_says_works(run: Run) -> None:
    ended = run("text-formats", "--json")
    assert ended.code == 0
    records = ended.records
    assert [record["format"] for record in records] == [one.name for one in text_formats()]
    for record in records:
        for name in (record["format"], *record["aliases"]):
            TagToolParser.named(name)


def test_it_tells_the_format_of_a_model(run: Run) -> None:
    ended = run("text-formats", "--model", "Qwen3-Coder-30B-A3B-Instruct")
    assert ended.code == 0
    assert "qwen3_coder" in ended.out
    assert "hermes" not in ended.out
    assert run("text-formats", "--model", "nobody-knows").code == 1
