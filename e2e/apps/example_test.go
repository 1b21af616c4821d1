package apps

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// forged are messages that a host could have sent, of which the view must take none
// from elsewhere.
func forged() []any {
	lie := map[string]any{"structuredContent": map[string]any{"title": "Forged", "bars": []any{map[string]any{"label": "Forged", "value": 1}}}}
	all := []any{
		map[string]any{"jsonrpc": "2.0", "method": "ui/notifications/tool-result", "params": lie},
		map[string]any{"jsonrpc": "2.0", "method": "ui/notifications/host-context-changed", "params": map[string]any{"theme": "light", "styles": map[string]any{"variables": map[string]any{"--color-text-primary": "red"}}}},
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ui/resource-teardown", "params": map[string]any{}},
		map[string]any{"jsonrpc": "2.0", "id": 1, "method": "ping"},
	}
	for id := range 10 {
		all = append(all, map[string]any{"jsonrpc": "2.0", "id": id, "result": lie})
	}
	return all
}

// childFrame is a frame within the view that forges messages for as long as it is
// there, from before the view has heard of its host.
func childFrame(t testing.TB) string {
	text, err := json.Marshal(forged())
	if err != nil {
		t.Fatal(err)
	}
	script := `<script>setInterval(() => { for (const m of ` + string(text) + `) parent.postMessage(m, "*"); }, 1);</script>`
	return `<iframe hidden srcdoc='` + script + `'></iframe>`
}

// example builds cmd/example, with a line of its source that is another for the
// build: where PREFIX is set, it is mounted into another server below that.
func example(t *testing.T) string {
	dir, err := filepath.Abs("../../cmd/example")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(dir, "main.go"))
	if err != nil {
		t.Fatal(err)
	}
	const line = "s := bench.server(&logger)"
	if !strings.Contains(string(source), line) {
		t.Fatalf("main.go has no line %s", line)
	}
	replaced := map[string]string{
		"main.go": strings.Replace(string(source), line, "s := mounted(bench.server(&logger))", 1),
		"mounted.go": `package main

import (
	"os"

	"github.com/talaria-go/mcp"
)

func mounted(child *mcp.Server) *mcp.Server {
	prefix := os.Getenv("PREFIX")
	if prefix == "" {
		return child
	}
	s := mcp.NewServer(mcp.Info{Name: "outer", Version: "1"}, nil)
	if err := s.Mount(prefix, child); err != nil {
		panic(err)
	}
	return s
}
`}
	temp := t.TempDir()
	overlay := map[string]string{}
	for name, text := range replaced {
		own := filepath.Join(temp, name)
		if err := os.WriteFile(own, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		overlay[filepath.Join(dir, name)] = own
	}
	text, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	name, program := filepath.Join(temp, "overlay.json"), filepath.Join(temp, "example")
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, "-overlay", name, ".")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOWORK=off")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

// run starts the example, mounted if there is a prefix, and returns its address.
func run(t *testing.T, program, prefix string) string {
	dir := t.TempDir()
	cmd := exec.Command(program, "-http", "127.0.0.1:0", "-notes", filepath.Join(dir, "notes.json"), "-events", filepath.Join(dir, "events.json"), "-files", dir)
	cmd.Env = append(os.Environ(), "PREFIX="+prefix)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if at := strings.Index(lines.Text(), "http://127.0.0.1:"); at >= 0 {
			return strings.Fields(lines.Text()[at:])[0]
		}
	}
	t.Fatal("the example printed no address")
	return ""
}

const sales = `{"title":"Sales","bars":[{"label":"North","value":1},{"label":"East","value":3},{"label":"South","value":2}]}`

// testExample: the official bridge drives the example, alone and mounted.
func testExample(t *testing.T, b *browser) {
	program := example(t)
	for name, prefix := range map[string]string{"alone": "", "mounted": "bench"} {
		b.serve("/"+name, run(t, program, prefix))
		tool := "draw_bar_chart"
		if prefix != "" {
			tool = prefix + "_" + tool
		}
		for _, revision := range []string{"2025-11-25", "2026-07-28"} {
			t.Run(name+" "+revision, func(t *testing.T) {
				defer b.within(t)()
				drive(b, "/"+name, revision, tool)
			})
		}
	}
}

// drive lets the view do all that it can, while others forge messages.
func drive(b *browser, path, revision, tool string) {
	var hello struct {
		Revision  string
		Extension map[string]any
	}
	b.job("connect", map[string]any{"url": path, "revision": revision, "ui": true}, &hello)
	if hello.Revision != revision || hello.Extension == nil {
		b.t.Errorf("connected with %+v", hello)
	}
	var result struct {
		Content    []string
		Structured bool
	}
	early := forged()[2]                                                                                           // an end before the beginning: the view would not go on
	b.job("show", map[string]any{"tool": tool, "arguments": json.RawMessage(sales), "toolInfo": revision > "2026", // which hosts may leave out
		"append": childFrame(b.t), "early": early}, &result)
	if fmt.Sprint(result.Content) != "[text image]" || !result.Structured {
		b.t.Errorf("the result has %+v", result)
	}
	b.until("North1East3South2", "text", "#bars")
	b.until("Sales", "text", "#title")

	// What the page calls is the tool of its own server, also below a prefix.
	b.probe("click", "#sort")
	b.until("East3South2North1", "text", "#bars")
	var seen struct {
		Sizes [][2]float64
		Calls []string
	}
	b.job("seen", nil, &seen)
	if fmt.Sprint(seen.Calls) != "["+tool+"]" {
		b.t.Errorf("the view called %v", seen.Calls)
	}

	// The host hears how high the page is.
	height := b.probe("height")
	if len(seen.Sizes) == 0 || fmt.Sprint(seen.Sizes[len(seen.Sizes)-1][1]) != height || seen.Sizes[0][0] != 600 {
		b.t.Errorf("the host heard of %v, and the page has a height of %s", seen.Sizes, height)
	}

	// Theme and variables are the host's, and follow it.
	for _, look := range []struct{ theme, color string }{{"dark", "rgb(1, 2, 3)"}, {"light", "rgb(4, 5, 6)"}} {
		if look.theme == "light" {
			b.job("context", map[string]any{"context": map[string]any{"theme": "light", "styles": map[string]any{"variables": map[string]string{"--color-text-primary": look.color}}}}, nil)
		}
		b.until(look.theme, "attribute", "html", "data-theme")
		b.until(look.color, "style", "h3", "color")
	}
	b.job("ping", nil, nil)

	// Another window changes nothing, and neither did the frame within the view, all the
	// time.
	b.job("forge", map[string]any{"messages": forged()}, nil)
	b.job("ping", nil, nil)
	b.until("East3South2North1", "text", "#bars")
	b.until("Sales", "text", "#title")
	b.until("light", "attribute", "html", "data-theme")

	// The view ends when the host says so, and hears nothing from then on.
	b.job("teardown", nil, nil)
	b.probe("post", forged()[0])
	b.probe("click", "#sort")
	b.until("tools/call: the view has no host, or its host has ended it", "text", "#problem")
	b.until("Sales", "text", "#title")
}
