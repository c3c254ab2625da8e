"""What the Python SDK's client sees: `story.py story|gated|older URL TOKEN` prints it as one JSON object (clients.rs)."""

import asyncio
import json
import sys

import httpx2
from mcp import MCPError
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client


async def refused(call):
    """The error of a call that must not succeed."""
    try:
        outcome = await call
    except MCPError as fault:
        return {"code": fault.code, "message": fault.message, "data": fault.data}
    raise AssertionError(f"expected a JSON-RPC error, the client got {outcome!r}")


async def story(client):
    async with client:
        told = {
            "instructions": client.instructions,
            "tools": [tool.name for tool in (await client.list_tools()).tools],
            "templates": [template.name for template in (await client.list_resource_templates()).resource_templates],
            "allowed": (await client.call_tool("search_cases", {"query": "printer"})).structured_content,
            "refused": [
                await refused(client.call_tool("export_cases", {})),
                await refused(client.call_tool("update_case", {"id": "17"})),
                await refused(client.read_resource("cases://case/17/internal")),
            ],
            "after": (await client.call_tool("search_cases", {"query": "printer"})).structured_content,
        }
        prompt = await client.get_prompt("triage", {"id": "17"})
        resource = await client.read_resource("cases://case/17")
        told["prompt"] = prompt.messages[0].content.text
        told["resource"] = resource.contents[0].text
        return told


async def gated(client):
    async with client:
        return {
            "denied": await refused(client.call_tool("search_cases", {"query": "printer"})),
            "allowed": (await client.call_tool("search_cases", {"query": "printer"})).structured_content,
        }


async def older(client):
    try:
        async with client:
            pass
    except BaseException as caught:
        # The task groups of the client wrap the error, one in the other.
        fault = caught
        while not isinstance(fault, MCPError) and len(getattr(fault, "exceptions", ())) == 1:
            (fault,) = fault.exceptions
        if not isinstance(fault, MCPError):
            raise
        return {"code": fault.code, "message": fault.message, "data": fault.data}
    raise AssertionError("expected a refusal, the client has a session")


async def main(kind, url, token):
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {token}"}, timeout=20) as http:
        transport = streamable_http_client(url, http_client=http)
        mode = "legacy" if kind == "older" else "auto"
        client = Client(transport, mode=mode, read_timeout_seconds=20)
        print(json.dumps(await {"story": story, "gated": gated, "older": older}[kind](client)))


asyncio.run(main(*sys.argv[1:]))
