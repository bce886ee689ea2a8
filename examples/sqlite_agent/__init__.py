"""An agent that answers questions about a SQLite database, and changes it where it may: the model
of a real application.

- `database.py`: the application's own: a database file, opened for reading or for writing too. It
  knows no model.
- `tools.py`: what a model may ask for, as a toolset. The one tool that writes is off.
- `hooks.py`: what is checked before a call runs: private columns, how many rows would change, and
  the user's consent.
- `agent.py`: the loop. It is read-only by what it offers, by what its hooks let pass, and by how
  the file is opened.
- `__main__.py`: the program in the terminal; `sample.py`: a small database to try it with.
- `test_sqlite_agent.py`: its tests, with a scripted model and a real file: `python -m pytest
  examples/sqlite_agent`.
"""
