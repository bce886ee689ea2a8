"""Values and exceptions of other people's code as text, whatever their own methods do.

A `__str__` or `__repr__` that raises must not take the place of the error that is being told.
`repr(value)` in a message of this library is therefore `safe_repr(value)` wherever the value isn't
the library's own.
"""

from __future__ import annotations

__all__ = ["class_name", "explain_misfit", "safe_repr", "safe_str"]

_NAME_LENGTH = 100


def class_name(value: object) -> str:
    """The name of the value's class, at most 100 characters of it."""
    unnamed = "Error" if isinstance(value, BaseException) else "object"
    try:
        return str(type(value).__name__)[:_NAME_LENGTH].strip() or unnamed
    except Exception:  # a metaclass may answer for its name
        return unnamed


def safe_str(value: object) -> str:
    """`str(value)`, or a text that names the class where that raises."""
    try:
        return str(value)
    except Exception:
        return f"<{class_name(value)} whose __str__ raised>"


def safe_repr(value: object) -> str:
    """`repr(value)`, or a text that names the class where that raises."""
    try:
        return repr(value)
    except Exception:
        return f"<{class_name(value)} whose __repr__ raised>"


def explain_misfit(error: Exception) -> str:
    """Why a value of another shape couldn't be read. Of a key that is not there, Python says only
    its name.
    """
    return f"{error} is missing" if type(error) is KeyError else str(error)
