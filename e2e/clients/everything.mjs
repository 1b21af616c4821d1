// The checks of the server of e2e/programs.
import assert from "node:assert/strict";
import { all, check, names, text } from "./harness.mjs";

export async function everything(session, user) {
  session.tool = (name, args = {}, options) => session.call({ name, arguments: args }, options);
  await check("knows the server", async () => {
    assert.equal(session.client.getServerVersion().name, "talaria-e2e");
    assert.equal(session.client.getInstructions(), "Try everything.");
    const { tools, prompts, resources, completions } = session.client.getServerCapabilities();
    assert.ok(tools.listChanged && prompts.listChanged && resources.listChanged && resources.subscribe);
    assert.equal(completions !== undefined, session.revision >= "2025-03-26");
  });
  await lists(session);
  await tools(session);
  await resources(session);
  await prompts(session);
  await questions(session, user);
  await running(session, user);
  if (session.tasks) await tasks(session, user);
  await changes(session, user);
  await check("answers to the end", async () => {
    if (session.revision < "2026") await session.client.ping();
    assert.equal(text(await session.tool("greet", { name: "Bob" })), "Hello, Bob!");
  });
}

const toolNames = [
  "ask_model", "ask_profile", "ask_roots", "ask_topics", "ask_twice", "ask_visit", "cancelled", "count", "crash", "errand", "fail",
  "greet", "grow", "hang_up", "log", "media", "release", "shrink", "touch", "wait", "where",
];

async function lists({ client, joinsPages, revision }) {
  const list = async (method, key, by, wanted) => {
    const { items, pages } = await all((p) => client[method](p), key);
    assert.deepEqual(names(items, by), wanted);
    assert.equal(pages, joinsPages ? 1 : Math.ceil(wanted.length / 3));
    return Object.fromEntries(items.map((item) => [item[by], item]));
  };
  await check("lists tools", async () => {
    const { count, greet } = await list("listTools", "tools", "name", toolNames);
    assert.equal(greet.description, "Greets somebody");
    assert.deepEqual(greet.inputSchema.required, ["name"]);
    assert.equal(greet.inputSchema.properties.name.maxLength, 40);
    if (revision >= "2025-03-26") assert.equal(greet.annotations.readOnlyHint, true);
    if (revision >= "2025-06-18") assert.equal(greet.title, "Greet");
    if (revision >= "2025-06-18") assert.equal(count.outputSchema.properties.letters.type, "integer");
  });
  await check("lists resources", async () => {
    const wanted = ["e2e://blob", "e2e://reads", "e2e://text", "e2e://watched/1", "e2e://watched/2"];
    const found = await list("listResources", "resources", "uri", wanted);
    assert.equal(found["e2e://blob"].mimeType, "image/gif");
  });
  await check("lists resource templates", () =>
    list("listResourceTemplates", "resourceTemplates", "uriTemplate", ["e2e://numbers/{n}", "e2e://words/{word}"]));
  await check("lists prompts", async () => {
    const { letter } = await list("listPrompts", "prompts", "name", ["describe", "introduce", "letter", "plain"]);
    assert.deepEqual(letter.arguments.map(({ name, required }) => [name, Boolean(required)]), [
      ["country", true], ["city", true], ["tone", false],
    ]);
  });
}

async function tools({ client, tool, revision, kind }) {
  await check("calls a tool", async () => assert.equal(text(await tool("greet", { name: "Ada" })), "Hello, Ada!"));
  await check("calls a tool with structured content", async () => {
    const result = await tool("count", { text: "größer als 7" });
    const wanted = { letters: 12, words: ["größer", "als", "7"] };
    assert.deepEqual(JSON.parse(text(result)), wanted);
    if (revision >= "2025-06-18") assert.deepEqual(result.structuredContent, wanted);
  });
  await check("receives every type of content", async () => {
    const { content } = await tool("media");
    const types = ["text", "image", revision >= "2025-03-26" ? "audio" : "text", "resource", revision >= "2025-06-18" ? "resource_link" : "text"];
    assert.deepEqual(content.map(({ type }) => type), types);
    assert.equal(Buffer.from(content[1].data, "base64").toString("latin1", 0, 6), "GIF89a");
    assert.equal(content[3].resource.text, "Inside");
    assert.match(JSON.stringify(content[4]), /e2e:\/\/text/);
  });
  await check("calls a tool with wrong arguments", async () => {
    const result = await tool("greet", { name: "x".repeat(41) });
    assert.equal(result.isError, true);
    assert.match(text(result), /name/);
  });
  await check("calls a tool that fails", async () => {
    const result = await tool("fail");
    assert.equal(result.isError, true);
    assert.match(text(result), /this tool fails always/);
  });
  await check("survives a tool that panics", async () => {
    await assert.rejects(tool("crash"), (error) => error.code === -32603 && !/always/.test(error.message));
    assert.equal(text(await tool("greet", { name: "Eve" })), "Hello, Eve!");
  });
  await check("calls a tool that is not there", () => assert.rejects(tool("no_such_tool"), { code: -32602 }));
  await check("calls fifty tools at once", async () => {
    const labels = Array.from({ length: 50 }, (_, i) => "n" + i);
    const results = await Promise.all(labels.map((name) => tool("greet", { name })));
    assert.deepEqual(results.map(text), labels.map((name) => `Hello, ${name}!`));
  });
  await check("repeats an argument in a header, where that is the rule", async () => {
    const header = kind === "http" && revision >= "2026" ? "north" : "";
    assert.equal(text(await tool("where", { region: "north" })), `north in the arguments, ${header} in the header`);
  });
  await check("is refused what it does not know", () =>
    assert.rejects(client.getPrompt({ name: "no_such_prompt" }), { code: -32602 }));
}

