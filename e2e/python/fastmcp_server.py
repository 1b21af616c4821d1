"""A server with FastMCP, for e2e/servers.

    python fastmcp_server.py stdio
    python fastmcp_server.py http PORT
"""

import asyncio
import dataclasses
import datetime
import sys

import fastmcp
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.resources import TextResource
from fastmcp.tools import Tool
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension
from mcp import MCPError, types

server = FastMCP("fastmcp", instructions="Try everything.", version="1.0.0", list_page_size=2)
server.add_extension(TasksExtension(url="memory://"))
cancelled = 0
errands: dict[str, asyncio.Event] = {}  # those that wait to be released


def add_resource(uri):
    server.add_resource(TextResource(uri=uri, name=uri, text="This is " + uri))


for n in range(1, 6):
    add_resource(f"e2e://{n}")


@server.resource("e2e://words/{word}", name="words")
def words(word: str) -> str:
    return word.upper()


@server.prompt
def letter(city: str = "", country: str = "") -> str:
    return "Write to " + city


@server.completion
def cities(ref, argument, context):
    known = ["Oslo", "Rome"]
    if context and (context.arguments or {}).get("country") == "France":
        known = ["Lyon", "Paris"]
    return [city for city in known if city.startswith(argument.value)]


@dataclasses.dataclass
class Counted:
    letters: int


@server.tool
def count(name: str) -> Counted:
    return Counted(len(name))


@server.tool
def fail() -> str:
    raise ToolError("this tool fails always")


@server.tool
async def log(ctx: Context) -> str:
    await ctx.info("All is well", logger_name="e2e")
    await ctx.error("All is lost", logger_name="e2e")
    return "logged"


@server.tool
async def wait(ctx: Context) -> str:
    global cancelled
    try:
        await ctx.report_progress(1, message="waiting")
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return "nobody cancelled this call"


@server.tool(task=TaskConfig(poll_interval=datetime.timedelta(milliseconds=50)))
async def errand(end: str, ctx: Context, key: str = "") -> str | types.InputRequiredResult:
    """Runs as a task: it waits to be released, or comes to another end."""
    global cancelled
    if end == "fail":
        raise ToolError("this errand fails always")
    if end == "crash":
        raise MCPError(types.INTERNAL_ERROR, "this errand breaks down always")
    if end == "ask":
        if ctx.input_responses:
            answer = ctx.input_responses["name"]
            return f"{answer.action} {answer.content['name']}"
        return types.InputRequiredResult(request_state="asked", input_requests={"name": asks_name()})
    errands[key] = asyncio.Event()
    try:
        await ctx.report_progress(1, message="waiting")
        await errands[key].wait()
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return key + " was released"


@server.tool
def release(name: str) -> str:
    errands.pop(name).set()
    return "released"


@server.tool(name="cancelled")
def count_cancelled() -> str:
    return str(cancelled)


@server.tool
async def touch(name: str, ctx: Context) -> str:
    await ctx.send_notification(types.ResourceUpdatedNotification(params=types.ResourceUpdatedNotificationParams(uri=name)))
    return "touched"


@server.tool
async def grow(name: str, ctx: Context) -> str:
    server.add_tool(Tool.from_function(lambda: "I am new", name=name))
    add_resource("e2e://new/" + name)
    return await changed(ctx)


@server.tool
async def shrink(name: str, ctx: Context) -> str:
    server.local_provider.remove_tool(name)
    server.local_provider.remove_resource("e2e://new/" + name)
    return await changed(ctx)


async def changed(ctx):
    await ctx.send_notification(types.ToolListChangedNotification())
    await ctx.send_notification(types.ResourceListChangedNotification())
    return "changed"


def asks_name():
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message="Your name?", requested_schema=schema))


@dataclasses.dataclass
class Name:
    name: str


@server.tool
async def ask(ctx: Context) -> str | types.InputRequiredResult:
    """Asks for a name, an answer of the model and the roots: in one round, or one after the other."""
    question = [types.SamplingMessage(role="user", content=types.TextContent(text="The capital of France?"))]
    if ctx.request_context.protocol_version < "2026":
        answer = await ctx.elicit("Your name?", Name)
        action, name = answer.action, answer.data.name
        capital = await ctx.session.create_message(question, max_tokens=9, related_request_id=ctx.request_id)
        roots = await ctx.session.list_roots()
    elif not ctx.input_responses:
        return types.InputRequiredResult(request_state="asked", input_requests={
            "name": asks_name(),
            "capital": types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=question, max_tokens=9)),
            "roots": types.ListRootsRequest(),
        })
    else:
        answer, capital, roots = (ctx.input_responses[key] for key in ("name", "capital", "roots"))
        action, name = answer.action, answer.content["name"]
    [said] = capital.content if isinstance(capital.content, list) else [capital.content]
    return f"{action} {name} says {said.text}, in {roots.roots[0].uri}"


if __name__ == "__main__":
    fastmcp.settings.show_server_banner = False
    if sys.argv[1] == "stdio":
        server.run("stdio")
    else:
        server.run("http", host="127.0.0.1", port=int(sys.argv[2]), path="/mcp", log_level="warning")
