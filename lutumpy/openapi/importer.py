"""`tools`: the operations of an OpenAPI document as tools."""

# What is hard here
# -----------------
# Names. A model sees a tool's name and the names of its arguments, and both come from a document
# that knows other rules: an `operationId` is any text, and a parameter's name is unique only
# together with its place. So both are made of what is in the document, never of its order, and of
# all operations of the document, never of those that were chosen: another filter or another order
# gives the same names (rule Y5).
#
# Documents have mistakes. Everything that one operation needs is read for it alone, and why it
# can't be a tool is written down beside the others.

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lutumpy import DeclarationError, DynamicTool
from lutumpy.openapi.document import Document, UnusableError
from lutumpy.openapi.operations import Listed, Operation, list_operations, read_taken
from lutumpy.openapi.parameters import Parameter
from lutumpy.openapi.request import OperationRequest, make_request
from lutumpy.openapi.schemas import SchemaConverter
from lutumpy.plain.clean_names import choose_names, clean_name, clean_names, with_digest
from lutumpy.plain.driving import is_async
from lutumpy.plain.safe_text import safe_repr

if TYPE_CHECKING:
    from lutumpy.openapi.bodies import Body
    from lutumpy.openapi.operations import Taken

__all__ = ["OpenApiTools", "tools"]
