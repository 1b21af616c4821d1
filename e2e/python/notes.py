"""The server of docs/from-fastmcp.md as it is with FastMCP, its client and its
test.

    python notes.py            serves standard input and output
    python notes.py test       runs the test
    python notes.py COMMAND…   uses a server that the command starts
"""

import asyncio
import sys
from typing import Annotated

import fastmcp
from fastmcp import Client, Context, FastMCP
from fastmcp.client.transports import StdioTransport
from fastmcp.exceptions import NotFoundError
from mcp import types
from pydantic import BaseModel, Field

notes: list[str] = []
server = FastMCP("notes", version="1.0.0")


class Added(BaseModel):
    id: int


@server.tool
def add_note(text: Annotated[str, Field(description="what to remember", min_length=1, max_length=200)]) -> Added:
    """Keeps a note"""
    notes.append(text)
    return Added(id=len(notes))


@server.resource("notes://{id}", name="note")
def read(id: int) -> str:
    if not 1 <= id <= len(notes):
        raise NotFoundError(f"note {id}")
    return notes[id - 1]


@server.prompt
def summarize(style: Annotated[str, Field(description="such as haiku")]) -> str:
    """Summarizes the notes"""
    return f"Summarize my notes as a {style}."


@server.tool
async def delete_note(id: int, ctx: Context) -> str | types.InputRequiredResult:
    """Deletes a note"""
    question = f"Delete note {id}?"
    if ctx.request_context.protocol_version < "2026":
        answer = await ctx.elicit(question, response_type=bool)
        sure = answer.action == "accept" and answer.data
    elif not ctx.input_responses:
        schema = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
        form = types.ElicitRequestFormParams(message=question, requested_schema=schema)
        return types.InputRequiredResult(request_state="asked", input_requests={"sure": types.ElicitRequest(params=form)})
    else:
        answer = ctx.input_responses["sure"]
        sure = answer.action == "accept" and answer.content["sure"]
    if not sure:
        return "kept"
    notes[id - 1] = ""
    return "deleted"


async def test_add_note():
    async with Client(server) as client:
        added = await client.call_tool("add_note", {"text": "buy milk"})
        assert added.data.id == 1


async def use(command: list[str], text: str) -> int:
    async with Client(StdioTransport(command[0], command[1:], keep_alive=False)) as client:
        return (await client.call_tool("add_note", {"text": text})).data.id


if __name__ == "__main__":
    fastmcp.settings.show_server_banner = False
    if not sys.argv[1:]:
        server.run("stdio")
    elif sys.argv[1] == "test":
        asyncio.run(test_add_note())
    else:
        print(asyncio.run(use(sys.argv[1:], "buy milk")))
