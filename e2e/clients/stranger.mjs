// Runs the checks with a client in another language: a program that does what it
// reads, and tells what comes of it.
//
//   node stranger.mjs everything REVISION http|stdio TARGET… -- PROGRAM…
//
// The program gets the transport, the revision and the target as its last
// arguments, and connects. Lines of JSON go both ways. To the program:
//
//   {"id": 1, "op": "callTool", "params": {…}}  do this; cancel names an id with of
//   {"answer": 1, "result": {…}}                the answer to what it asked
//
// From it:
//
//   {"tell": "connected", "what": {…}}          revision, server, instructions, capabilities;
//                                               tasks: handled, or driven where a call waits for its task
//   {"id": 1, "result": {…}}                    what came of it, as in the specification
//   {"id": 1, "error": {code, message, data}}
//   {"tell": "log", "what": {…}}                a notification: log, updated, tools, prompts, resources, fault
//   {"tell": "progress", "of": 1, "what": {…}}
//   {"ask": 1, "kind": "elicit", "params": {…}} a question: elicit, sample, roots
//
// HTTP goes through a relay here, which notes the session and who ended it.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync } from "node:fs";
import http from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { main } from "./main.mjs";

const divide = process.argv.lastIndexOf("--");
const [, , , revision, kind] = process.argv;
const program = process.argv.splice(divide).slice(1);
const modern = revision >= "2026";

// Stdio names the command that the program shall start, which leaves a note when
// it has ended by itself: those who are killed leave none.
class Stdio {
  #note = join(tmpdir(), `talaria-e2e-${process.pid}`);

  constructor({ command, args }) {
    this.target = ["sh", "-c", '"$@"; echo "ended with $?" >"$0"', this.#note, command, ...args];
  }

  async ready() {}

  ended() {
    assert.ok(existsSync(this.#note), "the server went on when its input had ended");
    assert.equal(readFileSync(this.#note, "utf8"), "ended with 0\n");
  }

  close() {
    rmSync(this.#note, { force: true });
  }
}

// Web is the relay to a URL.
class Web {
  constructor(url) {
    this.#server = http.createServer((request, response) => {
      const { method, headers } = request;
      if (method === "DELETE") this.#ended = true;
      const onward = http.request(url, { method, headers }, (answer) => {
        this.sessionId ??= answer.headers["mcp-session-id"];
        response.writeHead(answer.statusCode, answer.headers);
        response.flushHeaders();
        answer.on("error", () => response.destroy());
        answer.pipe(response);
      });
      onward.on("error", () => response.destroy());
      response.on("close", () => onward.destroy());
      request.pipe(onward);
    });
  }

  #server;
  #ended = false;

  async ready() {
    await new Promise((resolve) => this.#server.listen(0, "127.0.0.1", resolve));
    this.target = [`http://127.0.0.1:${this.#server.address().port}/mcp`];
  }

  ended() {
    assert.ok(!this.sessionId || this.#ended, "the client left its session behind");
  }

  close() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

// Stranger is the program.
class Stranger {
  #process;
  #calls = new Map(); // by id: how to settle it, and who wants its progress
  #last = 0;

  constructor(target, user) {
    const [command, ...args] = [...program, kind, revision, ...target];
    this.#process = spawn(command, args, { stdio: ["pipe", "pipe", "inherit"] });
    this.gone = new Promise((resolve) => this.#process.on("close", resolve));
    this.#process.on("error", (error) => this.#lose(error));
    this.#process.stdin.on("error", () => {});
    this.gone.then((code) => this.#lose(new Error(`the client ended with ${code}`)));
    this.connected = new Promise((resolve, reject) => this.#calls.set("connected", { resolve, reject }));
    createInterface({ input: this.#process.stdout }).on("line", (line) => this.#hear(JSON.parse(line), user));
  }

  #lose(error) {
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  #send(message) {
    this.#process.stdin.write(JSON.stringify(message) + "\n");
  }

  #settle(id, settle) {
    const call = this.#calls.get(id);
    this.#calls.delete(id);
    if (call) settle(call);
  }

  #hear(message, user) {
    if ("ask" in message) {
      const answers = { elicit: (p) => user.elicit(p), sample: (p) => user.sample(p), roots: () => ({ roots: user.roots }) };
      this.#send({ answer: message.ask, result: answers[message.kind](message.params) });
    } else if (message.tell === "connected") {
      this.#settle("connected", ({ resolve }) => resolve(message.what));
    } else if (message.tell === "progress") {
      this.#calls.get(message.of)?.onprogress?.(message.what);
    } else if (message.tell === "fault") {
      this.onfault?.(new Error(message.what));
    } else if (message.tell) {
      user.tell(message.tell, message.what);
    } else if (message.error) {
      const error = Object.assign(new Error(message.error.message), message.error);
      this.#settle(message.id, ({ reject }) => reject(error));
    } else {
      this.#settle(message.id, ({ resolve }) => resolve(message.result));
    }
  }

  // do lets the program do op.
  do(op, params = {}, { signal, onprogress } = {}) {
    const id = ++this.#last;
    return new Promise((resolve, reject) => {
      this.#calls.set(id, { resolve, reject, onprogress });
      signal?.addEventListener("abort", () => this.#send({ op: "cancel", of: id }));
      this.#send({ id, op, params });
    });
  }

  async close() {
    await this.do("close");
    this.#process.stdin.end();
    await this.gone;
  }

  kill() {
    this.#process.kill();
  }
}

async function connect(_, transport, user) {
  await transport.ready();
  const stranger = new Stranger(transport.target, user);
  transport.close = ((close) => () => {
    stranger.kill();
    close.call(transport);
  })(transport.close);
  const hello = await stranger.connected;

  const client = {
    getServerVersion: () => hello.server,
    getInstructions: () => hello.instructions,
    getServerCapabilities: () => hello.capabilities,
    readResource: ({ uri }, { cacheMode } = {}) => stranger.do("readResource", { uri, fresh: cacheMode === "refresh" }),
    setLoggingLevel: (level) => stranger.do("setLoggingLevel", { level }),
    close: () => stranger.close(),
    set onerror(hear) {
      stranger.onfault = hear;
    },
  };
  for (const op of ["listTools", "listResources", "listResourceTemplates", "listPrompts", "getPrompt", "complete", "ping"]) {
    client[op] = (params) => stranger.do(op, params);
  }
  const listen = async (filter) => {
    const { listening } = await stranger.do("listen", filter);
    return () => stranger.do("unlisten", { listening });
  };
  return {
    client,
    revision: hello.revision,
    joinsPages: false,
    keeps: hello.keeps,
    notFound: modern ? -32602 : -32002,
    call: (params, options) => stranger.do("callTool", { ...params, progress: Boolean(options?.onprogress) }, options),
    tasks: modern && hello.tasks && {
      driven: hello.tasks === "driven",
      start: (params) => stranger.do("startTask", params),
      get: (params) => stranger.do("getTask", params),
      update: (params) => stranger.do("updateTask", params),
      cancel: (params) => stranger.do("cancelTask", params),
    },
    watch: async (uri) => {
      if (modern) return listen({ resourceSubscriptions: [uri] });
      await stranger.do("subscribe", { uri });
      return () => stranger.do("unsubscribe", { uri });
    },
    watchLists: async () =>
      modern ? listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }) : () => {},
  };
}

await main(connect, Stdio, { http: Web });
