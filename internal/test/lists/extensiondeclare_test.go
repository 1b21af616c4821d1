package lists_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// extensionsServer declares extensions for every revision, and one that is for
// 2026-07-28 alone; its tools tell what the client has declared.
func extensionsServer(t *testing.T) *mcp.Server {
	s := harness.Fixture(t, &mcp.Options{
		Instructions: "Use the tools.",
		Discover: func(_ *mcp.Frame, d *mcp.Discovery) {
			d.Capabilities.Extensions[wire.TasksExtension] = struct{}{} // of a table that is the same for every client
		},
	})
	child := mcp.NewServer(mcp.Info{Name: "child", Version: "1"}, &mcp.Options{
		Filter: func(*mcp.Frame, mcp.Kind, string) bool { return false },
	})
	child.MustAdd(mcp.Extension("com.example/empty", nil))
	if err := s.Mount("child", child); err != nil {
		t.Fatal(err)
	}
	s.MustAdd(
		mcp.Extension("io.modelcontextprotocol/ui", struct{}{}),
		mcp.Extension("com.example/conformance", json.RawMessage(`{"nested":{"enabled":true,"limit":3},"values":["b",4]}`)),
		mcp.Tool("task", func(*mcp.Frame, struct{}) (string, error) { return "done", nil }, mcp.AsTask(nil)),
		mcp.Tool("extensions", func(f *mcp.Frame, _ struct{}) (string, error) {
			text, err := json.Marshal(f.ClientCapabilities().Extensions)
			return string(text), err
		}, mcp.Meta("ui", map[string]string{"resourceUri": "ui://example/view"})),
	)
	return s
}

const clientExtensions = `{"com.example/client":{"deep":{"list":[1,null,{"a":"b"}]}},"io.modelcontextprotocol/tasks":{},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`

// The answer to initialize, and to server/discover, of each revision: both
// sides' extensions are told in all of them but for tasks, which only
// 2026-07-28 has, and so is the _meta of tools.
func TestHello(t *testing.T) {
	for rev := protocol.V20241105; rev <= protocol.Latest; rev++ {
		for _, transport := range harness.TransportsOf(rev) {
			t.Run(rev.String()+"/"+transport.Name, func(t *testing.T) {
				c := transport.Open(t, extensionsServer(t), rev)
				meta := fmt.Sprintf(`"_meta":{"io.modelcontextprotocol/protocolVersion":%q,"io.modelcontextprotocol/clientCapabilities":{"extensions":%s}}`, rev, clientExtensions)
				if !rev.Modern() {
					meta = `"_meta":{}`
				}
				ask := func(id int, method, params string) []byte {
					heard := c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, id, method, params))
					var answer struct{ Result json.RawMessage }
					if err := json.Unmarshal([]byte(heard[len(heard)-1]), &answer); err != nil || answer.Result == nil {
						t.Fatalf("%s: %q, %v", method, heard, err)
					}
					return answer.Result
				}
				var hello []byte
				if rev.Modern() {
					hello = ask(1, "server/discover", meta)
				} else {
					hello = ask(1, "initialize", fmt.Sprintf(`"protocolVersion":%q,"capabilities":{"extensions":%s},"clientInfo":{"name":"golden","version":"1"}`, rev, clientExtensions))
					c.Say(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)
				}
				var text bytes.Buffer
				if err := json.Indent(&text, hello, "", "  "); err != nil {
					t.Fatal(err)
				}
				text.WriteByte('\n')
				golden(t, "../../../testdata/hello/"+rev.String()+".json", text.Bytes())

				var list struct {
					Tools []struct {
						Name string
						Meta json.RawMessage `json:"_meta"`
					}
				}
				if err := json.Unmarshal(ask(2, "tools/list", meta), &list); err != nil {
					t.Fatal(err)
				}
				for _, tool := range list.Tools {
					if tool.Name == "extensions" && string(tool.Meta) != `{"ui":{"resourceUri":"ui://example/view"}}` {
						t.Errorf("the tool's _meta is %s", tool.Meta)
					}
				}
				var result struct{ Content []struct{ Text string } }
				if err := json.Unmarshal(ask(3, "tools/call", `"name":"extensions",`+meta), &result); err != nil {
					t.Fatal(err)
				}
				want := clientExtensions
				if !rev.Modern() {
					want = `{"com.example/client":{"deep":{"list":[1,null,{"a":"b"}]}},"io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}}`
				}
				if result.Content[0].Text != want {
					t.Errorf("the client's extensions arrived as %s", result.Content[0].Text)
				}
			})
		}
	}
}

// golden compares got with the file at path, or writes it.
func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *harness.Update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (go test -run %s -update writes it)", err, t.Name())
	}
	if diff := harness.FirstDifference(string(want), string(got)); diff != "" {
		t.Error(diff)
	}
}
