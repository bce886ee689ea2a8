"""Requests that never reached the provider cost nothing, whichever HTTP stack says so (rule U1)."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from typing import Any

import boto3
import google.auth.exceptions as google_auth
import httpx2
import pytest
import requests
import urllib3.exceptions as urllib3
from anthropic import Anthropic, AsyncAnthropic
from botocore import exceptions as botocore
from botocore.config import Config
from openai import AsyncOpenAI, OpenAI

from lutumpy import Session
from lutumpy.adapters.anthropic import AnthropicMessages
from lutumpy.adapters.bedrock import BedrockConverse
from lutumpy.adapters.bedrock.errors import sdk_error as bedrock_error
from lutumpy.adapters.gemini import Gemini
from lutumpy.adapters.gemini.errors import sdk_error as gemini_error
from lutumpy.adapters.ollama import OllamaChat
from lutumpy.adapters.openai import OpenAIChat, OpenAIResponses
from lutumpy.adapters.provider_errors import adapter_error, is_sdk_error
from lutumpy.errors import AdapterError
from lutumpy.testing import serve

MODEL = "amazon.nova-micro-v1:0"
URL = "https://bedrock-runtime.us-east-1.amazonaws.com/model/x/converse"


def client_for(url: str, **config: Any) -> Any:
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id="k",
        aws_secret_access_key="s",
        config=Config(retries={"max_attempts": 0}, **config),
    )


@pytest.fixture
def closed_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@pytest.fixture
def clients(closed_port: int) -> Iterator[dict[str, Any]]:
    with serve() as plain:
        found = {
            "refused": client_for(f"http://127.0.0.1:{closed_port}"),
            "unknown host": client_for("http://nowhere.invalid"),
            "no TLS there": client_for(plain.url.replace("http:", "https:")),
            "no proxy there": client_for(
                plain.url, proxies={"http": f"http://127.0.0.1:{closed_port}"}
            ),
        }
        yield found
        assert plain.requests == []
    for client in found.values():
        client.close()


async def ask(session: Session, llm: Any, way: str) -> None:
    turn = session.text_turn(llm)
    if way == "awaited":
        await turn.collect()
    elif way == "whole":
        turn.collect_sync()
    elif way == "awaited stream":
        async with turn.stream() as events:
            await events.collect()
    else:
        with turn.stream_sync() as begun:
            begun.collect()


@pytest.mark.parametrize("way", ["awaited", "whole", "awaited stream", "stream"])
async def test_what_never_connected_to_bedrock_costs_nothing_U1(
    clients: dict[str, Any], way: str
) -> None:
    for name, client in clients.items():
        session = Session()
        session.push_user("Hi")
        with pytest.raises(AdapterError) as caught:
            await ask(session, BedrockConverse(MODEL, client), way)
        assert caught.value.retryable, name
        assert not caught.value.sent, name
        assert session.unsettled == (), name


def with_reason(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}] told (_ssl.c:1000)")
    error.reason = reason
    return error


class ClientError(Exception):
    """Of aiohttp, which isn't installed everywhere."""

    __module__ = "aiohttp.client_exceptions"


class ClientConnectionError(ClientError):
    __module__ = "aiohttp.client_exceptions"


class ClientOSError(ClientConnectionError, OSError):
    __module__ = "aiohttp.client_exceptions"


class ClientConnectorError(ClientOSError):
    __module__ = "aiohttp.client_exceptions"


class ServerTimeoutError(ClientConnectionError):
    __module__ = "aiohttp.client_exceptions"


class ConnectionTimeoutError(ServerTimeoutError):
    __module__ = "aiohttp.client_exceptions"


def refused_by(operation: str) -> botocore.ClientError:
    answer: Any = {
        "Error": {"Code": "AccessDenied", "Message": "No."},
        "ResponseMetadata": {"HTTPStatusCode": 403},
    }
    return botocore.ClientError(answer, operation)


BEDROCK: list[tuple[Exception, bool]] = [
    (botocore.EndpointConnectionError(endpoint_url=URL, error=socket.gaierror(-2, "?")), False),
    (botocore.EndpointConnectionError(endpoint_url=URL, error=ClientConnectorError()), False),
    # A connection that was lost, as aiobotocore tells it.
    (botocore.EndpointConnectionError(endpoint_url=URL, error=ClientOSError(104, "reset")), True),
    (botocore.ConnectTimeoutError(endpoint_url=URL, error=None), False),
    (botocore.ConnectTimeoutError(endpoint_url=URL, error=ConnectionTimeoutError()), False),
    (botocore.ProxyConnectionError(proxy_url="http://p", error=None), False),
    (botocore.InvalidProxiesConfigError(error="no file"), False),
    (botocore.ParamValidationError(report="wrong"), False),
    (botocore.InvalidRegionError(region_name="x y"), False),
    (botocore.EndpointProviderError(msg="none"), False),
    (botocore.UnsupportedSignatureVersionError(signature_version="v9"), False),
    (botocore.MetadataRetrievalError(error_msg="none"), False),
    (botocore.SSOTokenLoadError(error_msg="none"), False),
    (
        botocore.SSLError(
            endpoint_url=URL, error=urllib3.SSLError(with_reason("CERTIFICATE_VERIFY_FAILED"))
        ),
        False,
    ),
    (
        botocore.SSLError(
            endpoint_url=URL, error=urllib3.SSLError(with_reason("DECRYPTION_FAILED"))
        ),
        True,
    ),
    (botocore.ReadTimeoutError(endpoint_url=URL, error=None), True),
    (botocore.ConnectionClosedError(endpoint_url=URL, error=None), True),
    (botocore.HTTPClientError(error=OSError("broken")), True),
    (botocore.ResponseStreamingError(error="broken"), True),
    (botocore.IncompleteReadError(actual_bytes=1, expected_bytes=2), True),
    (refused_by("Converse"), True),
    (refused_by("ConverseStream"), True),
    (refused_by("AssumeRole"), False),
    (urllib3.ReadTimeoutError(None, URL, "slow"), True),  # type: ignore[arg-type]
    (urllib3.ProtocolError("broken"), True),
    (ClientConnectorError(), False),
    (ServerTimeoutError(), True),
]


