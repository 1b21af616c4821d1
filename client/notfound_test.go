package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// caller has the calls that clients, pools and groups have.
type caller interface {
	Call(context.Context, string, any, ...client.CallOption) (*client.CallToolResult, error)
	Read(context.Context, string, ...client.CallOption) (*protocol.ReadResourceResult, error)
	GetPrompt(context.Context, string, map[string]string, ...client.CallOption) (*protocol.GetPromptResult, error)
	Complete(context.Context, client.Completion, ...client.CallOption) (*protocol.Completion, error)
}

// callers calls test with everything that makes calls to a server of revision rev, and
// with what begins the names and the URIs there.
func callers(t *testing.T, rev protocol.Revision, to map[string]client.Transport, test func(t *testing.T, c caller, name, uri string)) {
	opts := client.Options{Revisions: []protocol.Revision{rev}}
	for name, tr := range to {
		t.Run(rev.String()+" "+name, func(t *testing.T) {
			c, err := client.Connect(t.Context(), tr, &opts)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			test(t, c, "", "")
			p := pool.New(tr, &pool.Options{Size: 1, Client: &opts})
			defer p.Close()
			test(t, p, "", "")
			g := group.New(nil)
			defer g.Close()
			if err := g.Add("g", tr, &opts); err != nil {
				t.Fatal(err)
			}
			test(t, g, "g_", "g.")
		})
	}
}

// piped is a server in memory, for the length of the test.
func piped(t *testing.T, s *mcp.Server) client.Transport {
	var serving sync.WaitGroup
	t.Cleanup(serving.Wait)
	return client.Conn(func(context.Context) (transport.Conn, error) {
		near, far := transport.Pipe()
		serving.Go(func() { _ = s.ServeConn(context.Background(), far) }) // its end is the client's doing
		return near, nil
	})
}

// is reports an error that is not want, or is both of what exclude each other.
func is(t *testing.T, what string, err, want error) {
	t.Helper()
	for _, kind := range []error{client.ErrNotFound, client.ErrInvalidParams} {
		if errors.Is(err, kind) != (kind == want) {
			t.Errorf("%s: got %v, want one that is %v only", what, err, want)
		}
	}
}

// notFoundServer has something of each kind that can be absent, or refuse its arguments.
func notFoundServer() *mcp.Server {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet})
	type numbered struct {
		N int `json:"n"`
	}
	s.MustAdd(
		mcp.Tool("tool", func(*mcp.Frame, numbered) (string, error) {
			return "", protocol.Errorf(protocol.CodeInvalidParams, "no")
		}),
		mcp.Template("item://{n}", func(_ *mcp.Frame, in numbered) (string, error) {
			return "", fmt.Errorf("item %d: %w", in.N, mcp.ErrNotFound)
		}),
		mcp.Resource("own:gone", func(*mcp.Frame) (string, error) {
			return "", protocol.Errorf(protocol.CodeResourceNotFound, "it was there yesterday")
		}),
		mcp.Resource("own:bad", func(*mcp.Frame) (string, error) { return "", protocol.Errorf(protocol.CodeInvalidParams, "no") }),
		mcp.Resource("own:code", func(*mcp.Frame) (string, error) { return "", &protocol.Error{Code: protocol.CodeResourceNotFound} }),
		mcp.Prompt("prompt", func(*mcp.Frame, numbered) (string, error) { return "", nil }, mcp.CompleteFrom("n", "1")),
	)
	return s
}

// TestNotFound checks that what does not exist is ErrNotFound, and what refuses its
// arguments ErrInvalidParams, by every way to call a server of this module.
func TestNotFound(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		s := notFoundServer()
		web := httptest.NewServer(s.Handler())
		defer web.Close()
		callers(t, rev, map[string]client.Transport{"stream": piped(t, s), "HTTP": client.HTTP(web.URL, nil)}, func(t *testing.T, c caller, name, uri string) {
			ctx := t.Context()
			for at, want := range map[string]error{
				"item://x": client.ErrInvalidParams, "item://1.5": client.ErrInvalidParams, "item://": client.ErrInvalidParams,
				"item://9": client.ErrNotFound, "none:x": client.ErrNotFound, "own:gone": client.ErrNotFound,
				"own:code": client.ErrNotFound, "own:bad": client.ErrInvalidParams,
				"none:" + strings.Repeat("x", wire.MaxURI): client.ErrInvalidParams,
			} {
				_, err := c.Read(ctx, uri+at)
				is(t, fmt.Sprintf("%T: read %.20s", c, at), err, want)
			}
			_, err := c.Call(ctx, name+"none", nil)
			is(t, "an unknown tool", err, client.ErrNotFound)
			_, err = c.Call(ctx, name+"tool", map[string]int{"n": 1})
			is(t, "a tool that refuses", err, client.ErrInvalidParams)
			if result, err := c.Call(ctx, name+"tool", map[string]string{"n": "x"}); err != nil || !result.IsError {
				t.Errorf("bad arguments of a tool: %v, %v; want a result with isError", result, err)
			}
			_, err = c.GetPrompt(ctx, name+"none", nil)
			is(t, "an unknown prompt", err, client.ErrNotFound)
			_, err = c.GetPrompt(ctx, name+"prompt", map[string]string{"n": "x"})
			is(t, "bad arguments of a prompt", err, client.ErrInvalidParams)
			for _, q := range []struct {
				ask  client.Completion
				want error
			}{
				{client.Completion{Prompt: name + "none", Argument: "n"}, client.ErrNotFound},
				{client.Completion{Prompt: name + "prompt", Argument: "m"}, client.ErrInvalidParams},
				{client.Completion{Template: uri + "none://{n}", Argument: "n"}, client.ErrNotFound},
				{client.Completion{Template: uri + "item://{n}", Argument: "m"}, client.ErrInvalidParams},
				{client.Completion{Template: uri + "item://5", Argument: "m"}, client.ErrInvalidParams},
				{client.Completion{Template: uri + "own:bad", Argument: "m"}, client.ErrInvalidParams},
			} {
				_, err := c.Complete(ctx, q.ask)
				is(t, fmt.Sprintf("completion of %+v", q.ask), err, q.want)
			}
		})
	}
}

