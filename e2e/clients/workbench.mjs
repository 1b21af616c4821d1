// The checks of cmd/example, a server as its users write one. What tools return
// is checked by the clients too, against the output schemas that they listed.
import assert from "node:assert/strict";
import { all, check, names, text } from "./harness.mjs";

export async function workbench(session) {
  const { client } = session;
  const call = (name, args = {}) => session.call({ name, arguments: args });

  await check("lists tools", async () => {
    const found = names((await all((p) => client.listTools(p), "tools")).items);
    for (const name of ["add_note", "calculate", "draw_bar_chart", "search_notes"]) assert.ok(found.includes(name), name);
  });
  await check("calculates", async () => {
    const result = await call("calculate", { operation: "multiply", a: 6, b: 7 });
    assert.equal(JSON.parse(text(result)).result, 42);
    if (session.revision >= "2025-06-18") assert.equal(result.structuredContent.result, 42);
  });
  await check("divides by zero", async () => {
    const result = await call("calculate", { operation: "divide", a: 1, b: 0 });
    assert.ok(result.isError);
    assert.match(text(result), /division by zero/);
  });
  await check("keeps a note", async () => {
    const note = `from ${client.constructor.name} at ${Date.now()}`;
    await call("add_note", { text: note });
    assert.ok(text(await call("search_notes")).includes(note));
  });
}