async function resources({ client, notFound, keeps }) {
  const read = async (uri, options) => (await client.readResource({ uri }, options)).contents[0];
  await check("reads a text", async () => {
    assert.deepEqual(await read("e2e://text"), { uri: "e2e://text", mimeType: "text/plain", text: "A text." });
  });
  await check("reads a blob", async () => {
    const { blob, mimeType } = await read("e2e://blob");
    assert.equal(mimeType, "image/gif");
    assert.equal(Buffer.from(blob, "base64").toString("latin1", 0, 6), "GIF89a");
  });
  await check("reads through templates", async () => {
    assert.deepEqual(JSON.parse((await read("e2e://words/hi")).text), { word: "hi", shouted: "HI" });
    assert.equal((await read("e2e://numbers/12")).text, "144");
  });
  await check("reads a resource that is not there", () =>
    assert.rejects(read("e2e://nothing"), { code: notFound, data: { uri: "e2e://nothing" } }));
  await check("keeps what it may keep", async () => {
    const [first, second] = [await read("e2e://reads"), await read("e2e://reads")];
    const fresh = await read("e2e://reads", { cacheMode: "refresh" });
    assert.equal(second.text - first.text, keeps ? 0 : 1);
    assert.equal(fresh.text - second.text, 1);
  });
  await check("completes a variable of a template", async () => {
    const { completion } = await client.complete({
      ref: { type: "ref/resource", uri: "e2e://words/{word}" }, argument: { name: "word", value: "alp" },
    });
    assert.deepEqual(completion.values, ["alpha", "alphabet"]);
  });
}

async function prompts({ client, revision }) {
  await check("gets a prompt", async () => {
    const { description, messages } = await client.getPrompt({
      name: "letter", arguments: { country: "France", city: "Lyon", tone: "funny" },
    });
    assert.equal(description, "Wants a letter");
    assert.deepEqual(messages.map(({ role, content }) => [role, content.text]), [
      ["user", "Write a funny letter to Lyon in France."], ["assistant", "Gladly."],
    ]);
  });
  await check("gets a prompt with an image", async () => {
    const { messages } = await client.getPrompt({ name: "describe" });
    assert.deepEqual(messages.map(({ content }) => content.type), ["image", "text"]);
  });
  await check("gets a prompt with arguments missing", () =>
    assert.rejects(client.getPrompt({ name: "letter", arguments: { country: "France" } }), (error) =>
      error.code === -32602 && /city/.test(error.message)));
  const complete = async (name, value, context) => {
    const params = { ref: { type: "ref/prompt", name: "letter" }, argument: { name, value }, ...context };
    return (await client.complete(params)).completion.values;
  };
  await check("completes an argument", async () => {
    assert.deepEqual(await complete("tone", "f"), ["formal", "friendly", "funny"]);
    assert.deepEqual(await complete("city", "os"), ["Oslo"]);
  });
  if (revision >= "2025-06-18") {
    await check("completes an argument by another", async () => {
      assert.deepEqual(await complete("city", "", { context: { arguments: { country: "France" } } }), ["Paris", "Lyon"]);
    });
  }
}

