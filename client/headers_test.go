package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

func TestMirror(t *testing.T) {
	params, err := wire.HeaderParams(json.RawMessage(`{"properties":{"s":{"type":"string","x-mcp-header":"S"},"i":{"type":"integer","x-mcp-header":"I"},
		"b":{"type":"boolean","x-mcp-header":"B"},"o":{"type":"object","properties":{"n":{"type":"string","x-mcp-header":"N"}}}}}`))
	if err != nil {
		t.Fatal(err)
	}
	tool := &toolInfo{headers: params}
	for args, want := range map[string]string{
		`{"s":"eu","i":42,"b":false,"o":{"n":"x"}}`: "map[Mcp-Param-B:[false] Mcp-Param-I:[42] Mcp-Param-N:[x] Mcp-Param-S:[eu]]",
		`{"s":null}`:                 "map[]",
		`{}`:                         "map[]",
		`{"i":42.0}`:                 "map[Mcp-Param-I:[42]]",
		`{"i":-7}`:                   "map[Mcp-Param-I:[-7]]",
		`{"s":"Hello, 世界"}`:          "map[Mcp-Param-S:[=?base64?SGVsbG8sIOS4lueVjA==?=]]",
		`{"s":"a\r\nEvil: 1"}`:       "map[Mcp-Param-S:[=?base64?YQ0KRXZpbDogMQ==?=]]",
		`{"s":"=?base64?literal?="}`: "map[Mcp-Param-S:[=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=]]",
	} {
		if got := fmt.Sprint(tool.mirror(nil, []byte(args))); got != strings.Replace(want, "map[]", "map[]", 1) {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// Over modern HTTP arguments are mirrored once the tool is known; a server that
// misses a header makes the client list the tools again.
func TestHeaders(t *testing.T) {
	schema := `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`
	var got []string
	tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
		switch m.Method {
		case protocol.MethodDiscover:
			l.answer(m, fakeDiscover)
		case protocol.MethodToolsList:
			l.answer(m, `{"resultType":"complete","tools":[{"name":"x","inputSchema":`+schema+`},{"name":"bad","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}}],"ttlMs":600000,"cacheScope":"public"}`)
		case protocol.MethodToolsCall:
			got = append(got, fmt.Sprint(m.Name, " ", m.Header))
			if m.Header.Get("Mcp-Param-Region") == "" && m.Header.Get("Mcp-Param-Area") == "" {
				l.fault(m, `{"code":-32020,"message":"Header mismatch"}`)
				return nil
			}
			l.answer(m, `{"resultType":"complete","content":[]}`)
		}
		return nil
	}}
	var log logText
	logger := zerolog.New(&log)
	c := connect(t, tr, &Options{Logger: &logger})
	args := map[string]string{"region": "eu"}
	for range 2 {
		if _, err := c.Call(t.Context(), "x", args, Header("X-Own", "1")); err != nil {
			t.Error(err)
		}
	}
	want := []string{"x map[X-Own:[1]]", "x map[Mcp-Param-Region:[eu] X-Own:[1]]", "x map[Mcp-Param-Region:[eu] X-Own:[1]]"}
	if !slices.Equal(got, want) {
		t.Errorf("calls %v", got)
	}
	page, err := listTools(t.Context(), c, "")
	if err != nil || len(page.items) != 1 {
		t.Errorf("page %+v, %v", page, err)
	}
	if said := log.String(); !strings.Contains(said, `"tool":"bad"`) || !strings.Contains(said, "type number") {
		t.Errorf("log %s", said)
	}
	if _, err := c.Call(t.Context(), "x", nil); code(err) != protocol.CodeHeaderMismatch {
		t.Errorf("a server that is never content: %v", err)
	}
}

// Arguments are checked before anything is sent, as an option.
func TestCheckArguments(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		opts := only(rev)
		opts.CheckArguments = true
		c := connect(t, serving(t, fixture(t, nil)), opts)
		if sum, err := Call[sumOut](t.Context(), c, "sum", sumIn{1, 2}); err != nil || sum.Sum != 3 {
			t.Errorf("%v, %v", sum, err)
		}
		before := c.Stats().Requests
		_, err := c.Call(t.Context(), "sum", map[string]string{"a": "one"})
		if err == nil || !strings.Contains(err.Error(), "do not fit the tool's inputSchema") || !strings.Contains(err.Error(), "/a") {
			t.Errorf("error %v", err)
		}
		if now := c.Stats().Requests; now != before {
			t.Errorf("%d requests were sent", now-before)
		}
		if _, err := c.Call(t.Context(), "none", nil); !errors.Is(err, ErrNotFound) {
			t.Errorf("unknown tool: %v", err)
		}
	})
}

// Schemas of the server's are never fetched, and its results are checked.
func TestServerSchemas(t *testing.T) {
	tr := scripted(t, func(s *script) {
		s.modernHello()
		for h := s.next(); h != nil; h = s.next() {
			switch h.Method {
			case "tools/list":
				s.result(h, `{"resultType":"complete","tools":[
					{"name":"remote","inputSchema":{"$ref":"https://example.com/schema.json"}},
					{"name":"number","inputSchema":{"type":"object"},"outputSchema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}},
					{"name":"far","inputSchema":{"type":"object"},"outputSchema":{"$ref":"http://127.0.0.1/x"}}],"ttlMs":0,"cacheScope":"private"}`)
			case "tools/call":
				structured := `,"structuredContent":{"n":"five"}`
				if strings.Contains(h.raw, "without") {
					structured = ""
				}
				s.result(h, `{"resultType":"complete","content":[]`+structured+`}`)
			}
		}
	})
	opts := modernOptions()
	opts.CheckArguments = true
	c := connect(t, tr, opts)
	if _, err := c.Call(t.Context(), "remote", nil); err == nil || !strings.Contains(err.Error(), "not loaded from elsewhere") {
		t.Errorf("remote: %v", err)
	}
	type number struct{ N int }
	if _, err := Call[number](t.Context(), c, "number", nil); err == nil || !strings.Contains(err.Error(), "does not fit the tool's outputSchema") {
		t.Errorf("number: %v", err)
	}
	if _, err := Call[number](t.Context(), c, "number", map[string]bool{"without": true}); err == nil || !strings.Contains(err.Error(), "no structuredContent") {
		t.Errorf("without: %v", err)
	}
	if r, err := c.Call(t.Context(), "number", nil); err != nil || string(r.Structured) != `{"n":"five"}` {
		t.Errorf("unchecked: %+v, %v", r, err)
	}
	if _, err := Call[number](t.Context(), c, "far", nil); err == nil || !strings.Contains(err.Error(), "not loaded from elsewhere") {
		t.Errorf("far: %v", err)
	}
}
