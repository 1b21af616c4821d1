// Reads tools, one a line, lets the client of the TypeScript SDK list and call them, and
// compiles their schemas of arguments, too. It writes what Ajv warns of, and what fails,
// one a line.
import { createInterface } from "node:readline";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { InMemoryTransport } from "@modelcontextprotocol/sdk/inMemory.js";
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { CallToolRequestSchema, ErrorCode, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { AjvJsonSchemaValidator } from "@modelcontextprotocol/sdk/validation/ajv";

const tools = [];
for await (const line of createInterface({ input: process.stdin })) tools.push(JSON.parse(line));

let now = "the list";
const tell = (...text) => console.log(`${now}: ${text.join(" ").replace(/\s+/g, " ")}`);
console.warn = console.error = tell;

const server = new Server({ name: "judged", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, () => ({ content: [], structuredContent: {} }));
const [one, other] = InMemoryTransport.createLinkedPair();
const client = new Client({ name: "judge", version: "1" });
await Promise.all([server.connect(one), client.connect(other)]);

const listed = (await client.listTools()).tools;
if (listed.length !== tools.length) tell(`${listed.length} of ${tools.length} tools`);
const validator = new AjvJsonSchemaValidator();
for (const tool of listed) {
  now = tool.name;
  try {
    validator.getValidator(tool.inputSchema)({});
  } catch (e) {
    tell("arguments:", e.message);
  }
  try {
    await client.callTool({ name: tool.name, arguments: {} });
  } catch (e) {
    // {} is no valid result of most.
    if (e.code !== ErrorCode.InvalidParams || !/does not match/.test(e.message)) tell("result:", e.message);
  }
}
await client.close();
