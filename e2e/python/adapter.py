"""What the clients in Python have in common: they do what they read, as the head
of clients/stranger.mjs says.

A client has a method for each operation, by its name. Its results are models of
the SDK, or plain data.
"""

import asyncio
import json
import sys
import traceback

from mcp import MCPError, types

KINDS = {
    "notifications/tools/list_changed": "tools",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/list_changed": "resources",
}


def plain(value):
    """Returns a model as it is on the wire."""
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return value


class Adapter:
    """One client. Subclasses have connect, an async context manager, listening, which
    opens a subscription, and the operations."""

    def __init__(self, transport: str, revision: str, target: list[str]):
        self.transport, self.revision, self.target = transport, revision, target
        self.modern = revision >= "2026"
        self.running: dict[int, asyncio.Task] = {}
        self.questions: list[asyncio.Future] = []
        self.stops: list[tuple[asyncio.Event, asyncio.Task]] = []

    def say(self, **message):
        print(json.dumps(message), flush=True)

    def tell(self, kind, what=None):
        self.say(tell=kind, what=plain(what))

    async def ask(self, kind, params=None):
        """Lets the driver answer what the server asks."""
        answer = asyncio.get_running_loop().create_future()
        self.questions.append(answer)
        self.say(ask=len(self.questions), kind=kind, params=plain(params))
        return await answer

    async def elicit(self, _, params):
        return types.ElicitResult.model_validate(await self.ask("elicit", params))

    async def sample(self, _, params):
        return types.CreateMessageResult.model_validate(await self.ask("sample", params))

    async def roots(self, _):
        return types.ListRootsResult.model_validate(await self.ask("roots"))

    async def log(self, params):
        self.tell("log", params)

    async def notice(self, message):
        """Hears the notifications of a legacy session, which come without being asked for."""
        if isinstance(message, Exception):
            self.tell("fault", repr(message))
        elif self.modern:
            return
        elif message.method == "notifications/resources/updated":
            self.tell("updated", str(message.params.uri))
        elif message.method in KINDS:
            self.tell(KINDS[message.method])

    async def listen(self, _, filter):
        return await self.open(**filter)

    async def open(self, toolsListChanged=False, promptsListChanged=False, resourcesListChanged=False, resourceSubscriptions=()):
        """Opens a subscription, in a task of its own, since that must also close it."""
        opened, stop = asyncio.get_running_loop().create_future(), asyncio.Event()

        async def follow():
            async with self.listening(
                tools_list_changed=toolsListChanged, prompts_list_changed=promptsListChanged,
                resources_list_changed=resourcesListChanged, resource_subscriptions=resourceSubscriptions,
            ) as events:
                opened.set_result(None)
                reading = asyncio.create_task(read(events))
                await stop.wait()
                reading.cancel()

        async def read(events):
            async for event in events:
                name = type(event).__name__
                if name == "ResourceUpdated":
                    self.tell("updated", event.uri)
                else:
                    self.tell(name.removesuffix("ListChanged").lower())

        task = asyncio.create_task(follow())
        await asyncio.wait([opened, task], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            task.result()
        self.stops.append((stop, task))
        return {"listening": len(self.stops) - 1}

    async def unlisten(self, _, p):
        stop, task = self.stops[p["listening"]]
        stop.set()
        await task

    async def perform(self, id, op, params):
        """Performs one operation and says what came of it."""
        try:
            self.say(id=id, result=plain(await getattr(self, op)(id, params)) or {})
        except asyncio.CancelledError:
            self.say(id=id, error={"message": "cancelled"})
        except MCPError as e:
            self.say(id=id, error={"code": e.error.code, "message": e.error.message, "data": e.error.data})
        except Exception as e:
            traceback.print_exc()
            self.say(id=id, error={"message": repr(e)})
        finally:
            self.running.pop(id, None)

    async def main(self):
        reader = asyncio.StreamReader(limit=1 << 24)
        await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        async with self.connect():
            closing = None
            while closing is None and (line := await reader.readline()):
                message = json.loads(line)
                if "answer" in message:
                    self.questions[message["answer"] - 1].set_result(message["result"])
                elif message["op"] == "cancel":
                    if task := self.running.get(message["of"]):
                        task.cancel()
                elif message["op"] == "close":
                    closing = message["id"]
                else:
                    task = asyncio.create_task(self.perform(message["id"], message["op"], message["params"]))
                    self.running[message["id"]] = task
        self.say(id=closing, result={})


def run(adapter: type[Adapter]):
    transport, revision, *target = sys.argv[1:]
    asyncio.run(adapter(transport, revision, target).main())
