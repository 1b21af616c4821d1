package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/protocol"
)

// TestToolsThatChange has an upstream whose tool goes, or gets another schema, while it is
// called: the call ends as it would, and the next one is that of the new list.
func TestToolsThatChange(t *testing.T) {
	for back, behind := range eras {
		for front, rev := range eras {
			for _, change := range []string{"goes", "another schema"} {
				t.Run(back+"/"+front+"/"+change, func(t *testing.T) {
					entered, release := make(chan struct{}, 10), make(chan struct{})
					up := newServer(t, "up", nil, behind)
					work := func(*mcp.Frame, greetIn) (string, error) { entered <- struct{}{}; <-release; return "worked", nil }
					up.MustAdd(mcp.Tool("work", work), mcp.Tool("other", work))
					_, s := start(t, map[string]Upstream{"up": {Transport: local(up)}})
					changed := make(chan struct{}, 100)
					c := connect(t, s, rev, &client.Options{Listen: &client.Filter{ToolsListChanged: true}, OnNotification: func(n client.Notification) {
						if n.Method == protocol.MethodToolsChanged {
							changed <- struct{}{}
						}
					}})
					toolNames(t, c)
					done := make(chan string, 1)
					go func() { done <- text(c.Call(t.Context(), "up_work", greetIn{"x"})) }()
					<-entered
					up.Remove(mcp.KindTool, "work")
					want := "Unknown tool"
					if change != "goes" {
						want = "/more: is required"
						up.MustAdd(mcp.Tool("work", func(*mcp.Frame, struct {
							More string `json:"more"`
						}) (string, error) {
							return "new", nil
						}))
					}
					<-changed
					close(release)
					if got := <-done; got != "worked" {
						t.Errorf("the call in progress: %q", got)
					}
					if got := text(c.Call(t.Context(), "up_work", greetIn{"x"})); !strings.Contains(got, want) {
						t.Errorf("the next call: %q, want %q", got, want)
					}
				})
			}
		}
	}
}

// rawHTTP is a legacy upstream over HTTP that answers tools/call with answer, which has the id
// in the place of %s. It counts the calls.
func rawHTTP(t *testing.T, tools string, calls *atomic.Int64, answer func(w http.ResponseWriter, id string)) client.Transport {
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		text, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || json.Unmarshal(text, &m) != nil {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		result := ""
		switch {
		case m.ID == nil:
			w.WriteHeader(http.StatusAccepted)
			return
		case m.Method == protocol.MethodInitialize:
			result = `{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"1"}}`
		case m.Method == protocol.MethodToolsList:
			result = `{"tools":[` + tools + `]}`
		case m.Method == protocol.MethodToolsCall:
			calls.Add(1)
			answer(w, string(m.ID))
			return
		default:
			_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"unknown"}}`, m.ID)
			return
		}
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, m.ID, result)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return client.HTTP(web.URL, nil)
}

// TestOddAnswers has upstreams that end in the middle of an answer, or answer something else:
// the call fails, is not made again, and the next one works.
func TestOddAnswers(t *testing.T) {
	const good = `{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"fine"}]}}`
	for _, tt := range []struct {
		name, answer string
		cut          bool // the connection ends there
		want         string
	}{
		{"half an answer", good[:40], true, `Server "up" cannot be reached: `},
		{"half an answer that says it is whole", good[:40], false, `Server "up" refuses the request: Parse error: `},
		{"nothing", "", false, `Server "up" refuses the request: Parse error: `},
		{"no head", "", true, `Server "up" cannot be reached: `},
		{"another id", strings.Replace(good, "%s", "4711", 1), false, `Server "up" cannot be reached: `},
		{"the id null", `{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no"}}`, false, "no"},
		{"a text for the id", strings.Replace(good, "%s", `"x"`, 1), false, `Server "up" cannot be reached: `},
		{"a list of answers", "[" + good + "]", false, ""},
		{"two answers", good + good, false, ""},
		{"a result and an error", strings.Replace(good, `"result"`, `"error":{"code":1,"message":"no"},"result"`, 1), false, ""},
		{"a member that is there twice", strings.Replace(good, `"result"`, `"result":{},"result"`, 1), false, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var calls atomic.Int64
			var odd atomic.Bool
			up := rawHTTP(t, plainTool("x", `{"type":"object"}`)+","+plainTool("x", `{"type":"object","properties":{"second":{}}}`), &calls, func(w http.ResponseWriter, id string) {
				if odd.Load() {
					_, _ = io.WriteString(w, strings.ReplaceAll(tt.answer, "%s", id))
					if tt.cut {
						panic(http.ErrAbortHandler)
					}
					return
				}
				_, _ = io.WriteString(w, strings.ReplaceAll(good, "%s", id))
			})
			g, s := start(t, map[string]Upstream{"up": {Transport: up}})
			for front, rev := range eras {
				odd.Store(true)
				calls.Store(0)
				c := connect(t, s, rev, nil)
				ctx, stop := context.WithCancel(t.Context())
				got := text(c.Call(ctx, "up_x", nil))
				stop()
				if !strings.Contains(got, tt.want) || calls.Load() != 1 {
					t.Errorf("%s: %q after %d calls, want %q", front, got, calls.Load(), tt.want)
				}
				odd.Store(false)
				if got := text(c.Call(t.Context(), "up_x", nil)); got != "fine" {
					t.Errorf("%s: the next call: %q", front, got)
				}
			}
			if notes := fmt.Sprint(g.Status()[0].LeftOut); !strings.Contains(notes, `tool "x": the name "x" is taken`) {
				t.Errorf("a name that is listed twice is not noted: %s", notes)
			}
		})
	}
}

