"""Prints how acp-sdk's own server describes its routes (OpenAPI). Nothing is served."""

import json
from collections.abc import AsyncIterator

from acp_sdk.models import Message
from acp_sdk.server import agent
from acp_sdk.server.app import create_app


@agent()
async def gander(input: list[Message]) -> AsyncIterator[Message]:
    """Says what it was told."""
    for message in input:
        yield message


print(json.dumps(create_app(gander).openapi()))
