"""A server with the official Python SDK, for e2e/servers.

    python server.py stdio
    python server.py http PORT
"""

import asyncio
import functools
import sys
import warnings

import uvicorn
from mcp import MCPDeprecationWarning, MCPError, types
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.stdio import stdio_server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler, ResourcesListChanged, ResourceUpdated, ToolsListChanged

warnings.simplefilter("ignore", MCPDeprecationWarning)

PAGE = 2
CITIES = {"France": ["Lyon", "Paris"]}
OBJECT = {"type": "object"}
NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
COUNTED = {"type": "object", "properties": {"letters": {"type": "integer"}}, "required": ["letters"]}

bus = InMemorySubscriptionBus()
resources = [f"e2e://{n}" for n in range(1, 6)]
grown = set()
cancelled = 0
watchers = {}  # of each resource: the sessions that subscribed to it


def text(words, **more):
    return types.CallToolResult(content=[types.TextContent(text=words)], **more)


def page(items, params):
    """Returns a page of items and the cursor of the next."""
    start = int(params.cursor) if params and params.cursor else 0
    after = start + PAGE
    return items[start:after], str(after) if after < len(items) else None


async def list_tools(_, params):
    schemas = {name: OBJECT for name in [*TOOLS, *grown]} | dict.fromkeys(("count", "grow", "shrink", "touch"), NAMED)
    tools = [
        types.Tool(name=name, input_schema=schema, output_schema=COUNTED if name == "count" else None)
        for name, schema in sorted(schemas.items())
    ]
    items, following = page(tools, params)
    return types.ListToolsResult(tools=items, next_cursor=following)


async def call_tool(ctx, params):
    if params.name in grown:
        return text("I am new")
    if params.name not in TOOLS:
        raise MCPError(types.INVALID_PARAMS, f"no tool is called {params.name}")
    return await TOOLS[params.name](ctx, params)


async def count(_, params):
    letters = len(params.arguments["name"])
    return text(str(letters), structured_content={"letters": letters})


async def fail(*_):
    return text("this tool fails always", is_error=True)


async def log(ctx, _):
    for level, words in ("info", "All is well"), ("error", "All is lost"):
        await ctx.session.send_log_message(level, words, logger="e2e", related_request_id=ctx.request_id)
    return text("logged")


async def wait(ctx, _):
    global cancelled
    try:
        await ctx.session.report_progress(1, None, "waiting")
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        cancelled += 1
        raise
    return text("nobody cancelled this call")


async def count_cancelled(*_):
    return text(str(cancelled))


async def touch(_, params):
    uri = params.arguments["name"]
    await bus.publish(ResourceUpdated(uri=uri))
    for session in watchers.get(uri, []):
        await session.send_resource_updated(uri)
    return text("touched")


async def grow(ctx, params):
    grown.add(params.arguments["name"])
    resources.append("e2e://new/" + params.arguments["name"])
    return await changed(ctx)


async def shrink(ctx, params):
    grown.discard(params.arguments["name"])
    resources.remove("e2e://new/" + params.arguments["name"])
    return await changed(ctx)


async def changed(ctx):
    await bus.publish(ToolsListChanged())
    await bus.publish(ResourcesListChanged())
    if ctx.protocol_version < "2026":
        await ctx.session.send_tool_list_changed()
        await ctx.session.send_resource_list_changed()
    return text("changed")


async def ask(ctx, params):
    """Asks for a name, an answer of the model and the roots: in one round, or one after the other."""
    form = types.ElicitRequestFormParams(message="Your name?", requested_schema=NAMED)
    question = [types.SamplingMessage(role="user", content=types.TextContent(text="The capital of France?"))]
    if ctx.protocol_version < "2026":
        session, id = ctx.session, ctx.request_id
        name = await session.elicit_form(form.message, NAMED, related_request_id=id)
        capital = await session.create_message(question, max_tokens=9, related_request_id=id)
        roots = await session.list_roots()
    elif not params.input_responses:
        return types.InputRequiredResult(request_state="asked", input_requests={
            "name": types.ElicitRequest(params=form),
            "capital": types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=question, max_tokens=9)),
            "roots": types.ListRootsRequest(),
        })
    else:
        name, capital, roots = (params.input_responses[key] for key in ("name", "capital", "roots"))
    [said] = capital.content if isinstance(capital.content, list) else [capital.content]
    return text(f"{name.action} {name.content['name']} says {said.text}, in {roots.roots[0].uri}")


TOOLS = {
    "ask": ask, "cancelled": count_cancelled, "count": count, "fail": fail, "grow": grow,
    "log": log, "shrink": shrink, "touch": touch, "wait": wait,
}


async def list_resources(_, params):
    items, following = page(resources, params)
    return types.ListResourcesResult(resources=[types.Resource(uri=uri, name=uri) for uri in items], next_cursor=following)


async def list_templates(*_):
    return types.ListResourceTemplatesResult(resource_templates=[types.ResourceTemplate(uri_template="e2e://words/{word}", name="words")])


async def read(ctx, params):
    uri = params.uri
    if uri in resources:
        words = "This is " + uri
    elif uri.startswith("e2e://words/"):
        words = uri.removeprefix("e2e://words/").upper()
    else:
        raise MCPError(types.INVALID_PARAMS if ctx.protocol_version >= "2026" else -32002, "no such resource", {"uri": uri})
    return types.ReadResourceResult(contents=[types.TextResourceContents(uri=uri, text=words, mime_type="text/plain")])


async def subscribe(ctx, params):
    watchers.setdefault(params.uri, []).append(ctx.session)
    return types.EmptyResult()


async def unsubscribe(ctx, params):
    watchers.pop(params.uri, None)
    return types.EmptyResult()


async def list_prompts(*_):
    arguments = [types.PromptArgument(name="country"), types.PromptArgument(name="city")]
    return types.ListPromptsResult(prompts=[types.Prompt(name="letter", arguments=arguments)])


async def get_prompt(_, params):
    if params.name != "letter":
        raise MCPError(types.INVALID_PARAMS, f"no prompt is called {params.name}")
    words = "Write to " + (params.arguments or {})["city"]
    return types.GetPromptResult(messages=[types.PromptMessage(role="user", content=types.TextContent(text=words))])


async def complete(_, params):
    country = params.context and (params.context.arguments or {}).get("country")
    values = [city for city in CITIES.get(country, ["Oslo", "Rome"]) if city.startswith(params.argument.value)]
    return types.CompleteResult(completion=types.Completion(values=values))


async def set_level(*_):
    return types.EmptyResult()


server = Server(
    "python", version="1.0.0", instructions="Try everything.",
    on_list_tools=list_tools, on_call_tool=call_tool, on_list_resources=list_resources, on_list_resource_templates=list_templates,
    on_read_resource=read, on_subscribe_resource=subscribe, on_unsubscribe_resource=unsubscribe,
    on_subscriptions_listen=ListenHandler(bus), on_list_prompts=list_prompts, on_get_prompt=get_prompt, on_completion=complete,
    on_set_logging_level=set_level,
)
# That lists change is to be said for each connection; over HTTP, the SDK asks for it without arguments.
server.create_initialization_options = functools.partial(
    server.create_initialization_options, NotificationOptions(prompts_changed=True, resources_changed=True, tools_changed=True))


async def pipe():
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


if __name__ == "__main__":
    if sys.argv[1] == "stdio":
        asyncio.run(pipe())
    else:
        uvicorn.run(server.streamable_http_app(), host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
