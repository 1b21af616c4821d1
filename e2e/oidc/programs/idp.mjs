// An OpenID provider, oidc-provider, which knows one client and lets everyone in under the
// name that they type.
//
//   node idp.mjs REDIRECT_URI…
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const server = createServer();
server.listen(0, "127.0.0.1", () => {
  const issuer = `http://127.0.0.1:${server.address().port}`;
  const provider = new Provider(issuer, {
    clients: [{
      client_id: "notes",
      client_secret: "a-secret-of-the-notes-server",
      redirect_uris: process.argv.slice(2),
      grant_types: ["authorization_code", "refresh_token"],
    }],
    scopes: ["openid", "profile", "email", "offline_access"],
    claims: { openid: ["sub"], profile: ["name"], email: ["email"] },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, name: `${id} of the company`, email: `${id}@example.com` }) }),
    features: { revocation: { enabled: true } }, // and the forms for development, which it has by default
    cookies: { keys: ["a-key-of-cookies"] },
  });
  server.on("request", provider.callback());
  console.log(`listening on ${issuer}`);
});
