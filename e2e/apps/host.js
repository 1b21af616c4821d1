// The page of a host. It fetches jobs from the test, one after the other, and posts
// what became of each.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport, getToolUiResourceUri, RESOURCE_MIME_TYPE } from "@modelcontextprotocol/ext-apps/app-bridge";

let client, bridge, frame, seen, probes = 0;
const answers = new Map();
addEventListener("message", event => {
  if (event.source !== frame?.contentWindow || !event.data?.probed) return;
  event.stopImmediatePropagation(); // it is none of the bridge's
  answers.get(event.data.probed)?.(event.data);
});

// probe asks the sandbox, which has the origin of the view, to look at it.
function probe(what) {
  const id = ++probes;
  return new Promise((resolve, reject) => {
    answers.set(id, ({ value, error }) => (error ? reject(new Error(error)) : resolve(value)));
    frame.contentWindow.postMessage({ probe: id, ...what }, "*");
  });
}

const jobs = {
  async connect({ url, revision, ui }) {
    await client?.close();
    const modern = revision >= "2026";
    client = new Client({ name: "host", version: "1" }, {
      capabilities: ui ? { extensions: { "io.modelcontextprotocol/ui": { mimeTypes: [RESOURCE_MIME_TYPE] } } } : {},
      ...(modern ? { versionNegotiation: { mode: "auto" } } : { supportedProtocolVersions: [revision] }),
    });
    await client.connect(new StreamableHTTPClientTransport(new URL(url, location.href)));
    const { tools } = await client.listTools();
    return {
      revision: client.getNegotiatedProtocolVersion(),
      extension: client.getServerCapabilities().extensions?.["io.modelcontextprotocol/ui"],
      tools: tools.map(({ name }) => name),
    };
  },

  // show calls a tool and shows its result.
  async show({ tool: name, arguments: args, toolInfo, append = "", early }) {
    frame?.remove();
    seen = { sizes: [], calls: [] };
    const tool = (await client.listTools()).tools.find(tool => tool.name === name);
    const { contents: [view] } = await client.readResource({ uri: getToolUiResourceUri(tool) });
    if (view.mimeType !== RESOURCE_MIME_TYPE) throw new Error(view.mimeType);
    const request = client.request.bind(client);
    client.request = (message, ...rest) => {
      if (message.method === "tools/call") seen.calls.push(message.params.name);
      return request(message, ...rest);
    };
    bridge = new AppBridge(client, { name: "host", version: "1" }, { serverTools: {}, serverResources: {} }, {
      hostContext: {
        theme: "dark", styles: { variables: { "--color-text-primary": "rgb(1, 2, 3)" } },
        ...(toolInfo ? { toolInfo: { tool } } : {}),
      },
    });
    bridge.onsizechange = ({ width, height }) => {
      seen.sizes.push([width, height]);
      frame.style.height = height + "px";
    };
    const told = event => new Promise(resolve => { bridge[event] = resolve; });
    const proxy = told("onsandboxready"), initialized = told("oninitialized");
    frame = document.createElement("iframe");
    frame.style = "width: 600px; height: 100px; border: 0";
    document.body.append(frame);
    await bridge.connect(new PostMessageTransport(frame.contentWindow, frame.contentWindow));
    frame.src = document.body.dataset.sandbox;
    await proxy;
    if (early) frame.contentWindow.postMessage({ early }, "*");
    await bridge.sendSandboxResourceReady({ html: view.text + append, csp: view._meta?.ui?.csp, permissions: view._meta?.ui?.permissions });
    await initialized;
    await bridge.sendToolInput({ arguments: args });
    const result = await client.callTool({ name, arguments: args });
    seen.calls.length = 0; // what follows is the view's
    await bridge.sendToolResult(result);
    return { content: result.content.map(({ type }) => type), structured: result.structuredContent !== undefined };
  },

  probe: ({ what }) => probe(what),
  seen: async () => seen,
  context: async ({ context }) => bridge.setHostContext(context),
  ping: async () => bridge.request({ method: "ping" }),
  teardown: async () => bridge.teardownResource({}),
  // call calls a tool as a model would.
  async call({ tool, arguments: args }) {
    try {
      return await client.callTool({ name: tool, arguments: args });
    } catch (error) {
      return { code: error.code, message: error.message };
    }
  },
  // forge lets another window post to the view, over and over.
  async forge({ messages }) {
    const other = open("/other.html", "other");
    await new Promise(resolve => addEventListener("message", ({ data }) => data === "open" && resolve()));
    other.postMessage(messages, "*");
    await new Promise(resolve => addEventListener("message", ({ data }) => data === "posted" && resolve()));
    other.close();
  },
};

for (;;) {
  const job = await (await fetch("/job")).json();
  let result;
  try {
    result = { value: await jobs[job.do](job) };
  } catch (error) {
    result = { error: `${error.stack ?? error}` };
  }
  await fetch("/result", { method: "POST", body: JSON.stringify(result) });
}
