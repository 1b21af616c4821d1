package inspector

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// eras are the revisions with sessions, and the one without.
var eras = []protocol.Revision{protocol.V20251125, protocol.V20260728}

// one is a list of one tool.
func one(name string) func(json.RawMessage) (any, error) {
	return func(json.RawMessage) (any, error) {
		return json.RawMessage(`{"tools":[{"name":"` + name + `","inputSchema":{"type":"object"}}]}`), nil
	}
}

// TestProgress: a call that runs has the newest progress that its server reports, until it is cancelled, whatever the
// server answers then.
func TestProgress(t *testing.T) {
	for _, rev := range eras {
		for _, c := range []struct{ reports, want string }{
			{`"progress":1`, "1  "}, {`"progress":1,"total":4`, "1 4 "}, {`"progress":0`, "0  "}, {`"progress":0.25,"total":0.5`, "0.25 0.5 "},
			{`"progress":7,"total":4`, "7 4 "}, {`"progress":1,"total":4,"message":"first"`, "1 4 first"}, {`"progress":1,"message":"a\nb\u202ec"`, "1  a b�c"},
			{`"progress":1|"progress":2,"total":9|"progress":3,"message":"last"`, "3  last"}, {`"progress":1e21`, "1e+21  "}, {`"progress":1,"more":{"a":1}`, "1  "},
			{`"progress":"one"|"progress":2,"message":"good"`, "2  good"}, {`"total":5|"progress":2,"message":"good"`, "2  good"}, {`"progress":1,"message":5|"progress":2,"message":"good"`, "2  good"},
		} {
			s := mcptest.NewScript(t, rev, map[string]func(json.RawMessage) (any, error){
				"tools/list": one("slow"),
				"tools/call": func(params json.RawMessage) (any, error) {
					var p struct {
						Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
					}
					err := json.Unmarshal(params, &p)
					var lines []string
					for text := range strings.SplitSeq(c.reports, "|") {
						lines = append(lines, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":%s,%s}}`, p.Meta.ProgressToken, text))
					}
					return mcptest.Raw(strings.Join(lines, "\n")), err
				},
			})
			i := inspect(t, s.Transport(), "")
			running := started(t, i, "tool", "slow", "{}")
			words := func() string {
				if p := i.calls.now(running.ID).Progress; p != nil {
					total := ""
					if p.Total != 0 {
						total = fmt.Sprint(p.Total)
					}
					return fmt.Sprintf("%v %s %s", p.Progress, total, p.Message)
				}
				return ""
			}
			until(t, i, func() bool { return words() == c.want })
			ask(t, i, "DELETE", fmt.Sprint("/api/calls/", running.ID), "", nil)
			until(t, i, func() bool { return i.calls.now(running.ID).State == "cancelled" })
			i.Close()
		}
	}
}

// TestRoots: a server gets the roots that the command line names, or none.
func TestRoots(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "roots", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("roots", func(f *mcp.Frame, _ struct{}) (string, error) {
		list, err := frame.Roots(f, "r")
		return fmt.Sprint(list), err
	}))
	for _, rev := range append(eras, protocol.V20241105) {
		for _, list := range [][]protocol.Root{{}, {{URI: "file:///a"}}, {{URI: "file:///a", Name: "A"}, {URI: "file:///b%20c"}}} {
			i := New(Options{Target: "target", Client: client.Options{Roots: list}, Explain: func(_ client.Transport, err error) (string, string) { return err.Error(), "" },
				Transport: func(io.Writer, func(http.RoundTripper) http.RoundTripper) (client.Transport, error) {
					return client.Local(s.ServeConn), nil
				}})
			i.Connect(rev)
			until(t, i, func() bool { return snapshot(i).State == "ready" })
			if c := finished(t, i, "roots", "{}"); c.State != "done" || !strings.Contains(c.Result, fmt.Sprint(list)) {
				t.Errorf("%s %v: %+v", rev, list, c)
			}
			i.Close()
		}
	}
}

