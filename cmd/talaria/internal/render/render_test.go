package render

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

func renderer(t *testing.T, terminal bool) (*Renderer, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	return &Renderer{Console: &console.Console{Out: &out, Err: &out, OutTerminal: terminal, NoColor: true}, Dir: t.TempDir()}, &out
}

// Names come from servers and must not lead anywhere.
func TestFileName(t *testing.T) {
	for _, test := range []struct{ name, mediaType, want string }{
		{"chart", "image/png", "chart.png"},
		{"chart.png", "image/png", "chart.png"},
		{"file:///a/b/photo.JPG", "image/jpeg", "photo.JPG"},
		{"notes.txt", "", "notes.txt"},
		{"notes.txt", "application/octet-stream", "notes.txt"},
		{"../../etc/passwd", "text/plain", "passwd.txt"},
		{`..\..\autoexec.bat`, "text/plain", "autoexec.bat.txt"},
		{"run.sh", "", "run.sh.bin"},
		{"run.sh", "application/x-sh", "run.sh.bin"},
		{"a.desktop", "application/octet-stream", "a.desktop.bin"},
		{"a.desktop", "application/x-desktop", "a.desktop.bin"},
		{"Setup.EXE", "application/x-msdownload", "Setup.EXE.bin"},
		{"x.png.lnk", "image/png", "x.png.lnk.png"},
		{"", "", "data.bin"},
		{"...", "nonsense", "data.bin"},
		{"a b\x00c\n", "audio/wav; x=1", "a_b_c.wav"},
		{".bashrc", "text/plain", "bashrc.txt"},
		{"https://example.com/x/y?z=/..", "image/webp", "data.webp"},
		{strings.Repeat("a", 300), "image/png", strings.Repeat("a", 80) + ".png"},
	} {
		stem, extension := fileName(test.name, test.mediaType)
		if got := stem + extension; got != test.want {
			t.Errorf("%q %q: got %q, want %q", test.name, test.mediaType, got, test.want)
		}
	}
}

func TestSaveOverwritesNothing(t *testing.T) {
	dir := t.TempDir()
	for i, want := range []string{"x.png", "x-2.png", "x-3.png"} {
		path, err := save(dir, "x", "image/png", []byte{byte(i)})
		if err != nil || filepath.Base(path) != want {
			t.Errorf("got %s, %v, want %s", path, err, want)
		}
	}
	if data, err := os.ReadFile(filepath.Join(dir, "x.png")); err != nil || !bytes.Equal(data, []byte{0}) {
		t.Errorf("got %v, %v", data, err)
	}
	if _, err := save(filepath.Join(dir, "none"), "x", "", nil); err == nil {
		t.Error("a directory that is not there was written to")
	}
}

func TestCall(t *testing.T) {
	text := func(s string) protocol.Content { return protocol.TextContent{Text: s} }
	for _, test := range []struct {
		name   string
		result client.CallToolResult
		want   string
	}{
		{"text", client.CallToolResult{Content: []protocol.Content{text("a"), text("b")}}, "a\nb\n"},
		{"a twin", client.CallToolResult{Content: []protocol.Content{text(`{ "x": 1 }`)}, Structured: json.RawMessage(`{"x":1}`)}, "{\n  \"x\": 1\n}\n"},
		{"both", client.CallToolResult{Content: []protocol.Content{text("one")}, Structured: json.RawMessage(`1`)}, "one\n1\n"},
		{"nothing", client.CallToolResult{}, "(the result is empty)\n"},
		{"unknown", client.CallToolResult{Content: []protocol.Content{text("one"), protocol.UnknownContent{Type: "vid\x1beo", Raw: json.RawMessage(`{"type":"vid\u001beo","data":[1]}`)}, text("two")}},
			"one\n(an item of the unknown type \"vid␛eo\")\n{\n  \"type\": \"vid\\u001beo\",\n  \"data\": [\n    1\n  ]\n}\ntwo\n"},
		{"a link", client.CallToolResult{Content: []protocol.Content{protocol.ResourceLink{URI: "a://b", Name: "n", MIMEType: "text/x"}}}, "a://b n, text/x\n"},
		{"escapes", client.CallToolResult{Content: []protocol.Content{text("\x1b[2Jgone\r\u202e")}}, "␛[2Jgone␍\ufffd\n"},
		{"a resource", client.CallToolResult{Content: []protocol.Content{protocol.EmbeddedResource{Resource: protocol.ResourceContents{URI: "a://b", Text: "inside"}}}}, "inside\n"},
	} {
		r, out := renderer(t, true)
		if err := r.Call("tool", &test.result); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.name, out.String(), err, test.want)
		}
	}
}

