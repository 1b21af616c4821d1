"""A client with FastMCP, for clients/stranger.mjs. What FastMCP has not, it does
with the session of the SDK beneath."""

import contextlib

import fastmcp.client
import mcp.client.session
import fastmcp_tasks
from fastmcp.client.transports import StdioTransport
from fastmcp_tasks.client_models import ClientCreateTaskResult, UpdateTaskRequest, UpdateTaskRequestParams
from mcp import types
from mcp.client.subscriptions import listen

from adapter import Adapter, plain, run


class FastMCP(Adapter):
    @contextlib.asynccontextmanager
    async def connect(self):
        if not self.modern:
            # It offers its latest, but speaks the others too.
            mcp.client.session.LATEST_HANDSHAKE_VERSION = self.revision
        server = self.target[0]
        if self.transport == "stdio":
            server = StdioTransport(server, self.target[1:], keep_alive=False)
        client = fastmcp.Client(
            server, mode="auto" if self.modern else "legacy", roots=self.uris, log_handler=self.log, message_handler=self.notice,
            sampling_handler=lambda _, params, context: self.sample(context, params),
            elicitation_handler=lambda _, form, params, context: self.elicit(context, params),
        )
        async with client:
            self.fast = client
            self.say(tell="connected", what={
                "revision": client.protocol_version, "instructions": client.instructions, "keeps": False, "tasks": "driven",
                "server": plain(client.server_info), "capabilities": plain(client.server_capabilities),
            })
            yield

    async def uris(self, context):
        return (await self.roots(context)).roots

    def listening(self, **filter):
        return listen(self.fast.session, **filter)

    async def listTools(self, _, p):
        return await self.fast.list_tools_mcp(cursor=p.get("cursor"))

    async def listResources(self, _, p):
        return await self.fast.list_resources_mcp(cursor=p.get("cursor"))

    async def listResourceTemplates(self, _, p):
        return await self.fast.list_resource_templates_mcp(cursor=p.get("cursor"))

    async def listPrompts(self, _, p):
        return await self.fast.list_prompts_mcp(cursor=p.get("cursor"))

    async def callTool(self, id, p):
        async def progress(progress, total, message):
            self.say(tell="progress", of=id, what={"progress": progress, "total": total, "message": message})

        result = await self.fast.call_tool(
            p["name"], p["arguments"], progress_handler=progress if p["progress"] else None, meta=p.get("_meta"), raise_on_error=False)
        return plain(types.CallToolResult(
            content=result.content, structured_content=result.structured_content, is_error=result.is_error))

    async def startTask(self, _, p):
        return (await fastmcp_tasks.call_tool_task(self.fast, p["name"], p["arguments"])).create_result

    def task(self, p):
        """Makes the handle of a task, whose state it asks for."""
        fields = {"status": "working", "createdAt": "", "lastUpdatedAt": "", "resultType": "task"}
        return fastmcp_tasks.ToolTask(self.fast, "", ClientCreateTaskResult.model_validate({**p, **fields}))

    async def getTask(self, _, p):
        return await self.task(p).status()

    async def updateTask(self, _, p):
        params = UpdateTaskRequestParams(task_id=p["taskId"], input_responses=p["inputResponses"])
        await self.fast.session.send_request(UpdateTaskRequest(params=params), types.Result)

    async def cancelTask(self, _, p):
        await self.task(p).cancel()

    async def readResource(self, _, p):
        return {"contents": [plain(item) for item in await self.fast.read_resource(p["uri"])]}

    async def getPrompt(self, _, p):
        return await self.fast.get_prompt(p["name"], p.get("arguments"))

    async def complete(self, _, p):
        ref = types.PromptReference if p["ref"]["type"] == "ref/prompt" else types.ResourceTemplateReference
        context = p.get("context", {}).get("arguments")
        return {"completion": plain(await self.fast.complete(ref.model_validate(p["ref"]), p["argument"], context))}

    async def ping(self, *_):
        await self.fast.ping()

    async def setLoggingLevel(self, _, p):
        await self.fast.set_logging_level(p["level"])

    async def subscribe(self, _, p):
        return await self.fast.session.subscribe_resource(p["uri"])

    async def unsubscribe(self, _, p):
        return await self.fast.session.unsubscribe_resource(p["uri"])


if __name__ == "__main__":
    run(FastMCP)
