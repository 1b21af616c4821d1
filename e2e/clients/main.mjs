// Connects a client as the command line says and runs the checks of a server.
import assert from "node:assert/strict";
import { dev } from "./dev.mjs";
import { everything } from "./everything.mjs";
import { check, User } from "./harness.mjs";
import { workbench } from "./workbench.mjs";

// main takes SERVER REVISION TRANSPORT TARGET… from the command line: target is
// a URL or a command. connect(revision, transport, user) returns the session:
// the client, its revision, and what the versions of the SDK do differently.
// transports has a class for each transport but stdio's, which is Stdio.
export async function main(connect, Stdio, transports) {
  const [server, revision, kind, target, ...args] = process.argv.slice(2);
  const transport = kind === "stdio"
    ? new Stdio({ command: target, args, stderr: "inherit" })
    : new transports[kind](new URL(target));
  const user = new User();
  const faults = []; // what the client has to say of the server's messages
  let session;
  const starting = 170_000; // a program may be built first, on a machine that is busy
  await check("connects", async () => {
    session = await connect(revision, transport, user);
    session.kind = kind;
    session.client.onerror = (error) => faults.push(error);
    assert.equal(session.revision, revision);
  }, starting);
  if (session) {
    await { dev, everything, workbench }[server](session, user);
    await check("finds no fault with the server", async () => assert.deepEqual(faults, []));
    await check("disconnects", () => disconnect(session, transport, target));
  }
  await transport.close();
  process.exit(); // a request without an answer would keep the process for a minute
}

// disconnect ends the session. It sees that a server process ends by itself, as
// the client would kill it after two seconds, and that an HTTP session is gone.
async function disconnect({ client, kind, revision }, transport, target) {
  const { pid, sessionId } = transport;
  const lasting = kind === "http" && revision < "2026";
  const start = Date.now();
  if (lasting) await transport.terminateSession?.();
  await client.close();
  if (transport.ended) transport.ended(); // it looks by itself
  else if (kind === "stdio") {
    assert.ok(Date.now() - start < 1500, "the server went on when its input had ended");
    assert.throws(() => process.kill(pid, 0), { code: "ESRCH" });
  }
  if (!lasting) return assert.equal(sessionId, undefined);
  assert.match(sessionId, /^[\x21-\x7e]{16,}$/);
  const response = await fetch(target, {
    method: "POST",
    headers: {
      "Accept": "application/json, text/event-stream", "Content-Type": "application/json", "Mcp-Session-Id": sessionId,
      "Mcp-Protocol-Version": revision,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
  });
  assert.equal(response.status, 404);
}
