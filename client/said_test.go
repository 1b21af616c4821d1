package client

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Whatever a server says, and wherever: in the text of an error there is no
// control, direction or invisible character of it, and not too much of it.
func TestErrorsQuoteVisibly(t *testing.T) {
	t.Parallel()
	testdep.NoRace(t, "it reads long errors")
	const nasty = "x\x1b]0;owned\a\x1b[6n\u009b6n\u202e\u2066\u200b\U000e0041\x7f\x00y"
	quoted, _ := json.Marshal(nasty)
	q := string(quoted)
	long, _ := json.Marshal(strings.Repeat(nasty, 5000))
	const hello = `"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"x","version":"1"}`
	const modernHello = `"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}`
	fault := func(message string) string {
		return `"error":{"code":-32603,"message":` + message + `,"data":{"uri":` + q + `,"supported":[` + q + `]}}`
	}
	calls := map[string]func(c *Client) error{
		"call":  func(c *Client) error { _, err := c.Call(t.Context(), "x", nil); return err },
		"typed": func(c *Client) error { _, err := Call[int](t.Context(), c, "x", nil); return err },
		"read":  func(c *Client) error { _, err := c.Read(t.Context(), "x:y"); return err },
		"list": func(c *Client) (err error) {
			for _, err = range c.Tools(t.Context()) {
			}
			return err
		},
		"prompt": func(c *Client) error { _, err := c.GetPrompt(t.Context(), "x", nil); return err },
	}
	modern := []protocol.Revision{protocol.V20260728}
	for _, test := range []struct {
		name    string
		opening string // members of the answer to the first message
		answer  string // to all others
		revs    []protocol.Revision
	}{
		{name: "error", answer: fault(q)}, {name: "long error", answer: fault(string(long))},
		{name: "an error that is none", answer: `"error":` + q}, {name: "an error of odd members", answer: `"error":{"code":` + q + `,"message":{}}`},
		{name: "a tool that fails", answer: `"result":{"isError":true,"content":[{"type":"text","text":` + string(long) + `}]}`},
		{name: "content of a kind", answer: `"result":{"content":[{"type":` + q + `}],"contents":` + q + `,"messages":` + q + `,"tools":` + q + `}`},
		{name: "a cursor", answer: `"result":{"tools":[],"content":` + q + `,"contents":` + q + `,"messages":{},"nextCursor":` + q + `}`},
		{name: "a result of its own", answer: `"result":` + q}, {name: "neither", answer: `"other":` + q},
		{name: "initialize", opening: fault(q)}, {name: "a revision", opening: `"result":{"protocolVersion":` + q + `,"capabilities":{}}`},
		{name: "initialize of its own", opening: `"result":` + q},
		{name: "discover", opening: `"result":{"supportedVersions":[` + q + `],"capabilities":{}}`, revs: modern},
		{name: "discover of its own", opening: `"result":{"a":` + q + `}`, revs: modern}, {name: "discover fails", opening: fault(q), revs: modern},
		{name: "a kind of result", opening: modernHello, answer: `"result":{"resultType":` + q + `}`, revs: modern},
		{name: "input", opening: modernHello, revs: modern,
			answer: `"result":{"resultType":"input_required","inputRequests":{` + q + `:{"method":` + q + `,"params":{"message":` + q + `}}}}`},
		{name: "a failed task", opening: modernHello, revs: modern,
			answer: `"result":{"resultType":"task","taskId":` + q + `,"status":"failed","statusMessage":` + q + `,"createdAt":` + q + `}`},
		{name: "no JSON", answer: nasty}, {name: "no JSON at first", opening: nasty},
	} {
		if test.opening == "" {
			test.opening = `"result":{` + hello + `}`
		}
		if test.revs == nil {
			test.revs = []protocol.Revision{protocol.V20250618}
		}
		reply := func(text []byte) string {
			var m waitMessage
			if json.Unmarshal(text, &m) != nil || m.ID == nil {
				return ""
			}
			members := test.answer
			if m.Method == protocol.MethodInitialize || m.Method == protocol.MethodDiscover {
				members = test.opening
			}
			if members == nasty {
				return nasty
			}
			return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,%s}`, m.ID, members)
		}
		web := handler(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			if text := reply(body); text == "" {
				w.WriteHeader(http.StatusAccepted)
			} else {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprint(w, text)
			}
		}))
		for over, tr := range map[string]Transport{"stream": replying(reply), "http": HTTP(web, &HTTPOptions{NoStream: true})} {
			where := test.name + " over " + over
			opts := &Options{Timeout: 300 * time.Millisecond, CloseTimeout: time.Second, NoReconnect: true, LaxCapabilities: true, Revisions: test.revs}
			c, err := Connect(t.Context(), tr, opts)
			if err != nil {
				judgeError(t, where, err)
				continue
			}
			for name, call := range calls {
				if err := call(c); err != nil {
					judgeError(t, where+": "+name, err)
				} else if name == "typed" {
					t.Errorf("%s: %s does not fail", where, name)
				}
			}
			_ = c.Close()
		}
	}
	for name, respond := range map[string]func(w http.ResponseWriter){
		"a page": func(w http.ResponseWriter) { w.WriteHeader(400); fmt.Fprint(w, strings.Repeat(nasty, 500)) },
		"a title": func(w http.ResponseWriter) {
			w.WriteHeader(502)
			fmt.Fprint(w, "<html><title>"+nasty+"</title></html>")
		},
		"a type": func(w http.ResponseWriter) {
			w.Header().Set("Content-Type", "text/\u009bx\u202e")
			fmt.Fprint(w, nasty)
		},
		"a place": func(w http.ResponseWriter) {
			w.Header().Set("Location", "http://example.com/\u009b\u202e")
			w.WriteHeader(307)
		},
	} {
		web := handler(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { respond(w) }))
		for over, tr := range map[string]Transport{"http": HTTP(web, nil), "sse": SSE(web, nil), "websocket": WebSocket(web, nil)} {
			_, err := Connect(t.Context(), tr, &Options{Timeout: 2 * time.Second})
			if err == nil {
				t.Errorf("%s over %s: no error", name, over)
				continue
			}
			judgeError(t, name+" over "+over, err)
		}
	}
	judgeError(t, "a command", &transport.ExitError{Name: "x", Stderr: nasty})
	judgeError(t, "a silent command", &SilentError{Stderr: strings.Repeat(nasty, 500)})
	judgeError(t, "a tool", &ToolError{Tool: "x", Result: &CallToolResult{Content: []protocol.Content{protocol.TextContent{Text: nasty}}}})
	judgeError(t, "a fault", &protocol.Error{Code: -1, Message: nasty})
}

// replying is the transport to a server that answers lines.
func replying(reply func([]byte) string) Transport {
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	go func() {
		for scanner := bufio.NewScanner(in); scanner.Scan(); {
			if text := reply(scanner.Bytes()); text != "" {
				fmt.Fprintln(out, text)
			}
		}
		out.Close()
	}()
	return Stream(fromServer, toServer, nil)
}

func judgeError(t *testing.T, where string, err error) {
	t.Helper()
	text := err.Error()
	if len(text) > 10_000 {
		t.Errorf("%s: %d bytes", where, len(text))
	}
	for _, r := range text {
		if r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			t.Errorf("%s: %U in %.500q", where, r, text)
			return
		}
	}
}
