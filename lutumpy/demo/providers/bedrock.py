"""The demo on Bedrock's API."""

from __future__ import annotations

from typing import Any

from lutumpy.demo.providers.provider import NO_KEY, Provider

__all__ = ["CONVERSE"]


def _make_client(url: str | None) -> Any:
    import boto3  # type: ignore[import-untyped]

    if url is None:
        return None  # the adapter makes one, and says in one line what is missing
    return boto3.client(
        "bedrock-runtime",
        endpoint_url=url,
        region_name="us-east-1",
        aws_access_key_id=NO_KEY,
        aws_secret_access_key=NO_KEY,
    )


CONVERSE = Provider(
    name="bedrock",
    title="Converse",
    client="boto3",
    make=_make_client,
    package="boto3",
    extra="bedrock",
    keys=(),
    model="us.amazon.nova-lite-v1:0",
)
