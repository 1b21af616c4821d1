package spectest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// judge takes what is reported.
type judge struct {
	testing.TB
	reported []string
}

func (j *judge) Errorf(format string, args ...any) {
	j.reported = append(j.reported, fmt.Sprintf(format, args...))
}

const (
	hello   = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`
	welcome = `{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-03-26","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}`
	list    = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	modern  = `{"jsonrpc":"2.0","id":3,"method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// Each conversation is wrong in its last message, or nowhere.
func TestWatch(t *testing.T) {
	for _, test := range []struct {
		name, talk string // lines; > goes to the server
		want       string // in what is reported; "" for nothing
	}{
		{"a good one", ">" + hello + "\n<" + welcome + "\n>" + list + "\n" + `<{"jsonrpc":"2.0","id":2,"result":{"tools":[]}}`, ""},
		{"a result", ">" + hello + "\n<" + welcome + "\n>" + list + "\n" + `<{"jsonrpc":"2.0","id":2,"result":{"tools":{}}}`, "2025-03-26 ListToolsResult"},
		{"a batch", ">" + hello + "\n<" + welcome + "\n>[" + list + "]\n" + `<[{"jsonrpc":"2.0","id":2,"result":{}}]`, "2025-03-26 ListToolsResult"},
		{"a modern result", ">" + modern + "\n" + `<{"jsonrpc":"2.0","id":3,"result":{"tools":[]}}`, "2026-07-28 ListToolsResult"},
		{"a request of the client", `>{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}`, "2025-11-25 CallToolRequest"},
		{"a notification of the server", `<{"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1}}`, "ProgressNotification"},
		{"an answer of the client", `<{"jsonrpc":"2.0","id":"a","method":"roots/list"}` + "\n" + `>{"jsonrpc":"2.0","id":"a","result":{}}`, "2025-11-25 ListRootsResult"},
		{"what the revision lacks", ">" + hello + "\n<" + welcome + "\n" + `<{"jsonrpc":"2.0","id":"a","method":"elicitation/create","params":{"message":"","requestedSchema":{"type":"object","properties":{}}}}`, "2025-03-26 has no ElicitRequest"},
		{"no JSON", "<{", "is no JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			j := &judge{TB: t}
			if spectest.Check(j, protocol.Latest, "", `{"jsonrpc":"2.0","id":1}`); len(j.reported) == 0 {
				t.Skip("there are no official schemas beside the module")
			}
			j.reported = nil
			w := spectest.New(j)
			for line := range strings.Lines(test.talk) {
				if len(j.reported) > 0 {
					t.Errorf("ahead of %s: %q", line, j.reported)
				}
				w.Hear(line[0] == '<', []byte(strings.TrimSuffix(line[1:], "\n")))
			}
			all := strings.Join(j.reported, "\n")
			if !strings.Contains(all, test.want) || test.want == "" && all != "" {
				t.Errorf("reported %q, want %q", all, test.want)
			}
		})
	}
}

// What passes through a Conn is heard, in both directions.
func TestConn(t *testing.T) {
	near, far := transport.Pipe()
	j := &judge{TB: t}
	if spectest.Check(j, protocol.Latest, "", `{"jsonrpc":"2.0","id":1}`); len(j.reported) == 0 {
		t.Skip("there are no official schemas beside the module")
	}
	conn := spectest.Conn(j, near)
	j.reported = nil
	if err := conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call"}`)); err != nil || len(j.reported) != 1 {
		t.Errorf("writing: %v, %q", err, j.reported)
	}
	if err := far.Write([]byte(`{"jsonrpc":"2.0","id":1,"result":7}`)); err != nil {
		t.Fatal(err)
	}
	j.reported = nil
	if _, err := conn.Read(); err != nil || len(j.reported) == 0 {
		t.Errorf("reading: %v, %q", err, j.reported)
	}
	_ = conn.Close() // a pipe's Close has no error
}
