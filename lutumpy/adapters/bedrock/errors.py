"""Errors of the API, of botocore and of the connection, in this library's words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lutumpy.adapters.bedrock.decode import API
from lutumpy.adapters.provider_errors import adapter_error, shorten_text, unreadable_error
from lutumpy.adapters.sdk_unsent import is_unsent
from lutumpy.errors import AdapterError
from lutumpy.plain import json_values
from lutumpy.plain.safe_text import safe_str

__all__ = [
    "OPERATIONS",
    "broken_reply",
    "event_error",
    "missing_sdk",
    "sdk_error",
    "unread_error",
    "unread_event",
]

_STATUS: Mapping[str, int] = {
    "ValidationException": 400,
    "AccessDeniedException": 403,
    "ExpiredTokenException": 403,
    "UnrecognizedClientException": 403,
    "ResourceNotFoundException": 404,
    "ModelTimeoutException": 408,
    "ModelErrorException": 424,
    "ModelStreamErrorException": 424,
    "ModelNotReadyException": 429,
    "ThrottlingException": 429,
    "InternalServerException": 500,
    "ServiceUnavailableException": 503,
}
"""The status of an error by its type: in the middle of a stream it has none of its own."""

_PASSING = frozenset(
    "InternalServerException ModelErrorException ModelNotReadyException ModelStreamErrorException "
    "ModelTimeoutException ServiceUnavailableException ThrottlingException".split()
)
OPERATIONS = ("Converse", "ConverseStream")
_CREDENTIALS = frozenset(
    "NoCredentialsError PartialCredentialsError CredentialRetrievalError ProfileNotFound "
    "TokenRetrievalError SSOError NoAuthTokenError LoginError MetadataRetrievalError "
    "RefreshWithMFAUnsupportedError UnknownCredentialError UnknownTokenProviderError".split()
)
_CONNECTION = frozenset(
    "HTTPClientError ConnectionError ReadTimeoutError ResponseStreamingError IncompleteReadError "
    "ParserError ProtocolError".split()
)

_PACKAGES = frozenset({"aiobotocore", "botocore"})
_NOT_CONNECTED = frozenset(
    {"ConnectTimeoutError", "EndpointConnectionError", "ProxyConnectionError"}
)
_NOT_PREPARED = frozenset(
    "BaseEndpointResolverError ConfigNotFound ConfigParseError DataNotFoundError "
    "EndpointProviderError InvalidConfigError InvalidDefaultsMode "
    "InvalidEndpointConfigurationError InvalidHostLabelError InvalidProxiesConfigError "
    "InvalidRetryConfigurationError "
    "MissingDependencyException MissingParametersError ParamValidationError "
    "UnknownSignatureVersionError UnsupportedSignatureVersionError ValidationError".split()
)
"""What botocore raises before it asks for a connection."""


class _Answered(Exception):
    """An error of the SDK with the attributes that those of the other SDKs have.

    botocore finds the words of the service alone. Those of a gateway, whose errors have another
    form, are read from the answer.

    Args:
        error: The SDK's error.
        raw: The answer that it was made from.
    """

    def __init__(self, error: Any, raw: bytes) -> None:
        response = getattr(error, "response", None)
        found = response if isinstance(response, Mapping) else {}
        error_fields, meta = found.get("Error") or {}, found.get("ResponseMetadata") or {}
        code, message = error_fields.get("Code"), error_fields.get("Message")
        self.kind: str = code[:1].upper() + code[1:] if isinstance(code, str) else ""
        self.code: str = self.kind
        shown = safe_str(error)
        self.body: dict[str, Any] | None = None
        if isinstance(message, str) and message:
            self.body = {"message": message, "code": self.kind}
        elif raw:
            shown = f"{shown.strip()} {raw.decode('utf-8', 'replace')}".strip()
            self.body = _decode_body(raw)
        super().__init__(shown)
        self.status_code: Any = meta.get("HTTPStatusCode") or _STATUS.get(self.kind)
        self.request_id: Any = meta.get("RequestId")
        self.response: Any = _Response(meta.get("HTTPHeaders") or {})


class _Unread(Exception):
    """An error whose body botocore can't read, with what botocore's own errors have."""

    def __init__(self, status: int, headers: Mapping[str, str]) -> None:
        super().__init__("")
        # As botocore has it where the service names no kind.
        kind = headers.get("x-amzn-errortype", "").partition(":")[0] or str(status)
        self.response: Any = {
            "Error": {"Code": kind},
            "ResponseMetadata": {
                "HTTPStatusCode": status,
                "HTTPHeaders": headers,
                "RequestId": headers.get("x-amzn-requestid"),
            },
        }


class _Response:
    def __init__(self, headers: Mapping[str, str]) -> None:
        self.headers = headers


def missing_sdk(error: ImportError) -> AdapterError:
    """The SDK isn't installed; to be raised `from` the original."""
    return AdapterError(
        f"{API}: BedrockConverse needs {error.name or 'boto3'}; install it with: "
        'python -m pip install ".[bedrock]" (in a clone)',
        provider=API,
        sent=False,
    )


