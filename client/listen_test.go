package client

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The same code hears of changes in every revision.
func TestListen(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		all := make(chan Notification, 10)
		opts := only(rev)
		opts.OnNotification = func(e Notification) { all <- e }
		c := connect(t, serving(t, s), opts)
		listened := c.Notifications(t.Context(), protocol.MethodToolsChanged)
		heard := make(chan Notification, 10)
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://a"}},
			func(e Notification) { heard <- e })
		if err != nil {
			t.Fatal(err)
		}
		if got := sub.Accepted(); !got.ToolsListChanged || len(got.ResourceSubscriptions) != 1 {
			t.Errorf("accepted %+v", got)
		}
		s.Remove(mcp.KindTool, "fail")
		for _, events := range []<-chan Notification{heard, all} {
			if e := <-events; e.Method != protocol.MethodToolsChanged {
				t.Errorf("heard %+v", e)
			}
		}
		for n := range listened {
			if n.Method != protocol.MethodToolsChanged {
				t.Errorf("heard %+v", n)
			}
			break
		}
		s.ResourceUpdated("test://a")
		if e := <-heard; e.Method != protocol.MethodResourceUpdated || stringIn(e.Params, "uri") != "test://a" {
			t.Errorf("heard %+v", e)
		}
		if err := sub.Close(); err != nil || sub.Err() != nil {
			t.Errorf("Close: %v, %v", err, sub.Err())
		}
		<-sub.Done()
	})
}

// Two subscriptions to one resource live side by side; the server is told when
// the last one ends.
func TestListenTwice(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		c := connect(t, serving(t, s), only(rev))
		heard := make(chan string, 4)
		var subs []*Subscription
		for _, name := range []string{"a", "b"} {
			sub, err := c.Listen(t.Context(), Filter{ResourceSubscriptions: []string{"test://b"}}, func(n Notification) { heard <- name })
			if err != nil {
				t.Fatal(err)
			}
			subs = append(subs, sub)
		}
		s.ResourceUpdated("test://b")
		if got := <-heard + <-heard; got != "ab" && got != "ba" {
			t.Errorf("heard by %s", got)
		}
		if err := subs[0].Close(); err != nil {
			t.Error(err)
		}
		s.ResourceUpdated("test://b")
		if got := <-heard; got != "b" {
			t.Errorf("heard by %s", got)
		}
		if err := subs[1].Close(); err != nil {
			t.Error(err)
		}
		if c.Stats().Pending != 0 {
			t.Errorf("stats %+v", c.Stats())
		}
	})
}

// How a modern subscription ends.
func TestListenEnds(t *testing.T) {
	const ack = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":2},"notifications":{"toolsListChanged":true}}}`
	tests := []struct {
		name    string
		play    func(s *script, h *heard)
		refused string // Listen's own error
		want    error  // Subscription.Err
	}{
		{"in order", func(s *script, h *heard) {
			s.say(ack)
			s.result(h, `{"resultType":"complete","_meta":{"io.modelcontextprotocol/subscriptionId":2}}`)
		}, "", nil},
		{"cancelled by the server", func(s *script, _ *heard) {
			s.say(ack)
			s.say(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":2}}`)
		}, "", ErrClosed},
		{"refused", func(s *script, h *heard) { s.fault(h, -32602, "too many") }, "too many", nil},
		{"silence", func(*script, *heard) {}, "timeout", nil},
		{"ended before it began", func(s *script, h *heard) { s.result(h, `{"resultType":"complete"}`) }, "at once", nil},
		{"the connection is lost", func(s *script, _ *heard) { s.say(ack); time.Sleep(time.Second); _ = s.conn.Close() }, "", ErrConnection},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opts := modernOptions()
				opts.NoReconnect = true
				c := connect(t, scripted(t, func(s *script) {
					s.modernHello()
					tt.play(s, s.next())
					s.drain()
				}), opts)
				sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil)
				if tt.refused != "" {
					if err == nil || !strings.Contains(err.Error(), tt.refused) {
						t.Errorf("Listen: %v", err)
					}
				} else if err != nil {
					t.Error(err)
				} else {
					<-sub.Done()
					if !errors.Is(sub.Err(), tt.want) || (sub.Err() == nil) != (tt.want == nil) {
						t.Errorf("Err %v, want %v", sub.Err(), tt.want)
					}
				}
				synctest.Wait()
				if len(c.subs.all()) != 0 || c.Stats().Pending != 0 {
					t.Errorf("left: %d subscriptions, stats %+v", len(c.subs.all()), c.Stats())
				}
				if err := c.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A stream that breaks over HTTP is opened again.
func TestListenReopens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		streams := 0
		tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, ctx context.Context, m *link.Message) error {
			switch m.Method {
			case protocol.MethodDiscover:
				l.answer(m, fakeDiscover)
			case protocol.MethodListen:
				if streams++; streams == 2 {
					return errors.New("connection refused")
				}
				l.to.Receive(wire.AppendAcknowledged(nil, m.ID, protocol.SubscriptionFilter{ToolsListChanged: true}), m)
				if streams == 1 {
					time.Sleep(time.Minute)
					return errors.New("stream broke")
				}
				l.to.Receive(wire.NewChange(protocol.MethodToolsChanged, nil).Append(nil, m.ID), m)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		c := connect(t, tr, &Options{Reconnect: &Backoff{Jitter: -1}})
		heard := make(chan Notification, 1)
		begin := time.Now()
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, func(e Notification) { heard <- e })
		if err != nil {
			t.Fatal(err)
		}
		<-heard
		if got := time.Since(begin); got != time.Minute+5*time.Second {
			t.Errorf("the third stream came after %v", got)
		}
		if err := sub.Close(); err != nil {
			t.Error(err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}

// One that breaks as soon as it is agreed on is opened again ever more seldom.
func TestListenBreaksAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var opened []time.Duration
		tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
			switch m.Method {
			case protocol.MethodDiscover:
				l.answer(m, fakeDiscover)
			case protocol.MethodListen:
				opened = append(opened, time.Since(begin))
				l.to.Receive(wire.AppendAcknowledged(nil, m.ID, protocol.SubscriptionFilter{ToolsListChanged: true}), m)
				return errors.New("stream broke")
			}
			return nil
		}}
		c := connect(t, tr, &Options{Reconnect: exactly()})
		if _, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 1, 5, 14, 29, 44, 59} // seconds
		for i := range want {
			want[i] *= time.Second
		}
		if !slices.Equal(opened, want) {
			t.Errorf("opened after %v, want %v", opened, want)
		}
	})
}

