package pool_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/internal/test/backendtest"
	"github.com/talaria-go/mcp/protocol"
)

// Connections have options of their own, are listed, and one that is in hand can be
// removed.
func TestPoolConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		b.Server.MustAdd(mcp.Tool("who", func(f *mcp.Frame, _ struct{}) (string, error) { return f.ClientInfo().Name, nil }))
		p := newPool(t, b, pool.Options{Size: 1, Client: &client.Options{Info: client.Info{Name: "first", Version: "1"}}})
		for i, opts := range []*client.Options{{Info: client.Info{Name: "second", Version: "1"}}, nil} {
			if id, err := p.Add(b.Transport(), opts); err != nil || id != i+2 {
				t.Fatalf("got %d, %v", id, err)
			}
		}
		if err := p.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		var all []string
		for id, c := range p.All() {
			name, err := client.Call[string](t.Context(), c, "who", nil)
			all = append(all, fmt.Sprint(id, " ", name, " ", err))
		}
		if got, want := fmt.Sprint(all), "[1 first <nil> 2 second <nil> 3 first <nil>]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		for range p.All() { // which stops
			break
		}
		c, release, err := p.Get(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		id, ok := p.ID(c)
		if !ok || id < 1 || id > 3 {
			t.Errorf("the connection in hand is %d, %t", id, ok)
		}
		if err := p.Remove(id); err != nil {
			t.Error(err)
		}
		if again, ok := p.ID(c); ok {
			t.Errorf("the removed connection is %d", again)
		}
		if name, err := client.Call[string](t.Context(), c, "who", nil); err != nil {
			t.Errorf("a connection in hand: %s, %v", name, err)
		}
		release()
		synctest.Wait()
		if b.Open() != 2 {
			t.Errorf("%d connections are open, want 2", b.Open())
		}
		b.Cut(errors.New("down"))
		synctest.Wait()
		for id := range p.All() {
			t.Errorf("connection %d is listed and not ready", id)
		}
	})
}

// A request of any method goes to another connection as other calls do.
func TestPoolRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := backendtest.New(t, "a", nil)
		p := newPool(t, b, pool.Options{Size: 2})
		for i := range 4 {
			if i == 2 {
				b.CutAny()
			}
			var got struct{ Contents []struct{ Text string } }
			if err := p.Request(t.Context(), "resources/read", map[string]string{"uri": "notes://1"}, &got); err != nil || len(got.Contents) != 1 || got.Contents[0].Text != "a note of a" {
				t.Errorf("got %+v, %v", got, err)
			}
		}
		if err := p.Request(t.Context(), "no/such", nil, nil); !errors.Is(err, client.ErrUnsupported) {
			t.Errorf("an unknown method: %v", err)
		}
	})
}

// The level is that of every connection, those that replace lost ones included.
func TestPoolSetLevel(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		t.Run(rev.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := backendtest.New(t, "a", nil)
				b.Server.MustAdd(mcp.Tool("loud", func(f *mcp.Frame, _ struct{}) (bool, error) { return f.LogEnabled(protocol.LevelNotice), nil }))
				p := newPool(t, b, pool.Options{Size: 2, Client: &client.Options{Revisions: []protocol.Revision{rev}}})
				loud := func() (text string) {
					for id, c := range p.All() {
						on, err := client.Call[bool](t.Context(), c, "loud", nil)
						text += fmt.Sprintf("%d %t %v;", id, on, err)
					}
					return text
				}
				if err := p.SetLevel(t.Context(), protocol.LevelError); err != nil {
					t.Fatal(err)
				}
				if got := loud(); got != "1 false <nil>;2 false <nil>;" {
					t.Errorf("at error: %s", got)
				}
				if err := p.SetLevel(t.Context(), protocol.LevelInfo); err != nil {
					t.Fatal(err)
				}
				if _, err := p.Add(b.Transport(), nil); err != nil {
					t.Fatal(err)
				}
				b.Cut(nil)
				time.Sleep(time.Minute) // of the bubble
				if got := loud(); got != "1 true <nil>;2 true <nil>;3 true <nil>;" {
					t.Errorf("at info, by new connections: %s", got)
				}
				for _, bad := range []protocol.Level{0, 99} {
					if err := p.SetLevel(t.Context(), bad); err == nil {
						t.Errorf("%d is a level", bad)
					}
				}
				_ = p.Close()
				if err := p.SetLevel(t.Context(), protocol.LevelError); !errors.Is(err, client.ErrClosed) {
					t.Errorf("after Close: %v", err)
				}
			})
		})
	}
}

// What Listen asks for moves to another connection, as often as one is lost, and
// ends with its context, the pool or a refusal.
func TestPoolListen(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250618, protocol.V20260728} {
		t.Run(rev.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := backendtest.New(t, "a", nil)
				resumed := make(chan *client.Subscription, 10)
				p := newPool(t, b, pool.Options{Size: 2, Client: &client.Options{Revisions: []protocol.Revision{rev},
					OnResumed: func(s *client.Subscription) { resumed <- s }}})
				heard := make(chan string, 10)
				ctx, cancel := context.WithCancelCause(t.Context())
				ended := make(chan error, 1)
				listen := func(ctx context.Context) {
					ended <- p.Listen(ctx, client.Filter{ResourceSubscriptions: []string{"notes://1"}}, func(n client.Notification) {
						if n.Method == protocol.MethodResourceUpdated {
							heard <- n.Method
						}
					})
				}
				go listen(ctx)
				for i := range 6 { // more than one call may lose
					time.Sleep(time.Minute)
					b.Server.ResourceUpdated("notes://1")
					time.Sleep(time.Second)
					if len(heard) != 1 {
						select {
						case err := <-ended:
							t.Errorf("listening has ended: %v", err)
						default:
						}
						t.Fatalf("%d notifications after %d losses; %+v", len(heard), i, p.Stats())
					}
					<-heard
					if len(resumed) != min(i, 1) {
						t.Errorf("OnResumed was called %d times after the loss %d", len(resumed), i)
					}
					if i > 0 {
						if sub := <-resumed; len(sub.Accepted().ResourceSubscriptions) != 1 {
							t.Errorf("%+v is resumed", sub.Accepted())
						}
					}
					b.Cut(nil)
				}
				left := errors.New("the user left")
				cancel(left)
				if err := <-ended; !errors.Is(err, left) {
					t.Errorf("listening ended with %v", err)
				}
				time.Sleep(time.Minute)
				b.Server.ResourceUpdated("notes://1")
				synctest.Wait()
				if len(heard) != 0 {
					t.Error("a notification after the end")
				}
				go listen(t.Context())
				synctest.Wait()
				if err := p.Close(); err != nil {
					t.Error(err)
				}
				if err := <-ended; !errors.Is(err, client.ErrClosed) {
					t.Errorf("the closed pool ended it with %v", err)
				}
			})
		})
	}
}
