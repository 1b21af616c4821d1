// Runs the checks with version 2 of the TypeScript SDK, which speaks all revisions.
//
//   node client.mjs dev|everything|workbench REVISION http|sse|stdio TARGET…
import { Client, SSEClientTransport, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { main } from "./main.mjs";

// For a modern revision the client finds out what the server speaks, for a legacy
// revision it offers that one alone.
async function connect(revision, transport, user) {
  const modern = revision >= "2026";
  const client = new Client({ name: "client", version: "1.0.0" }, {
    capabilities: { elicitation: { form: {}, url: {} }, sampling: {}, roots: { listChanged: true } },
    ...(modern ? { versionNegotiation: { mode: "auto" } } : { supportedProtocolVersions: [revision] }),
  });
  client.setRequestHandler("elicitation/create", ({ params }) => user.elicit(params));
  client.setRequestHandler("sampling/createMessage", ({ params }) => user.sample(params));
  client.setRequestHandler("roots/list", () => ({ roots: user.roots }));
  client.setNotificationHandler("notifications/message", ({ params }) => user.tell("log", params));
  client.setNotificationHandler("notifications/resources/updated", ({ params }) => user.tell("updated", params.uri));
  for (const kind of ["tools", "prompts", "resources"]) {
    client.setNotificationHandler(`notifications/${kind}/list_changed`, () => user.tell(kind));
  }
  await client.connect(transport, { timeout: 170_000 });

  const listen = async (filter) => {
    const subscription = await client.listen(filter);
    return async () => {
      await subscription.close();
      await subscription.closed;
    };
  };
  return {
    client,
    revision: client.getNegotiatedProtocolVersion(),
    joinsPages: true,
    keeps: modern,
    notFound: -32602, // that of modern revisions, which it makes of -32002 too
    call: (params, options) => client.callTool(params, options),
    watch: async (uri) => {
      if (modern) return listen({ resourceSubscriptions: [uri] });
      await client.subscribeResource({ uri });
      return () => client.unsubscribeResource({ uri });
    },
    watchLists: async () =>
      modern ? listen({ toolsListChanged: true, promptsListChanged: true, resourcesListChanged: true }) : () => {},
  };
}

await main(connect, StdioClientTransport, { http: StreamableHTTPClientTransport, sse: SSEClientTransport });
