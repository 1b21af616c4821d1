// Runs the checks with version 1 of the TypeScript SDK, which knows the legacy
// revisions.
//
//   node sdk.mjs dev|everything|workbench REVISION http|sse|ws|stdio TARGET…
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { SSEClientTransport } from "@modelcontextprotocol/sdk/client/sse.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { WebSocketClientTransport } from "@modelcontextprotocol/sdk/client/websocket.js";
import {
  CreateMessageRequestSchema, ElicitRequestSchema, ListRootsRequestSchema, LoggingMessageNotificationSchema,
  PromptListChangedNotificationSchema, ResourceListChangedNotificationSchema, ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from "@modelcontextprotocol/sdk/types.js";
import { main } from "./main.mjs";

async function connect(revision, transport, user) {
  const client = new Client({ name: "sdk", version: "1.0.0" }, {
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
  });
  client.setRequestHandler(ElicitRequestSchema, ({ params }) => user.elicit(params));
  client.setRequestHandler(CreateMessageRequestSchema, ({ params }) => user.sample(params));
  client.setRequestHandler(ListRootsRequestSchema, () => ({ roots: user.roots }));
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => user.tell("log", params));
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => user.tell("updated", params.uri));
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => user.tell("tools"));
  client.setNotificationHandler(PromptListChangedNotificationSchema, () => user.tell("prompts"));
  client.setNotificationHandler(ResourceListChangedNotificationSchema, () => user.tell("resources"));

  const negotiated = speak(transport, revision);
  await client.connect(transport, { timeout: 170_000 });
  return {
    client,
    revision: negotiated(),
    joinsPages: false,
    keeps: false,
    notFound: -32002,
    call: (params, options) => client.callTool(params, undefined, options),
    watch: async (uri) => {
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    watchLists: async () => () => {},
  };
}

// speak makes the client offer a revision: of itself it offers its latest, but
// it speaks the others too. The function that it returns tells what came of it.
function speak(transport, revision) {
  const send = transport.send.bind(transport);
  transport.send = (message, options) => {
    if (message.method === "initialize") message.params.protocolVersion = revision;
    return send(message, options);
  };
  let negotiated;
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (version) => {
    negotiated = version;
    tell?.(version);
  };
  return () => negotiated;
}

await main(connect, StdioClientTransport, {
  http: StreamableHTTPClientTransport,
  sse: SSEClientTransport,
  ws: WebSocketClientTransport,
});
