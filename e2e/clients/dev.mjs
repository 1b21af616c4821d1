// The checks of talaria dev: a program that talaria new wrote is changed while its client
// calls it all the time. WORKED is its directory, E2E_EDITS the number of changes.
import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { check, text } from "./harness.mjs";

const edits = Number(process.env.E2E_EDITS ?? 6);

export async function dev(session, user) {
  const file = join(process.env.WORKED, "words.go");
  const source = await readFile(file, "utf8");
  const edit = (version) => writeFile(file, source.replace("out.Lines = 1 +", `out.Lines = ${version} +`));
  const version = async () => JSON.parse(text(await session.call({ name: "count_words", arguments: { text: "x" } }))).lines;
  const faults = [];
  let calls = 0;
  let running = true;
  const caller = (async () => {
    for (; running; calls++, await pause(20)) await version().catch((error) => faults.push(error));
  })();
  const unwatch = await session.watchLists();
  for (let n = 2; n < 2 + edits; n++) {
    await check(`serves version ${n}`, async () => {
      if (n === 4) {
        await writeFile(file, source + "func x( {\n");
        if (session.revision < "2026") while (!/syntax error/.test((await user.next("log")).data));
        else await pause(3000); // nothing says that the build has failed
      }
      await edit(n);
      await user.next("tools");
      assert.equal(await version(), n);
    }, 60_000);
  }
  await unwatch();
  running = false;
  await caller;
  await check("no call fails", async () => {
    assert.deepEqual(faults, []);
    assert.ok(calls > 10 * edits, `only ${calls} calls`);
  });
  await writeFile(file, source);
}
