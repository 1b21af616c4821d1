(prefix => {
	"use strict";
	// What a host tells is a message of its window alone; child frames and other
	// windows can post here, too. Its origin is unknown, so that "*" has to do for
	// what is sent: the host has the tool's result already.
	const host = parent, root = document.documentElement;
	const waiting = new Map(), heard = new Map(), last = new Map();
	let context = {}, ids = 0, open = false, ended = host === self, observer, size = "";

	const post = message => { if (!ended) host.postMessage({ jsonrpc: "2.0", ...message }, "*"); };
	const send = (method, params) => new Promise((resolve, reject) => {
		if (ended) throw new Error(`${method}: the view has no host, or its host has ended it`);
		waiting.set(++ids, { resolve, reject });
		post({ id: ids, method, params });
	});
	const ready = send("ui/initialize", {
		protocolVersion: "2026-01-26",
		appInfo: { name: document.title || "view", version: "1" },
		appCapabilities: { availableDisplayModes: ["inline"] },
	}).then(result => {
		open = true;
		adopt(result.hostContext);
		post({ method: "ui/notifications/initialized" });
		if (document.readyState === "loading") addEventListener("DOMContentLoaded", observe);
		else observe();
		return context;
	});
	ready.catch(() => {}); // who asks for it hears of it
	const request = (method, params = {}) => ready.then(() => send(method, params));

	// tell hands what came to those who listen, and keeps it for those who come later.
	const tell = (name, value) => {
		last.set(name, value);
		return Promise.allSettled((heard.get(name) || []).map(async fn => {
			try { await fn(value); } catch (error) { reportError(error); }
		}));
	};
	const adopt = changes => {
		context = { ...context, ...changes };
		const { theme, styles } = context;
		if (theme === "light" || theme === "dark") root.dataset.theme = root.style.colorScheme = theme;
		for (const [name, value] of Object.entries(styles?.variables || {}))
			if (name.startsWith("--") && typeof value === "string") root.style.setProperty(name, value);
		tell("context", context);
	};
	const observe = () => {
		if (ended) return;
		observer = new ResizeObserver(() => {
			const before = root.style.height;
			root.style.height = "max-content"; // what there is, however high the frame
			const height = Math.ceil(root.getBoundingClientRect().height);
			root.style.height = before;
			if (size !== (size = `${innerWidth} ${height}`)) post({ method: "ui/notifications/size-changed", params: { width: innerWidth, height } });
		});
		observer.observe(root);
		observer.observe(document.body);
	};
	const end = () => {
		ended = true;
		removeEventListener("message", hear);
		observer?.disconnect();
		for (const { reject } of waiting.values()) reject(new Error("the host has ended the view"));
		waiting.clear();
	};
	const hear = ({ source, data }) => {
		if (source !== host || data?.jsonrpc !== "2.0") return;
		const { id, method, params, result, error } = data;
		if (method === undefined) {
			const asked = waiting.get(id);
			waiting.delete(id);
			if (error) asked?.reject(Object.assign(new Error(error.message), { code: error.code }));
			else asked?.resolve(result);
		} else if (!open) {
			return;
		} else if (id === undefined) {
			const name = /^ui\/notifications\/(tool-(?:input|input-partial|result|cancelled)|host-context-changed)$/.exec(method)?.[1];
			if (name === "host-context-changed") adopt(params);
			else if (name) tell(name, params);
		} else if (method === "ping") {
			post({ id, result: {} });
		} else if (method === "ui/resource-teardown") {
			tell("teardown", params).then(() => { post({ id, result: {} }); end(); });
		} else {
			post({ id, error: { code: -32601, message: "the view has no method " + method } });
		}
	};
	addEventListener("message", hear);

	self.talaria = Object.freeze({
		ready,
		request,
		on(name, fn) {
			heard.set(name, [...heard.get(name) || [], fn]);
			if (last.has(name)) queueMicrotask(() => fn(last.get(name)));
		},
		callTool: (name, args = {}) => request("tools/call", { name: prefix + name, arguments: args }),
	});
})
