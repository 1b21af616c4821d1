package apps

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// reaching is a page that tries to reach hosts in every way, and says when each try
// has come to its end. The forms have a frame of the host that they are sent to.
const reaching = `<!doctype html>
<body>
<script src="talaria-app.js"></script>
<script>
	const hosts = ["connect", "resources", "frames", "both", "none"].map(name => "https://" + name + (name === "none" ? ".example.org" : ".example.com"));
	const element = (name, members) => new Promise(resolve => {
		const made = Object.assign(document.createElement(name), members, { onload: resolve, onerror: resolve });
		document.body.append(made);
	});
	const ways = {
		fetch: host => fetch(host + "/fetch"),
		image: host => element("img", { src: host + "/image" }),
		script: host => element("script", { src: host + "/script" }),
		frame: host => element("iframe", { src: host + "/frame" }),
		form: host => new Promise(resolve => {
			const name = "to " + host, into = Object.assign(document.createElement("iframe"), { name });
			document.body.append(into);
			into.onload = resolve; // of what the form brings
			document.addEventListener("securitypolicyviolation", resolve);
			const form = Object.assign(document.createElement("form"), { action: host + "/form", method: "post", target: name });
			document.body.append(form);
			form.submit();
		}),
	};
	talaria.on("tool-result", async () => {
		for (const way of Object.values(ways)) for (const host of hosts) await way(host).catch(() => {});
		window.done = true;
	});
</script>
`

type none struct{}

// fixture is a server of this test's, with the views of reaching.
func fixture(t *testing.T) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "fixture", Version: "1"}, nil)
	done := func(context.Context, none) (string, error) { return "done", nil }
	yes := true
	s.MustAdd(
		app.View("ui://fixture/closed", reaching, nil),
		app.View("ui://fixture/open", reaching, &app.ViewOptions{
			Connect:   []string{"https://connect.example.com", "https://both.example.com"},
			Resources: []string{"https://resources.example.com"},
			Frames:    []string{"https://frames.example.com", "https://both.example.com"},
		}),
		app.View("ui://fixture/all", reaching, &app.ViewOptions{
			Title: "All", Connect: []string{"wss://*.example.com:8443"}, Resources: []string{"https://*.example.com"}, Frames: []string{"https://a.example.com"},
			Bases: []string{"https://a.example.com"}, Camera: true, Microphone: true, Geolocation: true, ClipboardWrite: true, Domain: "a.example.com", Border: &yes,
		}),
		mcp.Tool("closed", done, app.Show("ui://fixture/closed")),
		mcp.Tool("open", done, app.Show("ui://fixture/open")),
		mcp.Tool("refresh", done, app.ViewOnly()),
		mcp.Tool("reload", done, app.ViewOnly(), app.Show("ui://fixture/all")),
	)
	return s
}

// TestViews runs what needs a browser, with one.
func TestViews(t *testing.T) {
	b := newBrowser(t)
	web := httptest.NewServer(fixture(t).Handler())
	defer web.Close()
	b.serve("/fixture", web.URL)
	for name, test := range map[string]func(t *testing.T, b *browser){"example": testExample, "origins": testOrigins, "only": testOnly} {
		t.Run(name, func(t *testing.T) {
			defer b.within(t)()
			test(t, b)
		})
	}
}

// testOrigins: under the policy that a host makes of what is declared, declared
// origins are reached, each in its ways, and no others.
func testOrigins(t *testing.T, b *browser) {
	b.job("connect", map[string]any{"url": "/fixture", "revision": "2026-07-28", "ui": true}, nil)
	for tool, want := range map[string]string{
		"closed": "",
		"open": "fetch both.example.com, fetch connect.example.com, form both.example.com, frame both.example.com, frame frames.example.com, " +
			"image resources.example.com, script resources.example.com",
	} {
		b.job("show", map[string]any{"tool": tool, "arguments": none{}}, nil)
		b.until("true", "value", "done")
		if got := strings.Join(b.arrived.names(), ", "); got != want {
			t.Errorf("%s: reached %s, want %s", tool, got, want)
		}
	}
}

// testOnly: a tool for views is unknown to the official client that shows none, and
// is called by one that does.
func testOnly(t *testing.T, b *browser) {
	for _, revision := range []string{"2025-11-25", "2026-07-28"} {
		for _, ui := range []bool{false, true} {
			var hello struct{ Tools []string }
			b.job("connect", map[string]any{"url": "/fixture", "revision": revision, "ui": ui}, &hello)
			if slices.Contains(hello.Tools, "refresh") != ui || !slices.Contains(hello.Tools, "open") {
				t.Errorf("%s: tools %v", revision, hello.Tools)
			}
			var answers [2]struct {
				Code    int
				Message string
				Content []struct{ Text string }
			}
			b.job("call", map[string]any{"tool": "refresh", "arguments": none{}}, &answers[0])
			b.job("call", map[string]any{"tool": "refreshed", "arguments": none{}}, &answers[1])
			if ui && (len(answers[0].Content) != 1 || answers[0].Content[0].Text != "done") {
				t.Errorf("%s: got %+v", revision, answers[0])
			}
			answers[1].Message = strings.ReplaceAll(answers[1].Message, "refreshed", "refresh")
			if !ui && (answers[0].Code != -32602 || fmt.Sprint(answers[0]) != fmt.Sprint(answers[1])) {
				t.Errorf("%s: got %+v, and for no tool %+v", revision, answers[0], answers[1])
			}
		}
	}
}

// TestMeta: what servers say of tools and views is valid by the schema of the
// extension.
func TestMeta(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(modules(t), "@modelcontextprotocol/ext-apps/dist/src/generated/schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	document, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("schema.json", document); err != nil {
		t.Fatal(err)
	}
	checked := map[string]int{}
	check := func(definition string, meta any) {
		t.Helper()
		schema, err := compiler.Compile("schema.json#/$defs/" + definition)
		if err != nil {
			t.Fatal(err)
		}
		ui, err := json.Marshal(meta.(map[string]any)["ui"])
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(string(ui)))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %v", ui, err)
		}
		checked[definition]++
	}
	host := mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{
		"io.modelcontextprotocol/ui": json.RawMessage(`{"mimeTypes":["text/html;profile=mcp-app"]}`),
	}})
	c := mcptest.New(t, fixture(t), host)
	for _, tool := range c.Tools() {
		check("McpUiToolMeta", any(tool.Meta))
	}
	for _, r := range c.Resources() {
		if r.Meta == nil {
			continue
		}
		check("McpUiResourceMeta", any(r.Meta))
		check("McpUiResourceMeta", any(c.Read(r.URI)[0].Meta))
	}
	if checked["McpUiToolMeta"] != 4 || checked["McpUiResourceMeta"] != 4 {
		t.Errorf("checked %v", checked)
	}
}
