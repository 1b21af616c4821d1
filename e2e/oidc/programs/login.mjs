// Logs in with the TypeScript SDK, version 1 or 2, and lists notes. Version 2 adds one, which
// needs another scope. It prints "visit URL" for each visit of the user.
//
//   node login.mjs 1|2 REVISION METHOD URL
import { createServer } from "node:http";
import { randomUUID } from "node:crypto";

const [version, revision, method, url] = process.argv.slice(2);
const sdk = version === "1"
  ? { ...(await import("@modelcontextprotocol/sdk/client/index.js")), ...(await import("@modelcontextprotocol/sdk/client/streamableHttp.js")) }
  : await import("@modelcontextprotocol/client");

let answered; // of the visit in progress
const callback = createServer((request, response) => {
  response.end("You may close this page.");
  const params = new URL(request.url, "http://127.0.0.1").searchParams;
  if (params.has("code") || params.has("error")) answered(params);
});
await new Promise((resolve) => callback.listen(0, "127.0.0.1", resolve));
const redirect = `http://127.0.0.1:${callback.address().port}/callback`;

const kept = {};
let visit;
const authProvider = {
  redirectUrl: redirect,
  clientMetadata: {
    client_name: `TypeScript ${version}`, redirect_uris: [redirect], token_endpoint_auth_method: method,
    grant_types: ["authorization_code", "refresh_token"], response_types: ["code"],
  },
  state: () => (kept.state = randomUUID()),
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  tokens: () => kept.tokens,
  saveTokens: (tokens) => { kept.tokens = tokens; },
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  redirectToAuthorization: (address) => {
    visit = new Promise((resolve) => { answered = resolve; });
    console.log(`visit ${address}`);
  },
};

const open = () => new sdk.StreamableHTTPClientTransport(new URL(url), { authProvider });
let transport;

// with does something, and again after a visit of the user if that is needed.
async function withLogin(what) {
  try {
    return await what();
  } catch (error) {
    if (!visit) throw error;
    const params = await visit;
    visit = undefined;
    if (params.get("state") !== kept.state) throw new Error("another state");
    if (!params.get("iss")) throw new Error("no iss");
    await transport.finishAuth(version === "1" ? params.get("code") : params);
    return what();
  }
}

const client = await withLogin(async () => {
  const fresh = new sdk.Client({ name: "e2e", version: "1.0.0" }, revision >= "2026"
    ? { versionNegotiation: { mode: "auto" } } : { supportedProtocolVersions: [revision] });
  transport = open();
  await fresh.connect(transport);
  return fresh;
});
const text = (result) => result.content.map((part) => part.text).join("");
await client.callTool({ name: "list_notes", arguments: {} });
if (version !== "1") { // which refreshes its token when it lacks a scope, and gives up
  console.log("said " + text(await withLogin(() => client.callTool({ name: "add_note", arguments: { text: version } }))));
}
console.log("said " + text(await client.callTool({ name: "list_notes", arguments: {} })));
const spoken = version === "1" ? transport.protocolVersion : client.getNegotiatedProtocolVersion();
console.log("spoke " + spoken);
const before = kept.tokens.refresh_token;
if (!before) throw new Error("there is no refresh token");
await client.close();
callback.close();
process.exit(0);
