"""Files read value by value: what comes out, and where faults are said to be."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lutumpy.cli import reading
from lutumpy.cli.reading import BadValue, Value, read_values


def read(data: bytes, **options: Any) -> list[Value | BadValue]:
    return list(read_values(io.BytesIO(data), **options))


def values(data: bytes, **options: Any) -> list[Any]:
    return [entry.value if isinstance(entry, Value) else entry for entry in read(data, **options)]


json_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(allow_nan=False, allow_infinity=False),
        st.text(),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=8,
)
documents = st.lists(
    st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=2), max_size=4
)


class Slow(io.RawIOBase):
    """A file that gives a few bytes at a time, whatever it is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.most = data, most

    def read(self, size: int = -1) -> bytes:
        taken, self.data = self.data[: self.most], self.data[self.most :]
        return taken


@given(documents, st.booleans(), st.sampled_from([None, 1]), st.integers(1, 9))
def test_an_array_gives_its_elements_however_it_is_spelled_and_cut(
    items: list[Any], ascii_only: bool, indent: int | None, most: int
) -> None:
    data = json.dumps(items, ensure_ascii=ascii_only, indent=indent).encode(errors="surrogatepass")
    try:
        data.decode()
    except UnicodeDecodeError:
        data = json.dumps(items).encode()
    stream: Any = Slow(data, most)
    found = list(read_values(stream, lines=False))
    assert [entry.value for entry in found if isinstance(entry, Value)] == (items or [[]])
    assert [
        json.loads(entry.text) for entry in found if isinstance(entry, Value) and entry.text
    ] == items


@given(
    documents.filter(lambda items: len(items) > 1),
    st.integers(1, 9),
    st.sampled_from([b"\n", b"\r\n", b"\n\n"]),
)
def test_lines_give_their_values_however_they_are_cut(
    items: list[Any], most: int, end: bytes
) -> None:
    stream: Any = Slow(end.join([json.dumps(item).encode() for item in items]), most)
    found = list(read_values(stream))
    assert [entry.value for entry in found if isinstance(entry, Value)] == items
    assert {entry.form for entry in found if isinstance(entry, Value)} == {"line"}


@given(
    st.dictionaries(st.text(max_size=5), json_values, min_size=1, max_size=4),
    st.sampled_from([None, 1, 4]),
)
def test_one_object_is_one_value(item: Any, indent: int | None) -> None:
    (entry,) = read(json.dumps(item, indent=indent).encode())
    assert isinstance(entry, Value)
    assert (entry.value, entry.line, entry.form) == (item, 1, "alone")


@given(st.binary(max_size=200), st.sampled_from([None, True, False]))
def test_no_bytes_make_it_raise(data: bytes, lines: bool | None) -> None:
    for entry in read(data, lines=lines):
        assert isinstance(entry, (Value, BadValue))
        assert entry.line >= 1


@given(documents.filter(bool), st.data())
def test_a_cut_file_is_never_taken_for_a_whole_one(items: list[Any], draw: st.DataObject) -> None:
    data = json.dumps(items).encode()
    cut = draw.draw(st.integers(1, len(data) - 1))
    *_, last = read(data[:cut], lines=False)
    assert isinstance(last, BadValue)


@pytest.mark.parametrize(
    ("data", "line", "column", "cause"),
    [
        (b"", 1, 1, "the file is empty"),
        (b" \n \n", 3, 1, "the file is empty"),
        (b"hello", 1, 1, "expecting value"),
        (b'{"a":1,\n "b" 2}', 2, 6, "expecting ':' delimiter"),
        (b'[{"a":1},\n  {"b":}]', 2, 8, "expecting value"),
        (b'[{"a":1}\n {"b":1}]', 2, 2, "expecting ',' delimiter"),
        (b'[{"a":1},', 1, 10, "the file ends inside an array"),
        (b'{"a":1} x', 1, 9, "extra data"),
        (b'{"a":"\xff"}', 1, 7, "not UTF-8"),
        ('{"ä":"'.encode() + b"\xff", 1, 7, "not UTF-8"),
        (b"\xff\xfe{\x00", 1, 1, "UTF-16"),
        (b"\x00\x00\xfe\xff", 1, 1, "UTF-32"),
        (b'{"a":"x\ny"}', 1, 8, "invalid control character"),
        (b'["a", NaN]', 1, None, "NaN is not JSON"),
        (b"[" * 200_000, 1, None, "nested too deeply"),
        (b"[" + b"1" * 5000 + b"]", 1, None, "integer string conversion"),
    ],
)
def test_faults_are_named_with_line_column_and_cause(
    data: bytes, line: int, column: int | None, cause: str
) -> None:
    fault = read(data)[-1]
    assert isinstance(fault, BadValue)
    assert (fault.line, fault.column) == (line, column)
    assert cause in fault.cause


def test_a_fault_far_inside_a_file_has_the_right_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "CHUNK", 64)
    items = [{"text": "x" * index} for index in range(300)]
    text = "[\n" + ",\n".join(map(json.dumps, items)) + ",\n  {bad}\n]"
    fault = read(text.encode(), lines=False)[-1]
    assert isinstance(fault, BadValue)
    assert (fault.line, fault.column) == (302, 4)


def test_one_broken_line_does_not_hide_the_others() -> None:
    data = b'{"a":1}\n{"a":\n\xff\n\n{"a":2}\nNaN\n{"a":3}'
    found = read(data)
    assert [(e.line, type(e).__name__) for e in found] == [
        (1, "Value"),
        (2, "BadValue"),
        (3, "BadValue"),
        (5, "Value"),
        (6, "BadValue"),
        (7, "Value"),
    ]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b'{"a":1}\n', "alone"),
        (b'{"a":1}\n{"b":1}', "line"),
        (b'{"a":\n{"b":1}\n{"c":1}', "line"),  # the first line is broken, the next ones tell
        (b"[1]\n[2]", "line"),
        (b'{"a":\n{"b":"' + b"x" * 9_000 + b'"}\n', "line"),  # also where the next one is long
        (b'[\n{"a":1}\n]', "element"),
        (b'{\n"a":1\n}', "alone"),
        (b'[{"a":1},{"b":1}]', "element"),
        (b'\xef\xbb\xbf{"a":1}', "alone"),
    ],
)
def test_json_and_lines_are_told_apart(data: bytes, expected: str) -> None:
    assert [entry.form for entry in read(data) if isinstance(entry, Value)][-1] == expected


def test_an_array_whose_elements_are_parts_is_one_value() -> None:
    data = b'[{"role":"user"},\n {"other":1}]'
    (entry,) = read(data, is_part=lambda value: "role" in value)
    assert isinstance(entry, Value)
    assert entry.value == [{"role": "user"}, {"other": 1}]
    assert entry.form == "alone"


def test_lines_too_long_to_be_looked_at_are_still_lines() -> None:
    line = json.dumps({"text": "x" * 3_000_000}).encode()
    found = read(line + b"\n" + line + b"\n")
    assert [(entry.line, type(entry)) for entry in found] == [(1, Value), (2, Value)]


def test_progress_adds_up_to_the_file() -> None:
    counts: list[int] = []
    data = json.dumps([{"text": "x" * 100_000}] * 20).encode()
    assert len(read(data, progress=counts.append)) == 20
    assert sum(counts) == len(data)
    assert len(counts) > 3