// TestOddFiles has files with odd servers: each of the others is there.
func TestOddFiles(t *testing.T) {
	url := slowServer(t, "up", protocol.V20260728)
	g, s := start(t, nil)
	apply := func(text string) error {
		f, err := config.Parse("mcp.json", []byte(strings.ReplaceAll(text, "URL", url)), nil)
		if err != nil {
			return err
		}
		return errors.Join(g.Apply(f, nil), g.Warm(t.Context()))
	}
	for _, tt := range []struct{ name, text, fault, tools string }{
		{"two servers of one name", `{"mcpServers":{"a":{"url":"URL"},"a":{"url":"URL/other"}}}`, "another server of that name", "a_drop a_work"},
		{"the same again", `{"mcpServers":{"a":{"url":"URL"},"a":{"url":"URL/other"}}}`, "another server of that name", "a_drop a_work"},
		{"the first of two is disabled", `{"mcpServers":{"a":{"url":"URL","disabled":true},"a":{"url":"URL"}}}`, "another server of that name", ""},
		{"a name with a dot", `{"mcpServers":{"io.github.x":{"url":"URL"},"a":{"url":"URL"}}}`, "a name has letters", "a_drop a_work"},
		{"both members", `{"mcpServers":{"a":{"url":"URL"}},"servers":{"b":{"url":"URL","talaria":{"only":["work"]}}}}`, "", "a_drop a_work b_work"},
		{"disabled", `{"mcpServers":{"a":{"url":"URL","disabled":true},"b":{"url":"URL","talaria":{"hide":["d*"]}}}}`, "", "b_work"},
		{"settings of another form", `{"mcpServers":{"a":{"url":"URL","talaria":[]},"c":{"url":"URL","talaria":null}}}`, "talaria: ", "c_drop c_work"},
		{"an empty file", `{"mcpServers":{}}`, "", ""},
	} {
		before := g.all()
		err := apply(tt.text)
		if tt.fault == "" && err != nil || tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.fault)
		}
		if tt.name == "the same again" && (len(before) != 1 || g.all()[0] != before[0] || before[0].next != nil) {
			t.Errorf("%s: the server is connected again", tt.name)
		}
		if got := strings.Join(toolNames(t, connect(t, s, protocol.V20260728, nil)), " "); got != tt.tools {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.tools)
		}
	}
}

// TestFilesBeside has a program remove and set a server that a file has, too: the one that came
// last counts, and a file takes back only what came of one.
func TestFilesBeside(t *testing.T) {
	url := slowServer(t, "up", protocol.V20260728)
	g, s := start(t, nil)
	apply := func(servers string) error {
		f, err := config.Parse("mcp.json", fmt.Appendf(nil, `{"mcpServers":{%s}}`, servers), nil)
		if err != nil {
			return err
		}
		return g.Apply(f, nil)
	}
	file := fmt.Sprintf(`"a":{"url":%q}`, url)
	own := Upstream{Transport: local(greeter(t, "own")), Only: []string{"echo"}}
	for _, tt := range []struct {
		name string
		do   func() error
		want string
	}{
		{"a file", func() error { return apply(file) }, "a_drop a_work"},
		{"removed", func() error { g.Remove("a"); return nil }, ""},
		{"the file again", func() error { return apply(file) }, "a_drop a_work"},
		{"set", func() error { return g.Set("a", own) }, "a_echo"},
		{"the file after that", func() error { return apply(file) }, "a_drop a_work"},
		{"set again", func() error { return g.Set("a", own) }, "a_echo"},
		{"a file without it", func() error { return apply("") }, "a_echo"},
	} {
		if err := errors.Join(tt.do(), g.Warm(t.Context())); err != nil {
			t.Error(err)
		}
		if got := strings.Join(toolNames(t, connect(t, s, protocol.V20260728, nil)), " "); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