@pytest.mark.parametrize(("error", "sent"), BEDROCK, ids=lambda each: type(each).__name__)
def test_what_is_known_of_a_request_to_bedrock_U1(error: Exception, sent: bool) -> None:
    found = bedrock_error(error)
    assert found is not None
    assert found.sent is sent


def chained(error: Exception, cause: BaseException) -> Exception:
    error.__cause__ = cause
    return error


OTHERS: list[tuple[Exception, bool]] = [
    (httpx2.ConnectError("refused"), False),
    (httpx2.ConnectTimeout("slow"), False),
    (httpx2.ProxyError("407"), False),
    (httpx2.ReadTimeout("slow"), True),
    (httpx2.RemoteProtocolError("broken"), True),
    (ClientConnectorError(), False),
    (ConnectionTimeoutError(), False),
    (ClientOSError(104, "reset"), True),
    (requests.ConnectTimeout(), False),
    (requests.ReadTimeout(), True),
    (requests.ConnectionError(), True),
    (
        requests.ConnectionError(
            urllib3.MaxRetryError(None, URL, urllib3.NewConnectionError(None, "refused"))  # type: ignore[arg-type]
        ),
        False,
    ),
    (google_auth.TransportError("no token"), False),
    (google_auth.RefreshError("expired"), False),
]


@pytest.mark.parametrize(("error", "sent"), OTHERS, ids=lambda each: type(each).__name__)
def test_what_is_known_of_a_request_to_gemini_U1(error: Exception, sent: bool) -> None:
    found = gemini_error(error)
    assert found is not None
    assert found.sent is sent


def test_an_error_of_which_others_were_made_is_read_to_the_ground() -> None:
    lost = chained(RuntimeError("x"), with_reason("WRONG_VERSION_NUMBER"))
    assert not adapter_error(chained(ValueError("y"), lost), "openai_chat").sent
    circle = RuntimeError("x")
    chained(circle, chained(ValueError("z"), circle))
    assert adapter_error(chained(ValueError("y"), circle), "openai_chat").sent


class Group(Exception):
    """An exception group, as Python before 3.11 has none."""

    def __init__(self, *exceptions: Exception) -> None:
        super().__init__("unhandled errors in a TaskGroup")
        self.exceptions = exceptions


def test_an_address_that_no_socket_takes_costs_nothing_OR8() -> None:
    no_such_port = OverflowError("connect(): port must be 0-65535.")
    for error in (no_such_port, Group(no_such_port), Group(Group(no_such_port))):
        assert is_sdk_error(error)
        assert not adapter_error(error, "openai_chat").sent
        assert not adapter_error(chained(RuntimeError("x"), error), "openai_chat").sent
    assert not is_sdk_error(OverflowError("too large"))
    assert not is_sdk_error(Group(no_such_port, ValueError("y")))
    assert not is_sdk_error(Group())


def unreachable(way: str, address: str) -> Iterator[Any]:
    """A model of each API but Bedrock's, which has cases of its own above."""
    is_async = way.startswith("awaited")
    options: Any = {"base_url": address, "api_key": "k", "max_retries": 0}
    openai = AsyncOpenAI(**options) if is_async else OpenAI(**options)
    anthropic = AsyncAnthropic(**options) if is_async else Anthropic(**options)
    yield OpenAIChat("m", openai)
    yield OpenAIResponses("m", openai)
    yield AnthropicMessages("m", anthropic)
    yield Gemini("m", base_url=address, api_key="k")
    yield OllamaChat("m", **options)


@pytest.mark.parametrize("way", ["awaited", "whole", "awaited stream", "stream"])
async def test_what_never_connected_costs_nothing_at_any_adapter_OR8(
    way: str, closed_port: int
) -> None:
    for address in (f"http://127.0.0.1:{closed_port}", "http://127.0.0.1:99999"):
        for llm in unreachable(way, address):
            session = Session()
            session.push_user("Hi")
            with pytest.raises(AdapterError) as caught:
                await ask(session, llm, way)
            assert not caught.value.sent, (llm, address)
            assert session.unsettled == (), (llm, address)