// A sequence of notifications ends with its context, with the client, and when
// nobody wants more; what waits for it is bounded.
func TestNotificationsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := connect(t, serving(t, fixture(t, nil)), modernOptions())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		every, logs := c.Notifications(ctx), c.Notifications(t.Context(), "notifications/message")
		unused := c.Notifications(ctx)
		for range maxListened + 10 {
			c.notifications.push(Notification{Method: "notifications/acme/row"}, nil)
		}
		c.notifications.push(Notification{Method: "notifications/message"}, nil)
		synctest.Wait()
		if dropped := c.Stats().Dropped; dropped != 2*11 {
			t.Errorf("%d were dropped", dropped)
		}
		n, last := 0, ""
		for what := range every {
			last = what.Method
			if n++; n == maxListened {
				cancel()
			}
		}
		if n != maxListened || last != "notifications/message" {
			t.Errorf("%d came, the last one %s", n, last)
		}
		for range unused {
			t.Error("it goes on after the end of its context")
		}
		for range logs {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}
		if len(c.notifications.listeners) != 0 {
			t.Errorf("%d listeners are left", len(c.notifications.listeners))
		}
	})
}

// Options.Listen is open as soon as Connect returns.
func TestListenOption(t *testing.T) {
	s := fixture(t, &mcp.Options{})
	opts := modernOptions()
	opts.Listen = &protocol.SubscriptionFilter{ToolsListChanged: true}
	heard := make(chan Notification, 1)
	opts.OnNotification = func(e Notification) { heard <- e }
	connect(t, serving(t, s), opts)
	s.Remove(mcp.KindTool, "fail")
	if e := <-heard; e.Method != protocol.MethodToolsChanged {
		t.Errorf("heard %+v", e)
	}
}

// What waits for a handler that hangs is bounded, in number and in size.
func TestEventsBounded(t *testing.T) {
	hang := make(chan struct{})
	opts := modernOptions()
	opts.OnNotification = func(Notification) { <-hang }
	c := connect(t, serving(t, fixture(t, nil)), opts)
	big := make([]byte, maxQueued/4)
	for range 20 {
		c.notifications.push(Notification{Method: "big", Params: big}, nil)
	}
	c.notifications.mu.Lock()
	if len(c.notifications.waiting.queue) > 4 || c.notifications.waiting.size > maxQueued {
		t.Errorf("%d events of %d bytes wait", len(c.notifications.waiting.queue), c.notifications.waiting.size)
	}
	c.notifications.mu.Unlock()
	for range 2 * maxNotifications {
		c.notifications.push(Notification{Method: "small"}, nil)
	}
	c.notifications.mu.Lock()
	if len(c.notifications.waiting.queue) != maxNotifications || c.notifications.waiting.size != maxNotifications*len("small") {
		t.Errorf("%d events of %d bytes wait", len(c.notifications.waiting.queue), c.notifications.waiting.size)
	}
	c.notifications.mu.Unlock()
	if c.Stats().Dropped < maxNotifications {
		t.Errorf("stats %+v", c.Stats())
	}
	close(hang)
	p := &call{conn: c.life.conn.Load(), progress: func(Progress) {}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	for range 1000 {
		p.advance(Progress{Message: string(big[:maxMessages/4])}, false)
	}
	if len(p.queue) > 4 {
		t.Errorf("%d messages wait", len(p.queue))
	}
}
