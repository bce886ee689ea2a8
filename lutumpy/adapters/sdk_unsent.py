"""Which errors of the SDKs say that a request never reached the provider, and so cost nothing."""

from __future__ import annotations

__all__ = ["is_closed_client", "is_unsent"]

# Of the HTTP stack: not even the connection came, or the request could not be written down.
_UNSENT = frozenset(
    {
        "ConnectError",
        "ConnectTimeout",
        "InvalidURL",
        "LocalProtocolError",
        "PoolTimeout",
        "ProxyError",
        "UnsupportedProtocol",
    }
)

# The roots of the SDKs' errors. What is raised as one of these alone is about the client: a key
# that is missing.
_SDK_ROOTS = frozenset({"AnthropicError", "OpenAIError"})


def is_unsent(error: BaseException) -> bool:
    """Whether the request is known not to have reached the provider.

    Where the SDK repeated it, this is said of the last repetition, which is all that its error
    tells.
    """
    kinds = _names(error)
    # A missing key is a plain TypeError where the SDK notices it when it builds the request.
    if isinstance(error, TypeError) or (kinds & _SDK_ROOTS and "APIError" not in kinds):
        return True
    found: BaseException | None = error
    while found is not None:
        if _names(found) & _UNSENT:
            return True
        if is_closed_client(found):
            return True
        found = found.__cause__
    return False


def is_closed_client(error: BaseException) -> bool:
    """Whether the HTTP stack says, as it does in words only, that the client was closed before the
    request.
    """
    return isinstance(error, RuntimeError) and "client has been closed" in str(error)


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
