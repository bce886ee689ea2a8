"""Which errors of the SDKs say that a request never reached the provider, and so cost nothing."""

from __future__ import annotations

import ssl
from collections.abc import Iterator, Mapping

__all__ = ["is_closed_client", "is_impossible_address", "is_unsent"]

# Of the HTTP stacks: not even the connection came, or the request could not be written down.
_UNSENT = frozenset(
    {
        # httpx, some of them requests too
        "ConnectError",
        "ConnectTimeout",
        "InvalidURL",
        "LocalProtocolError",
        "PoolTimeout",
        "ProxyError",
        "UnsupportedProtocol",
        # urllib3
        "ConnectTimeoutError",
        "LocationValueError",
        "NewConnectionError",
        # aiohttp
        "ClientConnectorError",
        "ClientHttpProxyError",
        "ConnectionTimeoutError",
    }
)

# Failures of TLS that come before anything else is written. A server's certificate is checked on
# this side, so the client doesn't go on; the others say that the two have no protocol in common.
_HANDSHAKE_REASONS = frozenset(
    {
        "CERTIFICATE_VERIFY_FAILED",
        "NO_PROTOCOLS_AVAILABLE",
        "NO_SHARED_CIPHER",
        "SSLV3_ALERT_HANDSHAKE_FAILURE",
        "TLSV1_ALERT_PROTOCOL_VERSION",
        "TLSV1_UNRECOGNIZED_NAME",
        "UNSUPPORTED_PROTOCOL",
        "WRONG_VERSION_NUMBER",
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
    return any(
        _names(found) & _UNSENT
        or is_closed_client(found)
        or is_impossible_address(found)
        or _is_refused_handshake(found)
        for found in _with_causes(error)
    )


def _with_causes(error: BaseException) -> Iterator[BaseException]:
    """An error and those that it was made from, wherever the HTTP stacks keep them."""
    waiting: list[object] = [error]
    seen: set[int] = set()
    while waiting:
        found = waiting.pop()
        if not isinstance(found, BaseException) or id(found) in seen:
            continue
        seen.add(id(found))
        yield found
        kwargs = getattr(found, "kwargs", None)
        inner = kwargs.get("error") if isinstance(kwargs, Mapping) else None
        waiting += [found.__cause__, *found.args, getattr(found, "reason", None), inner]
        waiting += getattr(found, "exceptions", ())  # of a group


def _is_refused_handshake(error: BaseException) -> bool:
    return isinstance(error, ssl.SSLError) and error.reason in _HANDSHAKE_REASONS


def is_closed_client(error: BaseException) -> bool:
    """Whether the HTTP stack says, as it does in words only, that the client was closed before the
    request.
    """
    return isinstance(error, RuntimeError) and "client has been closed" in str(error)


def is_impossible_address(error: BaseException) -> bool:
    """Whether the error says that an address has a port which no address has.

    Async stacks pass on what the socket says of it, alone or in groups.
    """
    inner: tuple[BaseException, ...] = getattr(error, "exceptions", ())
    if inner:
        return all(is_impossible_address(found) for found in inner)
    return isinstance(error, OverflowError) and "port must be" in str(error)


def _names(error: BaseException) -> set[str]:
    return {kind.__name__ for kind in type(error).__mro__}
