package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Close returns, whatever code of users does not: of a client, a pool and a group.
func TestCloseStuck(t *testing.T) {
	type config struct {
		c *client.Options
		p *pool.Options
		g *group.Options
		// serve is the transport; nil means that of the server.
		serve func(ctx context.Context, c transport.Conn) error
	}
	for name, stick := range map[string]func(c *config, stuck func()){
		"nothing":        func(*config, func()) {},
		"OnNotification": func(c *config, stuck func()) { c.c.OnNotification = func(client.Notification) { stuck() } },
		"OnLog":          func(c *config, stuck func()) { c.c.OnLog = func(client.LogEntry) { stuck() } },
		"OnState":        func(c *config, stuck func()) { c.c.OnState = func(client.State, error) { stuck() } },
		"Elicit": func(c *config, stuck func()) {
			c.c.Elicit = func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) { stuck(); return nil, nil }
		},
		"Around": func(c *config, stuck func()) {
			c.c.Around = func(ctx context.Context, _ *client.CallInfo, next func(context.Context) error) error {
				err := next(ctx)
				stuck()
				return err
			}
		},
		"AroundServerRequest": func(c *config, stuck func()) {
			c.c.AroundServerRequest = func(ctx context.Context, _ *client.ServerRequest, next func(context.Context) error) error {
				err := next(ctx)
				stuck()
				return err
			}
		},
		"OnRequest": func(c *config, stuck func()) {
			c.c.OnRequest = func(context.Context, string, json.RawMessage) (any, error) { stuck(); return nil, nil }
		},
		"OnChange and OnStatus": func(c *config, stuck func()) {
			c.p.OnChange = func(int, error) { stuck() }
			c.g.OnStatus = func(group.Status) { stuck() }
		},
		"OnNotification of the group": func(c *config, stuck func()) {
			c.g.OnNotification = func(string, client.Notification) { stuck() }
		},
		"Trace": func(c *config, stuck func()) {
			var n atomic.Int32
			c.c.Trace = func(bool, []byte) {
				if n.Add(1) > 6 {
					stuck()
				}
			}
		},
		"the server": func(c *config, stuck func()) {
			serve := c.serve
			c.serve = func(ctx context.Context, conn transport.Conn) error { err := serve(ctx, conn); stuck(); return err }
		},
	} {
		for _, rev := range []protocol.Revision{protocol.LatestLegacy, protocol.Latest} {
			for kind, open := range map[string]func(t client.Transport, c *config) (call func(ctx context.Context), end func() error){
				"client": func(tr client.Transport, o *config) (func(context.Context), func() error) {
					c, err := client.Connect(context.Background(), tr, o.c)
					if err != nil {
						t.Fatal(err)
					}
					return func(ctx context.Context) { _, _ = c.Call(ctx, "ask", nil) }, c.Close
				},
				"pool": func(tr client.Transport, o *config) (func(context.Context), func() error) {
					o.p.Client, o.p.Size = o.c, 2
					p := pool.New(tr, o.p)
					return func(ctx context.Context) { _, _ = p.Call(ctx, "ask", nil) }, p.Close
				},
				"group": func(tr client.Transport, o *config) (func(context.Context), func() error) {
					o.g.Client = o.c
					g := group.New(o.g)
					if err := g.Add("a", tr, nil); err != nil {
						t.Fatal(err)
					}
					return func(ctx context.Context) { _, _ = g.Call(ctx, "a_ask", nil) }, g.Close
				},
			} {
				t.Run(name+"/"+rev.String()+"/"+kind, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						never := make(chan struct{})
						s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, nil)
						s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
							_ = f.Log(protocol.LevelError, "x")
							_, err := mcp.Elicit[struct{ Name string }](f, "name", "name?")
							return "", err
						}))
						o := &config{c: &client.Options{Revisions: []protocol.Revision{rev}, CloseTimeout: time.Second}, p: &pool.Options{}, g: &group.Options{}, serve: s.ServeConn}
						stick(o, func() { <-never })
						if o.c.Elicit == nil {
							o.c.Elicit = func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
								return &client.ElicitResult{Action: "cancel"}, nil
							}
						}
						call, end := open(client.Local(o.serve), o)
						go call(t.Context())
						time.Sleep(time.Second)
						_ = s.NotifyAll(protocol.MethodToolsChanged, nil)
						synctest.Wait()
						begin, closed := time.Now(), make(chan error, 1)
						go func() { closed <- end() }()
						select {
						case err := <-closed:
							if took := time.Since(begin); took > 9*time.Second || (took > 7*time.Second || took > 2*time.Second && kind == "client") && !errors.Is(err, client.ErrTimeout) {
								t.Errorf("%v after %v", err, took)
							}
							closed <- nil
						case <-time.After(time.Hour):
							t.Error("Close does not return")
						}
						close(never)
						<-closed
					})
				})
			}
		}
	}
}
