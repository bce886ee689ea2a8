"""A small database to try the agent with."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

SQL = """
BEGIN;
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, phone TEXT);
CREATE TABLE orders (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES customers (id),
    cents INTEGER NOT NULL,
    paid INTEGER NOT NULL DEFAULT 0
);
INSERT INTO customers VALUES (1, 'Ada', '555-0001'), (2, 'Grace', '555-0002'), (3, 'Edsger', NULL);
INSERT INTO orders VALUES (1, 1, 4200, 1), (2, 1, 990, 0), (3, 2, 12000, 0), (4, 3, 500, 1);
COMMIT;
"""


def make_sample(path: Path) -> Path:
    """Write the database to a file that doesn't exist yet."""
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(SQL)
    return path
