package client

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/websocket"
)

// formsServer returns the answer to a message in the forms that JSON permits: with a byte
// order mark, integers with a fraction, null for absent members, half a surrogate pair and
// times without a zone. It returns "" for a notification.
func formsServer(request string) string {
	var m struct {
		ID     json.RawMessage
		Method string
		Params struct{ Name string }
	}
	if json.Unmarshal([]byte(request), &m) != nil || m.ID == nil {
		return ""
	}
	modern := strings.Contains(request, "2026-07-28")
	result := ""
	switch m.Method {
	case protocol.MethodDiscover:
		result = `"supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":null},"instructions":null,"ttlMs":0.0,"cacheScope":"private"`
	case protocol.MethodInitialize:
		result = `"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":null},"serverInfo":{"name":"forms","version":"1","icons":null},"instructions":null`
	case protocol.MethodToolsList:
		result = `"tools":[{"name":"cut","title":null,"description":null,"inputSchema":{"type":"object"},"outputSchema":null,"annotations":null,"icons":null,"_meta":null}],"nextCursor":null,"ttlMs":1000.0,"cacheScope":"private"`
	case protocol.MethodToolsCall:
		if m.Params.Name == "refused" {
			return fmt.Sprintf("\ufeff"+`{"jsonrpc":"2.0","id":%s.0,"result":null,"error":{"code":-32602.0,"message":"no","data":null}}`, m.ID)
		}
		result = `"content":[{"type":"text","text":"cut \ud83d","annotations":{"priority":null,"lastModified":"2026-11-27T02:00:00"}},` +
			`{"type":"resource_link","uri":"a:b","name":"b","size":1e1,"icons":null,"mimeType":null}],"structuredContent":{"n":2.0},"isError":null,"_meta":null`
	default:
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"Method not found"}}`, m.ID)
	}
	if modern {
		result += `,"resultType":"complete"`
	}
	return fmt.Sprintf("\ufeff"+`{"jsonrpc":"2.0","id":%s.0,"method":null,"result":{%s},"error":null}`, m.ID, result)
}

// formsDoors are the ways by which an answer comes to a client.
var formsDoors = map[string]func(t *testing.T) Transport{
	"connection": func(t *testing.T) Transport {
		return scripted(t, func(s *script) {
			for h := s.next(); h != nil; h = s.next() {
				if answer := formsServer(h.raw); answer != "" {
					s.say("%s", answer)
				}
			}
		})
	},
	"lines": func(t *testing.T) Transport {
		var running sync.WaitGroup
		t.Cleanup(running.Wait)
		return &testTransport{"memory:lines", func(context.Context) (transport.Conn, error) {
			inR, inW := io.Pipe()
			outR, outW := io.Pipe()
			running.Go(func() {
				defer outW.Close()
				for lines := bufio.NewScanner(inR); lines.Scan(); {
					if answer := formsServer(lines.Text()); answer != "" {
						fmt.Fprintln(outW, answer)
					}
				}
			})
			return transport.NewStream(outR, inW, nil), nil
		}}
	},
	"HTTP": func(t *testing.T) Transport { return formsHTTP(t, "application/json", "%s") },
	"HTTP, events": func(t *testing.T) Transport {
		return formsHTTP(t, "text/event-stream", "\ufeffevent: message\ndata: %s\n\n")
	},
	"WebSocket": func(t *testing.T) Transport {
		return WebSocket(handler(t, websocket.Handler(upgraded(func(conn transport.Conn) {
			defer conn.Close()
			s := &script{t, conn}
			for h := s.next(); h != nil; h = s.next() {
				if answer := formsServer(h.raw); answer != "" {
					s.say("%s", answer)
				}
			}
		}))), nil)
	},
}

// formsHTTP answers over HTTP in one format.
func formsHTTP(t *testing.T, mediaType, format string) Transport {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		answer := formsServer(string(body))
		if answer == "" {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		w.Header().Set("Content-Type", mediaType)
		fmt.Fprintf(w, format, answer)
	}))
	t.Cleanup(server.Close)
	return HTTP(server.URL, &HTTPOptions{NoStream: true})
}

// Whatever forms a server's answers have, and however they come, the client reads the
// same.
func TestFormsOfServers(t *testing.T) {
	for door, open := range formsDoors {
		for _, rev := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
			t.Run(door+"/"+rev.String(), func(t *testing.T) {
				c := connect(t, open(t), only(rev))
				for tool, err := range c.Tools(t.Context()) {
					if err != nil || tool.Name != "cut" || tool.OutputSchema != nil || tool.Annotations != nil {
						t.Errorf("the list has %+v, %v", tool, err)
					}
				}
				r, err := c.Call(t.Context(), "cut", nil)
				if err != nil {
					t.Fatal(err)
				}
				text, _ := r.Content[0].(protocol.TextContent)
				if text.Text != "cut \ufffd" || text.Annotations == nil || text.Annotations.LastModified.UTC().Hour() != 2 {
					t.Errorf("text %+v", text)
				}
				if link, _ := r.Content[1].(protocol.ResourceLink); link.Size != 10 || link.URI != "a:b" || link.Icons != nil {
					t.Errorf("link %+v", link)
				}
				var out struct {
					N int `json:"n"`
				}
				if err := r.Decode(&out); err != nil || out.N != 2 || r.IsError || r.Meta != nil {
					t.Errorf("decoded %+v, %v from %s", out, err, r.Raw)
				}
				_, err = c.Call(t.Context(), "refused", nil)
				own, _ := err.(*Error)
				if own == nil || own.Code != protocol.CodeInvalidParams || own.Data != nil {
					t.Errorf("refused: %v", err)
				}
			})
		}
	}
}

// Structured content may be null from 2026-07-28 on.
func TestStructuredNull(t *testing.T) {
	for raw, want := range map[string]string{
		`{"content":[],"structuredContent":null}`:                         "",
		`{"content":[],"structuredContent":null,"resultType":"complete"}`: "null",
		`{"content":[],"resultType":"complete"}`:                          "",
	} {
		if r, err := decodeCall([]byte(raw)); err != nil || string(r.Structured) != want {
			t.Errorf("%s: %+v, %v", raw, r, err)
		}
	}
}
