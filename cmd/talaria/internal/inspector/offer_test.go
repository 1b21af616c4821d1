package inspector

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/backendtest"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// TestRestless: a list that changes all the time is asked for seldom, and no more often
// than what it takes allows; the page says so, and has the last one in the end.
func TestRestless(t *testing.T) {
	for _, c := range []struct {
		name        string
		every, took time.Duration // between two changes, and for a list
		most        int64         // lists in ten minutes
		note        bool
	}{
		{"without a pause", 10 * time.Millisecond, 0, 70, true},
		{"often", 700 * time.Millisecond, 0, 70, true},
		{"slow lists", 10 * time.Millisecond, 6 * time.Second, 21, true},
		{"now and then", 5 * time.Second, 0, 125, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.every < time.Second && c.name != "often" {
				testdep.NoRace(t, "it is the same as with changes that come often")
			}
			synctest.Test(t, func(t *testing.T) {
				var lists atomic.Int64
				restless := time.Now().Add(10 * time.Minute)
				i := inspect(t, client.Local(func(ctx context.Context, conn transport.Conn) error {
					go func() {
						for time.Now().Before(restless) && ctx.Err() == nil {
							time.Sleep(c.every)
							_ = conn.Write([]byte(`{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`)) // until it is closed
						}
					}()
					return backendtest.Scripted(conn, func(m *protocol.Message, _ string) string {
						switch m.Method {
						case "initialize":
							return `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true}},"serverInfo":{"name":"odd","version":"1"}}`
						case protocol.MethodToolsList:
							time.Sleep(c.took)
							return fmt.Sprintf(`"result":{"tools":[{"name":"t%d","inputSchema":{"type":"object"}}]}`, lists.Add(1))
						}
						return `"error":{"code":-32601,"message":"no"}`
					})
				}), "")
				list := func() (first, note string) {
					i.mu.Lock()
					defer i.mu.Unlock()
					o := i.offered["tool"]
					return o.Entries[0].Name, o.Note
				}
				time.Sleep(10*time.Minute - time.Second)
				if n := lists.Load(); n > c.most || n < c.most/2 {
					t.Errorf("%d lists", n)
				}
				if _, note := list(); strings.Contains(note, "changes constantly") != c.note {
					t.Errorf("note: %q", note)
				}
				time.Sleep(5 * time.Minute)
				n := lists.Load()
				if first, note := list(); first != fmt.Sprint("t", n) || note != "" {
					t.Errorf("after %d lists there is %s, %q", n, first, note)
				}
				if time.Sleep(time.Hour); lists.Load() != n {
					t.Error("it is listed though it does not change")
				}
			})
		})
	}
}

// TestPages checks that lists have all of their pages, and that those before a page
// that leads back are shown.
func TestPages(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		for _, test := range []struct{ name, first, second, third, want, modern string }{
			{"pages", `"x"`, `"y"`, `null`, "abc", "abc"},
			{"empty", `""`, `null`, `null`, "a", "ab"},
			{"repeated", `"x"`, `"x"`, `null`, "ab tools/list", "ab tools/list"},
			{"cycle of two", `"x"`, `"y"`, `"x"`, "abc tools/list", "abc tools/list"},
			{"no text", `7`, `"y"`, `"x"`, " tools/list", " tools/list"},
		} {
			t.Run(rev.String()+" "+test.name, func(t *testing.T) {
				s := mcptest.NewScript(t, rev, map[string]func(json.RawMessage) (any, error){
					protocol.MethodToolsList: func(params json.RawMessage) (any, error) {
						var p struct{ Cursor *string }
						if len(params) > 0 {
							if err := json.Unmarshal(params, &p); err != nil {
								return nil, err
							}
						}
						name, next := "a", test.first
						switch {
						case p.Cursor == nil:
						case *p.Cursor == "y":
							name, next = "c", test.third
						default:
							name, next = "b", test.second
						}
						return json.RawMessage(fmt.Sprintf(`{"tools":[{"name":%q,"inputSchema":{"type":"object"}}],"nextCursor":%s}`, name, next)), nil
					},
				})
				o := listed(t, inspect(t, s.Transport(), ""), "tool")
				got, want := "", test.want
				if rev.Modern() {
					want = test.modern
				}
				for _, e := range o.Entries {
					got += e.Name
				}
				if want, method, failed := strings.Cut(want, " "); got != want || failed != strings.Contains(o.Error, cmp.Or(method, "nothing")) || !failed && o.Error != "" {
					t.Errorf("got %s, error %q, want %s", got, o.Error, want)
				}
			})
		}
	}
}

// TestHarmless: a tool may be destructive unless it says otherwise, as the protocol has it.
func TestHarmless(t *testing.T) {
	for annotations, want := range map[string]bool{
		``: false, `{}`: false, `{"title":"x"}`: false, `{"idempotentHint":true}`: false, `{"readOnlyHint":false}`: false, `{"destructiveHint":true}`: false,
		`{"readOnlyHint":true}`: true, `{"readOnlyHint":true,"destructiveHint":true}`: true, `{"destructiveHint":false}`: true, `{"readOnlyHint":"yes"}`: false,
	} {
		text := `{"name":"x","inputSchema":{"type":"object"}}`
		if annotations != "" {
			text = `{"name":"x","inputSchema":{"type":"object"},"annotations":` + annotations + `}`
		}
		var e entry
		_ = readTool([]byte(text), &e) // one of them does not decode
		if e.Harmless != want {
			t.Errorf("%s: %v", annotations, e.Harmless)
		}
	}
}