// TestCompletions: the page gets the values that a server suggests, as many as it shows, and learns of more.
func TestCompletions(t *testing.T) {
	many := func(n int) string { return strings.TrimSuffix(strings.Repeat(`"v",`, n), ",") }
	for _, rev := range eras {
		for _, c := range []struct {
			answer string
			values int
			more   bool
			wrong  string
		}{
			{`{"values":[]}`, 0, false, ""}, {`{"values":["a"]}`, 1, false, ""}, {`{"values":["a","b"],"total":2,"hasMore":false}`, 2, false, ""},
			{`{"values":["a"],"hasMore":true}`, 1, true, ""}, {`{"values":["a"],"total":500}`, 1, true, ""}, {`{"values":[` + many(100) + `],"total":100}`, 100, false, ""},
			{`{"values":[` + many(150) + `]}`, 100, true, ""}, {`{"values":["` + strings.Repeat("x", maxValue+1) + `","b"]}`, 1, true, ""}, {`{"values":["a\u202eb","c\nd"]}`, 2, false, ""},
			{`{"values":[5]}`, 0, false, "number"}, {`{"values":"a"}`, 0, false, "string"}, {`7`, 0, false, "number"},
		} {
			s := mcptest.NewScript(t, rev, map[string]func(json.RawMessage) (any, error){
				"prompts/list":        func(json.RawMessage) (any, error) { return json.RawMessage(`{"prompts":[{"name":"p"}]}`), nil },
				"completion/complete": func(json.RawMessage) (any, error) { return json.RawMessage(`{"completion":` + c.answer + `}`), nil },
			})
			i := inspect(t, s.Transport(), "")
			var got struct {
				suggestions
				Error string
			}
			ask(t, i, "POST", "/api/request", `{"method":"completion/complete","params":{"ref":{"type":"ref/prompt","name":"p"},"argument":{"name":"a","value":"x"}}}`, &got)
			if len(got.Values) != c.values || got.More != c.more || (got.Error != "") != (c.wrong != "") || !strings.Contains(got.Error, c.wrong) {
				t.Errorf("%s %.60s: %d values, more: %t, %q", rev, c.answer, len(got.Values), got.More, got.Error)
			}
			for _, v := range got.Values {
				if strings.ContainsAny(v.Label, "\u202e\n") {
					t.Errorf("%s %.60s: %q", rev, c.answer, v.Label)
				}
			}
			i.Close()
		}
	}
}

// TestThousandTools: a list of a thousand tools is there in the order of its pages, whatever a page and a cursor look like,
// and those before a page that fails are there, too.
func TestThousandTools(t *testing.T) {
	for _, rev := range eras {
		for _, c := range []struct {
			total, size, fails int // tools in all and of a page; the page that is an error
			cursor             string
		}{
			{1000, 1000, 0, ""}, {1000, 999, 0, "n%d"}, {1000, 7, 0, "n%d"}, {40, 10, 0, "ä日\u202e %d"}, {40, 10, 0, `{"from":%d}`}, {40, 10, 0, "a b/c?d=%d&e#f"}, {40, 10, 0, strings.Repeat("x", 4096) + "%d"}, {40, 10, 3, "n%d"}, {40, 10, 1, "n%d"},
		} {
			pages := map[string]int{"": 0}
			s := mcptest.NewScript(t, rev, map[string]func(json.RawMessage) (any, error){
				"tools/list": func(params json.RawMessage) (any, error) {
					var p struct{ Cursor string }
					if len(params) > 0 {
						if err := json.Unmarshal(params, &p); err != nil {
							return nil, err
						}
					}
					page, ok := pages[p.Cursor]
					if !ok || c.fails > 0 && page+1 == c.fails {
						return nil, &protocol.Error{Code: protocol.CodeInvalidParams, Message: "no such page"}
					}
					list := map[string]any{}
					var tools []any
					for n := page * c.size; n < min(c.total, (page+1)*c.size); n++ {
						tools = append(tools, map[string]any{"name": fmt.Sprint("tool_", n), "inputSchema": map[string]any{"type": "object", "properties": map[string]any{fmt.Sprint("of_", n): map[string]any{"type": "string"}}}})
					}
					list["tools"] = tools
					if (page+1)*c.size < c.total {
						next := fmt.Sprintf(c.cursor, page+1)
						pages[next], list["nextCursor"] = page+1, next
					}
					return list, nil
				},
			})
			i := inspect(t, s.Transport(), "")
			o := listed(t, i, "tool")
			want := c.total
			if c.fails > 0 {
				want = (c.fails - 1) * c.size
			}
			if len(o.Entries) != want || (o.Error != "") != (c.fails > 0) || c.fails > 0 && !strings.Contains(o.Error, "no such page") {
				t.Errorf("%s %+v: %d tools, %q", rev, c, len(o.Entries), o.Error)
			}
			for n, e := range o.Entries {
				if e.Name != fmt.Sprint("tool_", n) {
					t.Errorf("%s %+v: tool %d is %s", rev, c, n, e.Name)
					break
				}
			}
			if c.fails == 0 {
				var f form
				if ask(t, i, "GET", fmt.Sprintf("/api/form?tool=tool_%d", c.total-1), "", &f); f.Form == nil || len(f.Form.Fields) != 1 || f.Form.Fields[0].Key != fmt.Sprint("of_", c.total-1) {
					t.Errorf("%s %+v: %+v", rev, c, f)
				}
			}
			i.Close()
		}
	}
}
