"""A client with the official Python SDK, for clients/stranger.mjs."""

import contextlib
import warnings

import mcp.client.session
from mcp import Client, MCPDeprecationWarning, StdioServerParameters, types

from adapter import Adapter, run

warnings.simplefilter("ignore", MCPDeprecationWarning)


class SDK(Adapter):
    @contextlib.asynccontextmanager
    async def connect(self):
        if not self.modern:
            # It offers its latest, but speaks the others too.
            mcp.client.session.LATEST_HANDSHAKE_VERSION = self.revision
        server = self.target[0]
        if self.transport == "stdio":
            server = StdioServerParameters(command=server, args=self.target[1:])
        async with Client(
            server, mode="auto" if self.modern else "legacy", elicitation_callback=self.elicit, sampling_callback=self.sample,
            list_roots_callback=self.roots, logging_callback=self.log, message_handler=self.notice,
        ) as self.client:
            self.say(tell="connected", what={
                "revision": self.client.protocol_version, "instructions": self.client.instructions, "keeps": self.modern,
                "server": self.client.server_info.model_dump(), "capabilities": self.client.server_capabilities.model_dump(
                    mode="json", by_alias=True, exclude_none=True),
            })
            yield

    def listening(self, **filter):
        return self.client.listen(**filter)

    async def listTools(self, _, p):
        return await self.client.list_tools(cursor=p.get("cursor"))

    async def listResources(self, _, p):
        return await self.client.list_resources(cursor=p.get("cursor"))

    async def listResourceTemplates(self, _, p):
        return await self.client.list_resource_templates(cursor=p.get("cursor"))

    async def listPrompts(self, _, p):
        return await self.client.list_prompts(cursor=p.get("cursor"))

    async def callTool(self, id, p):
        async def progress(progress, total, message):
            self.say(tell="progress", of=id, what={"progress": progress, "total": total, "message": message})

        return await self.client.call_tool(p["name"], p["arguments"], progress_callback=progress if p["progress"] else None, meta=p.get("_meta"))

    async def readResource(self, _, p):
        return await self.client.read_resource(p["uri"], cache_mode="refresh" if p["fresh"] else "use")

    async def getPrompt(self, _, p):
        return await self.client.get_prompt(p["name"], p.get("arguments"))

    async def complete(self, _, p):
        ref = types.PromptReference if p["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        context = p.get("context", {}).get("arguments")
        return await self.client.complete(ref.model_validate(p["ref"]), p["argument"], context)

    async def ping(self, *_):
        return await self.client.send_ping()

    async def setLoggingLevel(self, _, p):
        return await self.client.set_logging_level(p["level"])

    async def subscribe(self, _, p):
        return await self.client.subscribe_resource(p["uri"])

    async def unsubscribe(self, _, p):
        return await self.client.unsubscribe_resource(p["uri"])


if __name__ == "__main__":
    run(SDK)
