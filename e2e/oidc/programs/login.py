"""Logs in with the official Python SDK, lists notes, and adds one, which needs another scope.

python login.py REVISION URL
"""

import asyncio
import sys
from urllib.parse import parse_qs, urlparse

import httpx2
import mcp.client.session
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

revision, url = sys.argv[1:]


class Storage:
    tokens = client = None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


async def main():
    answers = asyncio.Queue()

    async def receive(reader, writer):
        target = (await reader.readline()).split()[1].decode()
        while (await reader.readline()).strip():
            pass
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()
        await answers.put({k: v[0] for k, v in parse_qs(urlparse(target).query).items()})

    server = await asyncio.start_server(receive, "127.0.0.1", 0)
    redirect = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/callback"

    async def visit(address):
        print("visit", address, flush=True)

    async def answered():
        a = await answers.get()
        return AuthorizationCodeResult(code=a["code"], state=a.get("state"), iss=a.get("iss"))

    storage = Storage()
    provider = OAuthClientProvider(
        url,
        OAuthClientMetadata(client_name="Python", redirect_uris=[redirect], grant_types=["authorization_code", "refresh_token"]),
        storage, visit, answered,
    )
    if revision < "2026":
        mcp.client.session.LATEST_HANDSHAKE_VERSION = revision
    async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
        async with Client(streamable_http_client(url, http_client=http), mode="auto" if revision >= "2026" else "legacy") as client:
            await client.call_tool("list_notes", {})
            for name, arguments in [("add_note", {"text": "p"}), ("list_notes", {})]:
                print("said", "".join(part.text for part in (await client.call_tool(name, arguments)).content), flush=True)
            print("spoke", client.protocol_version, flush=True)
    if not storage.tokens.refresh_token:
        raise SystemExit("there is no refresh token")


asyncio.run(main())