async function questions({ client, tool, revision }, user) {
  await check("is asked for a sample of its model", async () => {
    user.forget();
    user.reply = "Blue.";
    assert.equal(text(await tool("ask_model", { text: "Which colour is the sky?" })), "oracle says: Blue.");
    assert.equal(user.questions.length, 1);
    assert.equal(user.questions[0].maxTokens, 50);
    assert.equal([user.questions[0].messages[0].content].flat()[0].text, "Which colour is the sky?");
  });
  await check("is asked for its roots", async () => {
    assert.equal(text(await tool("ask_roots")), "file:///home/ada file:///srv");
  });
  if (revision < "2025-06-18") return; // there are no elicitations yet

  const profile = { name: "Ada", age: 36, plan: "paid", news: true };
  await check("answers an elicitation", async () => {
    user.forget();
    user.answers = [{ action: "accept", content: profile }];
    assert.equal(text(await tool("ask_profile")), "accept Ada 36 paid true");
    assert.equal(user.questions.length, 1);
    const [{ message, requestedSchema }] = user.questions;
    assert.equal(message, "Who are you?");
    assert.deepEqual(requestedSchema.required, ["name", "age"]);
    const { age, plan } = requestedSchema.properties;
    assert.deepEqual([age.type, age.minimum, age.maximum], ["integer", 0, 150]);
    assert.deepEqual([plan.type, plan.enum], ["string", ["free", "paid"]]);
    if (revision >= "2025-11-25") assert.equal(plan.default, "free");
  });
  await check("declines and cancels an elicitation", async () => {
    for (const action of ["decline", "cancel"]) {
      user.answers = [{ action }];
      assert.match(text(await tool("ask_profile")), new RegExp("^" + action));
    }
  });
  await check("is asked in several rounds", async () => {
    user.forget();
    user.answers = [{ action: "accept", content: { name: "Ada" } }, { action: "accept", content: { name: "Bob" } }];
    assert.equal(text(await tool("ask_twice")), "Ada and Bob");
    assert.deepEqual(user.questions.map(({ message }) => message), ["The first name?", "The second name, after Ada?"]);
  });
  await check("is asked by a prompt", async () => {
    user.answers = [{ action: "accept", content: { name: "Grace" } }];
    const { messages } = await client.getPrompt({ name: "introduce" });
    assert.equal(messages[0].content.text, "Introduce Grace.");
  });
  if (revision >= "2025-11-25") {
    await check("chooses several of a list", async () => {
      user.answers = [{ action: "accept", content: { topics: ["go", "zig"] } }];
      assert.equal(text(await tool("ask_topics")), "go and zig");
    });
    await check("is sent to a web page", async () => {
      user.forget();
      user.answers = [{ action: "accept" }];
      assert.equal(text(await tool("ask_visit")), "visit: accept");
      assert.equal(user.questions[0].mode, "url");
      assert.equal(user.questions[0].url, "https://example.com/sign-in");
    });
  }
}

