"""A server with mcp-webhook-events, for e2e/servers.

    python webhooks.py STORE PORT

A POST to /emit is a comment.
"""

import sys

import anyio
import uvicorn
from mcp.server import MCPServer
from mcp_webhook_events import EventDefinition, McpEvents, SafeHttp
from starlette.responses import Response
from starlette.routing import Route


def texts(*names):
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}, "required": list(names)}


server = MCPServer("e2e")
events = McpEvents(server, store=sys.argv[1], http=SafeHttp(allow_insecure_for_tests=True), definitions=[
    EventDefinition("comment.created", "A comment was added", texts("document"), texts("document", "text")),
])
events.install()


async def emit(request):
    data = await request.json()
    await anyio.to_thread.run_sync(events.publish, "comment.created", data)
    await anyio.to_thread.run_sync(events.deliver_pending)
    return Response(status_code=204)


app = server.streamable_http_app(stateless_http=True, json_response=True)
app.router.routes.append(Route("/emit", emit, methods=["POST"]))
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