def event_error(name: str, event: Mapping[str, Any]) -> AdapterError | None:
    """The error that an event in a stream is; `None` for every other event."""
    kind = name[:1].upper() + name[1:]
    if not kind.endswith("Exception"):
        return None
    message = event.get("message") or event.get("originalMessage") or kind
    status = event.get("originalStatusCode")
    return AdapterError(
        f"{API}: the provider answered with an error: {shorten_text(str(message))}",
        provider=API,
        status=status if type(status) is int else _STATUS.get(kind),
        retryable=kind in _PASSING,
        code=kind,
    )


def unread_error(status: int, headers: Mapping[str, str], body: bytes) -> AdapterError:
    """An answer with the status of an error whose body botocore can't read, as a proxy's may be."""
    return _answered_error(_Answered(_Unread(status, headers), body))


def _decode_body(raw: bytes) -> dict[str, Any] | None:
    """The object that the body of an error is; `None` where it is something else."""
    try:
        body = json_values.decode(raw)
    except (ValueError, RecursionError):
        return None
    return body if isinstance(body, dict) else None


def unread_event(error: Exception) -> AdapterError | None:
    """What botocore raised as it read an event of a stream that it can't read; `None` for a bug,
    or something of the caller's.
    """
    return unreadable_error(error, _PACKAGES, API, "an event")


def broken_reply(received: int, length: int, request_id: str | None) -> AdapterError:
    """The connection was lost in the middle of a whole answer; botocore doesn't look for it."""
    return AdapterError(
        f"{API}: the connection was lost in the answer, after {received} of its {length} bytes",
        provider=API,
        retryable=True,
        request_id=request_id,
    )


def _answered_error(answered: _Answered) -> AdapterError:
    found = adapter_error(answered, API)
    found.retryable = found.retryable or answered.kind in _PASSING
    return found


def sdk_error(error: Exception, raw: bytes = b"") -> AdapterError | None:
    """What was raised by botocore, or under it, in this library's words; to be raised `from` the
    original. `None` for a bug, or something of the caller's.

    Args:
        error: What was raised.
        raw: The answer on which it was raised, as it came.
    """
    names = {kind.__name__ for kind in type(error).__mro__}
    packages = {kind.__module__.partition(".")[0] for kind in type(error).__mro__}
    if "ClientError" in names and "botocore" in packages:
        found = _answered_error(_Answered(error, raw))
        # Credentials may have to be asked for first, and that is another operation.
        operation = getattr(error, "operation_name", None)
        found.sent = not isinstance(operation, str) or operation in OPERATIONS
        return found
    text = shorten_text(" ".join(safe_str(error).split()))
    if "NoRegionError" in names:
        return _unsent(
            "no region is set: give BedrockConverse region=, or set AWS_REGION "
            "(or AWS_DEFAULT_REGION)"
        )
    if names & _CREDENTIALS:
        return _unsent(
            f"no credentials can be used ({text.rstrip('.')}): set AWS_ACCESS_KEY_ID and "
            "AWS_SECRET_ACCESS_KEY, AWS_PROFILE or AWS_BEARER_TOKEN_BEDROCK, or give "
            "BedrockConverse a boto3 client"
        )
    if packages & {"botocore", "urllib3", "aiohttp", "aiobotocore"}:
        return AdapterError(
            f"{API}: {text or type(error).__name__}",
            provider=API,
            retryable=bool(names & _CONNECTION),
            sent=not _is_unsent(error, names),
        )
    return None


def _is_unsent(error: Exception, names: set[str]) -> bool:
    """Whether the request is known not to have reached the service."""
    if "BotoCoreError" not in names:
        return is_unsent(error)
    inner: Any = getattr(error, "kwargs", {}).get("error")
    # aiobotocore calls it a failed connection, too, when one is lost that was there.
    if names & _NOT_CONNECTED and not type(inner).__module__.startswith("aiohttp"):
        return True
    return bool(names & _NOT_PREPARED) or (inner is not None and is_unsent(inner))


def _unsent(what: str) -> AdapterError:
    return AdapterError(f"{API}: {what}", provider=API, sent=False)