async function running({ client, tool, call, revision, kind }, user) {
  await check("hears of progress while the call runs", async () => {
    const told = [];
    const result = await tool("wait", { key: "progress" }, {
      onprogress: (progress) => {
        told.push(progress);
        tool("release", { key: "progress" });
      },
    });
    assert.equal(text(result), "progress was released");
    assert.deepEqual(told.map(({ progress, total }) => [progress, total]), [[1, 2]]);
    if (revision >= "2025-03-26") assert.equal(told[0].message, "waiting");
  });
  await check("cancels a call", async () => {
    const cancelled = async () => Number(text(await tool("cancelled")));
    const before = await cancelled();
    const abort = new AbortController();
    const options = { signal: abort.signal, onprogress: () => abort.abort("enough") };
    await assert.rejects(tool("wait", { key: "cancel" }, options), (error) => {
      assert.doesNotMatch(error.message, /no way to cancel/); // as stranger.mjs may hear
      return true;
    });
    while ((await cancelled()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await cancelled(), before + 1);
  });
  await check("hears what is logged, from its level on", async () => {
    user.forget();
    const _meta = revision >= "2026" ? { "io.modelcontextprotocol/logLevel": "warning" } : undefined;
    if (!_meta) await client.setLoggingLevel("warning");
    await call({ name: "log", arguments: {}, _meta });
    assert.deepEqual(await user.next("log"), { level: "error", logger: "e2e", data: "All is lost" });
  });
  await check("loses its connection and comes back, where that is possible", async () => {
    const possible = kind === "http" && revision === "2025-11-25";
    assert.equal(text(await tool("hang_up")), possible ? "the client came back" : "the connection stays");
  });
}

// tasks uses the extension io.modelcontextprotocol/tasks, which some clients have.
async function tasks({ tool, tasks }, user) {
  const start = (end, key) => tasks.start({ name: "errand", arguments: { end, key } });
  const until = async (taskId, wanted) => {
    for (;;) {
      const task = await tasks.get({ taskId });
      assert.equal(task.taskId, taskId);
      if (wanted(task)) return task;
      await new Promise((resolve) => setTimeout(resolve, task.pollIntervalMs));
    }
  };
  const ended = (taskId) => until(taskId, ({ status }) => ["completed", "failed", "cancelled"].includes(status));
  const cancelled = async () => Number(text(await tool("cancelled")));

  await check("starts a task, sees it wait, and gets its result", async () => {
    const { taskId, status, ttlMs, pollIntervalMs } = await start("wait", "task");
    assert.deepEqual([status, ttlMs, pollIntervalMs], ["working", 60_000, 20]);
    const waiting = await until(taskId, ({ statusMessage }) => statusMessage);
    assert.deepEqual([waiting.status, waiting.statusMessage], ["working", "waiting"]);
    assert.equal(text(await tool("release", { key: "task" })), "released task");
    const end = await ended(taskId);
    assert.deepEqual([end.status, text(end.result)], ["completed", "task was released"]);
  });
  await check("starts tasks that fail", async () => {
    const failed = await ended((await start("fail")).taskId);
    assert.deepEqual([failed.status, failed.result.isError], ["completed", true]);
    assert.match(text(failed.result), /this errand fails always/);
    const crashed = await ended((await start("crash")).taskId);
    assert.deepEqual([crashed.status, crashed.error.code], ["failed", -32603]);
    assert.doesNotMatch(crashed.error.message, /always/);
  });
  await check("answers what a task asks", async () => {
    user.forget();
    user.answers = [{ action: "accept", content: { name: "Ada" } }];
    const { taskId } = await start("ask");
    const { inputRequests } = await until(taskId, ({ status }) => status === "input_required");
    const [[key, { method, params }]] = Object.entries(inputRequests);
    assert.deepEqual([method, params.message], ["elicitation/create", "Who runs this errand?"]);
    await tasks.update({ taskId, inputResponses: { [key]: user.elicit(params) } });
    const end = await ended(taskId);
    assert.deepEqual([end.status, text(end.result)], ["completed", "accept Ada"]);
  });
  await check("cancels a task", async () => {
    const before = await cancelled();
    const { taskId } = await start("wait", "cancelled task");
    await until(taskId, ({ statusMessage }) => statusMessage);
    await tasks.cancel({ taskId });
    assert.equal((await ended(taskId)).status, "cancelled");
    while ((await cancelled()) === before) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(await cancelled(), before + 1);
  });
  await check("asks for a task that is not there", () => assert.rejects(tasks.get({ taskId: "nothing" }), { code: -32602 }));
  if (!tasks.driven) return;

  await check("waits for the result of a call that becomes a task", async () => {
    const call = tool("errand", { end: "wait", key: "driven" });
    while ((await tool("release", { key: "driven" })).isError) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.equal(text(await call), "driven was released");
    user.forget();
    user.answers = [{ action: "accept", content: { name: "Bob" } }];
    assert.equal(text(await tool("errand", { end: "ask" })), "accept Bob");
  });
}

async function changes({ client, tool, watch, watchLists, kind }, user) {
  await check("subscribes to a resource and unsubscribes", async () => {
    user.forget();
    // Names of its own: replicas tell who subscribes of what others have just changed.
    const [first, second] = ["first", "second"].map((name) => `e2e://words/${name}-${process.pid}`);
    const stop = await watch(first);
    await tool("touch", { uri: second });
    await tool("touch", { uri: first });
    assert.equal(await user.next("updated"), first);
    const stopSecond = await watch(second);
    await stop();
    await new Promise((resolve) => setTimeout(resolve, 50)); // where there are replicas, the others hear of it
    await tool("touch", { uri: first });
    await tool("touch", { uri: second });
    assert.equal(await user.next("updated"), second);
    await stopSecond();
  });
  await check("hears that lists change", async () => {
    user.forget();
    const name = "new_in_" + kind;
    const heard = () => Promise.all(["tools", "prompts", "resources"].map((list) => user.next(list)));
    const listed = async () => names((await all((p) => client.listTools(p), "tools")).items);
    const stop = await watchLists();
    assert.equal(text(await tool("grow", { name })), "grown");
    await heard();
    assert.deepEqual(await listed(), [...toolNames, name].sort());
    assert.equal(text(await tool(name)), "I am new");
    assert.equal((await client.readResource({ uri: "e2e://new/" + name })).contents[0].text, "I am new");
    assert.equal(text(await tool("shrink", { name })), "3 removed");
    await heard();
    assert.deepEqual(await listed(), toolNames);
    await assert.rejects(tool(name), { code: -32602 });
    await stop();
  });
}
