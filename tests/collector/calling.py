"""Calls a collector inside the process of a test, without a port."""

import asyncio
from typing import Any

import httpx


def call(app: Any, method: str, path: str, address: str = "192.0.2.1", **more: Any) -> httpx.Response:
    """Send one request, as if from an address, and return the answer."""

    async def sent() -> httpx.Response:
        transport = httpx.ASGITransport(app=app, client=(address, 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://collector") as client:
            return await client.request(method, path, **more)

    return asyncio.run(sent())
