// Package app lets a server offer views: pages that hosts show to their users for the
// results of tools, by the extension io.modelcontextprotocol/ui (MCP Apps, SEP-1865).
//
//	//go:embed chart.html
//	var page string
//
//	s.MustAdd(
//		app.View("ui://charts/bars", page, nil),
//		mcp.Tool("draw", draw, app.Show("ui://charts/bars"),
//			mcp.Text(func(out Chart) string { return out.Title })),
//	)
//
// A view is one HTML document without anything from elsewhere, unless [ViewOptions]
// names where from. The host shows it in a frame of its own, hands it the arguments
// and the result of the call by messages, and passes on what it asks for, such as
// calls of tools. Where the page has
//
//	<script src="talaria-app.js"></script>
//
// a small script takes its place that speaks with the host. It offers the page
// an object, talaria:
//
//   - talaria.on(name, fn) calls fn with each event of the host: "tool-input" (with
//     arguments), "tool-input-partial", "tool-result" (a result of tools/call),
//     "tool-cancelled", "context" (what is known of the host, whenever that changes)
//     and "teardown", whose promise delays the end of the view. A function that is
//     added later receives the last event.
//   - talaria.callTool(name, arguments) calls a tool of the same server, by the name
//     that it has there, and returns a promise of the result. Where the server is
//     mounted, the prefix is added.
//   - talaria.request(method, params) sends any other request that hosts take:
//     resources/read, ui/open-link, ui/message, ui/update-model-context.
//   - talaria.ready is a promise of what is known of the host.
//
// The script accepts messages of the host only, sets the host's theme and style
// variables on the root element, reports the height of the page, and answers ping. A
// page may have another script in its place.
//
// Tools have to make sense without a view: most hosts show none, and models see none.
// Results are the same whether a client shows views or not.
package app
