// Subscribes the receiver of the AI SDK to the comments of examples/events, whose URL is the
// argument. standardwebhooks verifies each delivery.
import assert from "node:assert/strict";
import http from "node:http";
import { createMCPClient, experimental_createMCPEventWebhook } from "@ai-sdk/mcp";
import { Webhook } from "standardwebhooks";
import { check } from "./harness.mjs";

const kept = new Map();
const store = {
  get: async (key) => kept.get(key),
  getById: async (id) => [...kept.values()].find((subscription) => subscription.id === id),
  set: async (subscription) => void kept.set(subscription.key, subscription),
  update: async (key, patch) => void kept.set(key, { ...kept.get(key), ...patch }),
  delete: async (key) => void kept.delete(key),
};
const texts = [];
const faults = [];
let verified = 0;
const receive = experimental_createMCPEventWebhook({
  store, onEvent: ({ event }) => void texts.push(event.data.text), onGap: () => void texts.push("gap"), onTerminated: () => void texts.push("terminated"),
});
const server = http.createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const url = new URL(request.url, `http://127.0.0.1:${server.address().port}`);
  for (const { key, delivery } of kept.values()) {
    if (!url.search.includes(key)) continue;
    try {
      new Webhook(delivery.secret).verify(body, request.headers);
      assert.throws(() => new Webhook(delivery.secret).verify(`${body} `, request.headers));
      verified++;
    } catch (fault) {
      faults.push(fault);
    }
  }
  const answer = await receive(new Request(url, { method: "POST", headers: request.headers, body }));
  response.writeHead(answer.status, Object.fromEntries(answer.headers));
  response.end(await answer.text());
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

// received waits until the texts are those.
async function received(...want) {
  for (let i = 0; i < 1000 && texts.length < want.length; i++) await new Promise((resolve) => setTimeout(resolve, 10));
  assert.deepEqual(texts, want);
}

const client = await createMCPClient({ transport: { type: "http", url: process.argv[2] }, experimental_events: { store } });
const events = client.experimental_events;
const { add_comment: comment } = await client.tools();
const add = (document, text) => comment.execute({ document, text }, {});
let subscription;
await check("lists an event type with webhooks", async () => {
  const { events: [type] } = await events.list();
  assert.equal(type.name, "comment.created");
  assert.ok(type.delivery.includes("webhook"));
});
await check("subscribes", async () => {
  subscription = await events.subscribe({
    name: "comment.created", arguments: { document: "doc_1" },
    delivery: { mode: "webhook", url: `http://127.0.0.1:${server.address().port}/hook`, allowInsecureLocalhost: true },
  });
});
await check("receives the events that match", async () => {
  await add("doc_1", "one ✨");
  await add("doc_2", "other");
  await add("doc_1", "two");
  await received("one ✨", "two");
});
await check("refreshes", async () => assert.equal((await events.refresh({ id: subscription.id })).id, subscription.id));
await check("receives nothing after the end", async () => {
  await events.unsubscribe({ id: subscription.id });
  await add("doc_1", "late");
  await new Promise((resolve) => setTimeout(resolve, 500));
  await received("one ✨", "two");
});
await check("verifies what it received", async () => {
  assert.deepEqual(faults, []);
  assert.equal(verified, 3);
});
process.exit();
