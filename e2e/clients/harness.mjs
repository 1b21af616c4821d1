// What the checks stand on: a line per check goes to standard output, either
// "ok WHAT" or "FAIL WHAT: WHY", and the stack of an error to standard error.
import assert from "node:assert/strict";

// check allows a body thirty seconds, or so many milliseconds.
export async function check(what, body, patience = 30_000) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(reject, patience, new Error(`nothing within ${patience} ms`));
  });
  try {
    await Promise.race([body(), late]);
    console.log("ok " + what);
  } catch (error) {
    console.log(`FAIL ${what}: ${String(error?.message).replaceAll("\n", " ")}`);
    console.error(what, error);
  } finally {
    clearTimeout(timer);
  }
}

// User answers what the server asks and notices what it tells.
export class User {
  answers = []; // to elicitations, in turn
  questions = []; // of all kinds, as params
  reply = "yes"; // of the model
  roots = [{ uri: "file:///home/ada", name: "home" }, { uri: "file:///srv" }];
  #told = {}; // of each kind: what came and nobody took
  #waiting = {}; // of each kind: who waits for it

  elicit(params) {
    this.questions.push(params);
    return this.answers.shift() ?? { action: "cancel" };
  }

  sample(params) {
    this.questions.push(params);
    return { role: "assistant", model: "oracle", content: { type: "text", text: this.reply }, stopReason: "endTurn" };
  }

  // tell notes that something of a kind came: log, updated, tools, prompts, resources.
  tell(kind, what) {
    const waiting = (this.#waiting[kind] ??= []).shift();
    if (waiting) waiting(what);
    else (this.#told[kind] ??= []).push(what);
  }

  // next takes what came first of a kind, or waits for it.
  next(kind) {
    const told = (this.#told[kind] ??= []);
    if (told.length > 0) return Promise.resolve(told.shift());
    return new Promise((resolve) => (this.#waiting[kind] ??= []).push(resolve));
  }

  // forget forgets what came so far.
  forget() {
    this.#told = {};
    this.questions = [];
    this.answers = [];
  }
}

// all collects the items of a list, page by page. pages is how many there were:
// one for the client that joins them by itself.
export async function all(list, key) {
  const items = [];
  let pages = 0;
  let cursor;
  do {
    const page = await list(cursor === undefined ? undefined : { cursor });
    assert.ok(page[key].length <= 3 || page.nextCursor === undefined, "a page has more than three items");
    items.push(...page[key]);
    pages++;
    cursor = page.nextCursor;
  } while (cursor !== undefined);
  return { items, pages };
}

export const names = (items, by = "name") => items.map((item) => item[by]).sort();

export function text(result) {
  assert.equal(result.content?.[0]?.type, "text", "no text in " + JSON.stringify(result));
  return result.content[0].text;
}
