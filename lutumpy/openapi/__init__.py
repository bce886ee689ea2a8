"""The operations of an OpenAPI document as tools: `tools`.

Opt-in: nothing else in lutumpy imports this package. It fetches nothing and sends nothing: the
document and the HTTP client are the caller's.
"""

from __future__ import annotations

from lutumpy.openapi.addresses import AddressError
from lutumpy.openapi.importer import OpenApiTools, tools
from lutumpy.openapi.operations import Operation
from lutumpy.openapi.request import OperationRequest

__all__ = ["AddressError", "OpenApiTools", "Operation", "OperationRequest", "tools"]
