package client

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// Whatever a server sends, the client lives on and its next call is answered.
func FuzzReceive(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"x"}],"resultType":"complete"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"resultType":"input_required","inputRequests":{"k":{"method":"roots/list"}},"requestState":"s"}}`,
		`{"jsonrpc":"2.0","id":2,"result":{"resultType":"task","taskId":"t","status":"working","createdAt":"2026-01-01T00:00:00Z","ttlMs":null}}`,
		`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":2,"error":{"code":-32042,"message":"x","data":{"elicitations":[{}]}}}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":2,"progress":1,"message":"\u00e9"}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`,
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":1}}`,
		`{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"u","_meta":{"io.modelcontextprotocol/subscriptionId":2}}}`,
		`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"notifications":[]}}`,
		`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"requestedSchema":{"properties":{"a":{"default":1}}}}}`,
		`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":{"messages":[{"content":[{}]}]}}`,
		`[{"jsonrpc":"2.0","id":2,"result":{}}]`, `[`, `{`, `null`, "\x00\xff",
	} {
		f.Add([]byte(seed))
	}
	clients := map[protocol.Revision]*Client{}
	var fuzzed []byte // what the server answers a call with, nil for something fine
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20260728} {
		opts := asker(rev)
		opts.NoReconnect, opts.Tasks, opts.MaxTimeout = true, TasksReturn, -1
		clients[rev] = connect(f, &fakeHTTP{name: "http://fuzz", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
			l.mu.Lock()
			l.sent = nil
			l.mu.Unlock()
			switch {
			case m.Method == protocol.MethodDiscover:
				l.answer(m, fakeDiscover)
			case m.Method == protocol.MethodInitialize:
				l.answer(m, strings.Replace(fakeInitialize, "2025-06-18", rev.String(), 1))
			case m.Method == protocol.MethodToolsCall && fuzzed != nil:
				text := fuzzed
				fuzzed = nil
				l.to.Receive(text, m)
			case m.Method == protocol.MethodToolsCall:
				l.answer(m, `{"resultType":"complete","content":[{"type":"text","text":"fine"}]}`)
			}
			return nil
		}}, opts)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		for rev, c := range clients {
			fuzzed = bytes.Clone(text)
			_, _ = c.Call(t.Context(), "x", nil, Retry(1)) // any error will do
			fuzzed = nil
			c.life.conn.Load().Receive(text, nil)
			if r, err := c.Call(t.Context(), "x", nil); err != nil || r.Text() != "fine" {
				t.Errorf("%v: the next call: %+v, %v", rev, r, err)
			}
		}
	})
}