// notFoundTests are errors that servers answer resources/read with, for x:1.
var notFoundTests = []struct {
	code           protocol.Code
	data           string
	legacy, modern error
}{
	{protocol.CodeInvalidParams, `{"uri":"x:1"}`, client.ErrInvalidParams, client.ErrNotFound},
	{protocol.CodeInvalidParams, `{"uri":"x:\u0031","more":[]}`, client.ErrInvalidParams, client.ErrNotFound},
	{protocol.CodeInvalidParams, `{"uri":"x:2"}`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `{"uri":""}`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `{"uri":null}`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `{"uri":["x:1"]}`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `{"issues":[]}`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `"x:1"`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, `null`, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeInvalidParams, ``, client.ErrInvalidParams, client.ErrInvalidParams},
	{protocol.CodeResourceNotFound, `{"uri":"x:1"}`, client.ErrNotFound, client.ErrNotFound},
	{protocol.CodeResourceNotFound, `{"uri":"x:2"}`, client.ErrNotFound, client.ErrNotFound},
	{protocol.CodeResourceNotFound, ``, client.ErrNotFound, client.ErrNotFound},
	{protocol.CodeInternal, `{"uri":"x:1"}`, nil, nil},
}

// TestForeignNotFound does as TestNotFound does with servers that answer in other ways:
// the revision decides what an error means.
func TestForeignNotFound(t *testing.T) {
	for _, rev := range protocol.Revisions() {
		for _, test := range notFoundTests {
			fault := &protocol.Error{Code: test.code, Message: "no"}
			if test.data != "" {
				fault.Data = json.RawMessage(test.data)
			}
			refuse := func(json.RawMessage) (any, error) { return nil, fault }
			answers := map[string]func(json.RawMessage) (any, error){
				protocol.MethodResourcesRead: refuse, protocol.MethodToolsCall: refuse, protocol.MethodPromptsGet: refuse, protocol.MethodComplete: refuse,
			}
			for _, l := range listed {
				answers[l.method] = func(json.RawMessage) (any, error) {
					return json.RawMessage(fmt.Sprintf(`{%q:[%s],"ttlMs":0,"cacheScope":"private"}`, l.member, fmt.Sprintf(l.item, "1"))), nil
				}
			}
			script := mcptest.NewScript(t, rev, answers)
			web := httptest.NewServer(script)
			defer web.Close()
			want := test.legacy
			if rev.Modern() {
				want = test.modern
			}
			callers(t, rev, map[string]client.Transport{"stream": script.Transport(), "HTTP": client.HTTP(web.URL, nil)}, func(t *testing.T, c caller, name, uri string) {
				_, err := c.Read(t.Context(), uri+"x:1")
				is(t, fmt.Sprintf("%d %s", test.code, test.data), err, want)
				if one, ok := c.(*client.Client); ok {
					is(t, "Request", one.Request(t.Context(), protocol.MethodResourcesRead, map[string]string{"uri": "x:1"}, nil), want)
				}
				known, unknown := test.legacy, test.legacy
				if test.code == protocol.CodeInvalidParams {
					unknown = client.ErrNotFound
				}
				for which, want := range map[string]error{"1": known, "2": unknown} {
					_, err = c.Call(t.Context(), name+which, nil)
					is(t, "tool "+which, err, want)
					_, err = c.GetPrompt(t.Context(), name+which, nil)
					is(t, "prompt "+which, err, want)
					_, err = c.Complete(t.Context(), client.Completion{Prompt: name + which, Argument: "a"})
					is(t, "completion "+which, err, want)
				}
			})
		}
	}
}

// The official Go SDK uses one error for a missing resource in all revisions.
func TestNotFoundOfGoSDK(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		script := mcptest.NewScript(t, rev, map[string]func(json.RawMessage) (any, error){
			protocol.MethodResourcesRead: func(json.RawMessage) (any, error) {
				return nil, &protocol.Error{Code: protocol.CodeInvalidParams, Message: "Resource not found", Data: json.RawMessage(`{"uri":"x:1"}`)}
			},
		})
		c, err := client.Connect(t.Context(), script.Transport(), &client.Options{Revisions: []protocol.Revision{rev}})
		if err != nil {
			t.Fatal(err)
		}
		for uri, want := range map[string]error{"x:1": client.ErrNotFound, "x:2": client.ErrInvalidParams} {
			if _, err := c.Read(t.Context(), uri); !errors.Is(err, want) {
				t.Errorf("%v: %s: %v, want %v", rev, uri, err, want)
			}
		}
		_ = c.Close() // the script ends with the test
	}
}