// What goes into a file or a pipe is left as it is.
func TestCallToPipe(t *testing.T) {
	r, out := renderer(t, false)
	if err := r.Call("tool", &client.CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: "\x1b[1mx"}}}); err != nil || out.String() != "\x1b[1mx\n" {
		t.Errorf("got %q, %v", out.String(), err)
	}
}

func TestMedia(t *testing.T) {
	r, out := renderer(t, false)
	err := r.Call("sing", &client.CallToolResult{Content: []protocol.Content{
		protocol.AudioContent{Data: []byte("la"), MIMEType: "audio/wav"},
		protocol.ImageContent{Data: make([]byte, 1500), MIMEType: "image/png"},
	}})
	want := "audio (audio/wav, 2 bytes) saved as " + filepath.Join(r.Dir, "sing.wav") + "\nimage (image/png, 1.5 kB) saved as " + filepath.Join(r.Dir, "sing.png") + "\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
	out.Reset()
	err = r.Read(&protocol.ReadResourceResult{Contents: []protocol.ResourceContents{{URI: "a://x/one.bin", Blob: []byte{1}}, {URI: "a://x/two", Text: "2"}}})
	want = "a://x/one.bin\ndata (1 byte) saved as " + filepath.Join(r.Dir, "one.bin") + "\na://x/two\n2\n"
	if err != nil || out.String() != want {
		t.Errorf("got %q, %v, want %q", out.String(), err, want)
	}
}

// What cannot be saved is an error, and the rest is shown.
func TestUnsaved(t *testing.T) {
	r, out := renderer(t, false)
	r.Dir = filepath.Join(r.Dir, "none")
	image := protocol.ImageContent{Data: []byte{1}, MIMEType: "image/png"}
	text := protocol.TextContent{Text: "seen"}
	for name, show := range map[string]func() error{
		"Call": func() error {
			return r.Call("draw", &client.CallToolResult{Content: []protocol.Content{image, text}, Structured: json.RawMessage(`1`)})
		},
		"Read": func() error {
			return r.Read(&protocol.ReadResourceResult{Contents: []protocol.ResourceContents{{URI: "a://b", Blob: []byte{1}}, {URI: "a://c", Text: "seen"}}})
		},
		"Prompt": func() error {
			return r.Prompt("p", &protocol.GetPromptResult{Messages: []protocol.PromptMessage{{Role: "user", Content: image}, {Role: "user", Content: text}}})
		},
	} {
		out.Reset()
		if err := show(); err == nil || !strings.Contains(err.Error(), "cannot be saved") || !strings.Contains(out.String(), "seen\n") {
			t.Errorf("%s: got %v and %q", name, err, out.String())
		}
	}
}

func TestTool(t *testing.T) {
	yes := true
	r, out := renderer(t, false)
	err := r.Tool(protocol.Tool{Name: "wipe\x1b", Title: "Wipe", Description: "wipes", Annotations: &protocol.ToolAnnotations{DestructiveHint: &yes},
		InputSchema: json.RawMessage(`{"required":["disk"],"properties":{"force":{"type":"boolean"},"disk":{"type":"string","description":"which one"}}}`)})
	want := `wipe␛  Wipe
  wipes
  it says that it may destroy

ARGUMENT	TAKES	DESCRIPTION
force	boolean, optional
disk	string	which one
`
	if err != nil || out.String() != want {
		t.Errorf("got\n%s%v, want\n%s", out.String(), err, want)
	}
	if got := Signature(protocol.Tool{InputSchema: json.RawMessage(`{"required":["b"],"properties":{"a":{},"b":{},"c":{},"d":{},"e":{},"f":{},"g":{},"h":{}}}`)}); got != "b [a] [c] [d] [e] [f] … 2 more" {
		t.Errorf("got %s", got)
	}
}

// Without a directory of the user's, pictures go into a new one for temporary files, all
// into the same.
func TestTemporary(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	r, out := renderer(t, false)
	r.Dir = ""
	image := protocol.ImageContent{Data: []byte{1}, MIMEType: "image/png"}
	if err := r.Call("draw", &client.CallToolResult{Content: []protocol.Content{image, image}}); err != nil {
		t.Fatal(err)
	}
	if filepath.Dir(r.Dir) != filepath.Clean(os.TempDir()) {
		t.Errorf("got %s", r.Dir)
	}
	for _, name := range []string{"draw.png", "draw-2.png"} {
		path := filepath.Join(r.Dir, name)
		if _, err := os.Stat(path); err != nil || !strings.Contains(out.String(), "saved as "+path+"\n") {
			t.Errorf("%v, and it said %s", err, out)
		}
	}
}
