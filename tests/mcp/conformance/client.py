"""What the MCP project's conformance suite wants of a client, with `McpTools`.

The suite starts it once for each scenario, with the address of a server; `MCP_CONFORMANCE_SCENARIO`
names the scenario, and `MCP_CONFORMANCE_CONTEXT` has what that needs.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider
from mcp.client.auth.extensions.client_credentials import (
    ClientCredentialsOAuthProvider,
    PrivateKeyJWTOAuthProvider,
    SignedJWTParameters,
)
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)

from lutumpy import ToolMetadata
from lutumpy.execution import Dispatcher, ToolExecutor
from lutumpy.mcp import McpQuestion, McpTools

CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "tools_call": ("add_numbers", {"a": 5, "b": 3}),
    "elicitation-sep1034-client-defaults": ("test_client_elicitation_defaults", {}),
    "sse-retry": ("test_reconnection", {}),
}
REDIRECT = "http://localhost:3030/callback"


class Storage:
    """Tokens of one run."""

    def __init__(self, known: OAuthClientInformationFull | None = None) -> None:
        self.tokens: OAuthToken | None = None
        self.client = known

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Browser:
    """A person who agrees to everything: follows the address, and keeps what it leads to."""

    def __init__(self) -> None:
        self.led_to = ""

    async def open(self, address: str) -> None:
        async with httpx2.AsyncClient() as client:
            answer = await client.get(address, follow_redirects=False)
            self.led_to = answer.headers["location"]

    async def result(self) -> AuthorizationCodeResult:
        query = parse_qs(urlsplit(self.led_to).query)
        return AuthorizationCodeResult(
            code=query["code"][0],
            state=query.get("state", [None])[0],
            iss=query.get("iss", [None])[0],
        )


def make_auth(server: str, scenario: str, context: dict[str, Any]) -> httpx2.Auth | None:
    """What logs in, in the scenarios that ask for it."""
    if not scenario.startswith("auth/"):
        return None
    if scenario == "auth/client-credentials-basic":
        return ClientCredentialsOAuthProvider(
            server_url=server,
            storage=Storage(),
            client_id=context["client_id"],
            client_secret=context["client_secret"],
        )
    if scenario == "auth/client-credentials-jwt":
        signer = SignedJWTParameters(
            issuer=context["client_id"],
            subject=context["client_id"],
            signing_algorithm=context.get("signing_algorithm", "ES256"),
            signing_key=context["private_key_pem"],
        )
        return PrivateKeyJWTOAuthProvider(
            server_url=server,
            storage=Storage(),
            client_id=context["client_id"],
            assertion_provider=signer.create_assertion_provider(),
        )
    known = None
    if "client_id" in context:
        known = OAuthClientInformationFull(
            client_id=context["client_id"],
            client_secret=context.get("client_secret"),
            redirect_uris=[REDIRECT],
            token_endpoint_auth_method="client_secret_basic",
        )
    browser = Browser()
    return OAuthClientProvider(
        server_url=server,
        client_metadata=OAuthClientMetadata(
            client_name="lutumpy",
            redirect_uris=[REDIRECT],
            grant_types=["authorization_code", "refresh_token"],
            response_types=["code"],
        ),
        storage=Storage(known),
        redirect_handler=browser.open,
        callback_handler=browser.result,
        client_metadata_url="https://conformance-test.local/client-metadata.json",
    )


async def accept_defaults(question: McpQuestion) -> dict[str, Any]:
    assert question.form is not None
    fields = question.form["properties"]
    filled = {name: field["default"] for name, field in fields.items() if "default" in field}
    return {"action": "accept", "content": filled}


async def main() -> None:
    server = sys.argv[-1]
    scenario = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    auth = make_auth(server, scenario, context)
    async with McpTools(server, ask=accept_defaults, auth=auth) as source:
        name, arguments = CALLS.get(scenario, ("", {}))
        if scenario.startswith("auth/") and source.tools:
            name = source.tools[0].name
        if name:
            text = json.dumps(arguments)
            call = source.toolset.parse(ToolMetadata("call_1", name, text))
            (result,) = await ToolExecutor().run([call], Dispatcher(source.toolset))
            print(result.status, result.content)


if __name__ == "__main__":
    anyio.run(main)
