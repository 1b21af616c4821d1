// A server with the events of mcp-handler, for e2e/servers, on the port of the argument.
// A POST to /emit is a comment. What mcp-handler leaves to its users is done by
// standardwebhooks and in memory.
import { randomUUID } from "node:crypto";
import http from "node:http";
import { createMcpHandler, experimental_registerMcpEvents, withMcpAuth } from "mcp-handler";
import { Webhook } from "standardwebhooks";

const kept = new Map();

// send posts a signed message to the endpoint of a subscription.
async function send({ id, url, secret }, message, body) {
  const at = new Date();
  const text = JSON.stringify(body);
  return fetch(url, {
    method: "POST", redirect: "manual", body: text,
    headers: {
      "content-type": "application/json", "webhook-id": message, "webhook-timestamp": String(Math.floor(at / 1000)),
      "webhook-signature": new Webhook(secret).sign(message, at, text), "x-mcp-subscription-id": id,
    },
  });
}

async function verifyEndpoint(target) {
  const challenge = randomUUID();
  const answer = await send(target, `msg_verification_${randomUUID()}`, { type: "verification", challenge });
  const { challenge: returned } = await answer.json();
  return returned === challenge ? { verified: true } : { verified: false, reason: "challenge_failed" };
}

// object is a schema with these members, all of them texts.
function object(...names) {
  const schema = { type: "object", properties: Object.fromEntries(names.map((name) => [name, { type: "string" }])), required: names };
  const fits = (value) => names.every((name) => typeof value?.[name] === "string");
  const validate = (value) => (fits(value) ? { value } : { issues: [{ message: "it does not fit" }] });
  return { "~standard": { version: 1, vendor: "e2e", validate, jsonSchema: { input: () => schema, output: () => schema } } };
}

const handler = withMcpAuth(createMcpHandler((server) => experimental_registerMcpEvents(server, {
  events: [{
    name: "comment.created", description: "A comment was added", authorize: () => true,
    inputSchema: object("document"), payloadSchema: object("document", "text"),
  }],
  getPrincipal: ({ extra }) => extra.user,
  delivery: { verifyEndpoint },
  subscriptions: {
    prepare: async () => randomUUID(),
    upsert: async (subscription) => {
      kept.set(subscription.id, subscription);
      return { cursor: null, truncated: false };
    },
    remove: async ({ id }) => kept.delete(id),
  },
})), async (_, token) => (token ? { token, clientId: "e2e", scopes: [], extra: { user: token } } : undefined), { required: true });

async function answer(request, body) {
  if (request.url === "/emit") {
    const data = JSON.parse(body);
    for (const subscription of kept.values()) {
      if (subscription.arguments.document !== data.document) continue;
      const id = `evt_${randomUUID()}`;
      await send(subscription, id, { eventId: id, name: subscription.name, timestamp: new Date().toISOString(), data, cursor: null });
    }
    return new Response(null, { status: 204 });
  }
  const { method, headers, url } = request;
  return handler(new Request(`http://${headers.host}${url}`, { method, headers, body: method === "POST" ? body : undefined }));
}

http.createServer(async (request, response) => {
  let body = "";
  for await (const chunk of request) body += chunk;
  const { status, headers, body: stream } = await answer(request, body);
  response.writeHead(status, Object.fromEntries(headers));
  for await (const chunk of stream ?? []) response.write(chunk);
  response.end();
}).listen(Number(process.argv[2]), "127.0.0.1");
