package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// answering is a server of tools and prompts of every revision, with one answer to all calls.
func answering(answer string) client.Transport {
	return client.Local(func(_ context.Context, conn transport.Conn) error {
		return backendtest.Scripted(conn, func(m *protocol.Message, _ string) string {
			switch m.Method {
			case protocol.MethodDiscover:
				return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"odd","version":"1"},"ttlMs":0,"cacheScope":"private"}`
			case protocol.MethodInitialize:
				var params struct{ ProtocolVersion string }
				_ = json.Unmarshal(m.Params, &params) // the client refuses an empty one
				return `"result":{"protocolVersion":"` + params.ProtocolVersion + `","capabilities":{"tools":{},"prompts":{}},"serverInfo":{"name":"odd","version":"1"}}`
			case protocol.MethodToolsList:
				return `"result":{"resultType":"complete","ttlMs":0,"cacheScope":"private","tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}}]}`
			}
			return answer
		})
	})
}

// TestUnknownContent: an item of a type that no revision names costs no other item. Its type
// and its JSON can be read.
func TestUnknownContent(t *testing.T) {
	for raw, kind := range map[string]string{
		`{"type":"video","data":"AAAA","mimeType":"video/mp4"}`:                      "video",
		`{"type":"error","text":"no such row"}`:                                      "error",
		`{"type":"json","json":{"a":[1,2]}}`:                                         "json",
		`{"type":"html","text":"<p>x"}`:                                              "html",
		`{"type":"hologram"}`:                                                        "hologram",
		`{"type":"Text","text":"x"}`:                                                 "Text",
		`{"type":"resource_template","uriTemplate":"x://{y}"}`:                       "resource_template",
		`{"type":"chart","data":{"x":[1]},"size":"big","icons":7}`:                   "chart",
		`{"type":"list","content":7,"annotations":"none","_meta":[]}`:                "list",
		`{"type":"document","resource":"x","text":{"a":1},"uri":null}`:               "document",
		`{"text":"no type"}`:                                                         "",
		`{"type":null,"text":"x"}`:                                                   "",
		`{"type":"","text":"x"}`:                                                     "",
		`{"type":"x\u001b[2J","a":1}`:                                                "x\x1b[2J",
		`{"type":"` + strings.Repeat("long", 1<<14) + `","data":` + "[[[[]]]]" + `}`: strings.Repeat("long", 1<<14),
		`{}`: "",
	} {
		for _, rev := range protocol.Revisions() {
			is := func(where string, item protocol.Content) {
				if got, ok := item.(protocol.UnknownContent); !ok || got.Type != kind || string(got.Raw) != raw {
					t.Errorf("%s, %s: %.100q, want %.100q", rev, where, fmt.Sprint(item), raw)
				}
			}
			opts := &client.Options{Revisions: []protocol.Revision{rev}}
			c, err := client.Connect(t.Context(), answering(`"result":{"resultType":"complete","content":[{"type":"text","text":"before"}, `+raw+` ,{"type":"text","text":"after"}],"isError":true}`), opts)
			if err != nil {
				t.Fatal(err)
			}
			r, err := c.Call(t.Context(), "t", nil)
			if err != nil || r.Text() != "before\nafter" || !r.IsError || len(r.Content) != 3 {
				t.Fatalf("%s, %.100s: %+v, %v", rev, raw, r, err)
			}
			is("tool", r.Content[1])
			p, err := client.Connect(t.Context(), answering(`"result":{"resultType":"complete","messages":[{"role":"user","content":`+raw+`},{"role":"user","content":{"type":"text","text":"after"}}]}`), opts)
			if err != nil {
				t.Fatal(err)
			}
			prompt, err := p.GetPrompt(t.Context(), "p", nil)
			if err != nil || len(prompt.Messages) != 2 || prompt.Messages[1].Content.(protocol.TextContent).Text != "after" {
				t.Fatalf("%s, %.100s: %+v, %v", rev, raw, prompt, err)
			}
			is("prompt", prompt.Messages[0].Content)
			if err := errors.Join(c.Close(), p.Close()); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestInvalidResult: the error of a call whose result is not valid has the result as it
// came; other errors have none.
func TestInvalidResult(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20260728, protocol.V20251125} {
		for _, c := range []struct {
			answer, want string
			kind         error
		}{
			{`"result":{"resultType":"complete","content":[{"type":"text","text":"good"},{"type":"image","data":7}]}`, `{"resultType":"complete","content":[{"type":"text","text":"good"},{"type":"image","data":7}]}`, client.ErrInvalidResult},
			{`"result":{"resultType":"complete"}`, `{"resultType":"complete"}`, client.ErrInvalidResult},
			{`"error":{"code":-32603,"message":"no"}`, "", nil},
		} {
			conn, err := client.Connect(t.Context(), answering(c.answer), &client.Options{Revisions: []protocol.Revision{rev}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = conn.Call(t.Context(), "t", nil)
			own, ok := errors.AsType[*client.Error](err)
			if !ok || string(own.Result) != c.want || c.kind != nil && !errors.Is(err, c.kind) {
				t.Errorf("%v %s: %v", rev, c.answer, err)
			}
			if err := conn.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}
