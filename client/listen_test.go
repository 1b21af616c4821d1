package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

// The same code hears of changes in both eras.
func TestListen(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		all := make(chan Event, 10)
		opts := only(rev)
		opts.OnNotification = func(e Event) { all <- e }
		c := connect(t, serving(t, s), opts)
		topic, cancel := c.Events("notifications/tools/*")
		defer cancel()
		heard := make(chan Event, 10)
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true, ResourceSubscriptions: []string{"test://a"}},
			func(e Event) { heard <- e })
		if err != nil {
			t.Fatal(err)
		}
		if got := sub.Honoured(); !got.ToolsListChanged || len(got.ResourceSubscriptions) != 1 {
			t.Errorf("honoured %+v", got)
		}
		s.RemoveTools("fail")
		for _, events := range []<-chan Event{heard, all, topic} {
			if e := <-events; e.Method != protocol.MethodToolsChanged {
				t.Errorf("heard %+v", e)
			}
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

func TestSubscribe(t *testing.T) {
	each(t, func(t *testing.T, rev protocol.Revision) {
		s := fixture(t, nil)
		c := connect(t, serving(t, s), only(rev))
		events, cancel := c.Events(protocol.MethodResourceUpdated)
		defer cancel()
		for range 2 { // twice is as once
			if err := c.Subscribe(t.Context(), "test://b"); err != nil {
				t.Fatal(err)
			}
		}
		s.ResourceUpdated("test://b")
		if e := <-events; stringIn(e.Params, "uri") != "test://b" {
			t.Errorf("event %+v", e)
		}
		if err := c.Unsubscribe(t.Context(), "test://b"); err != nil {
			t.Error(err)
		}
		if err := c.Unsubscribe(t.Context(), "test://b"); !errors.Is(err, ErrNotFound) {
			t.Errorf("second Unsubscribe: %v", err)
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
		{"the connection is lost", func(s *script, _ *heard) { s.say(ack); time.Sleep(time.Second); _ = s.conn.Close() }, "", ErrClosed},
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
				if len(c.subscriptions()) != 0 || c.Stats().Pending != 0 {
					t.Errorf("left: %d subscriptions, stats %+v", len(c.subscriptions()), c.Stats())
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
				l.to.Receive(protocol.AppendAcknowledged(nil, m.ID, protocol.SubscriptionFilter{ToolsListChanged: true}), m)
				if streams == 1 {
					time.Sleep(time.Minute)
					return errors.New("stream broke")
				}
				l.to.Receive(protocol.NewChange(protocol.MethodToolsChanged, nil).Append(nil, m.ID), m)
				<-ctx.Done()
				return ctx.Err()
			}
			return nil
		}}
		c := connect(t, tr, &Options{Reconnect: &Backoff{Jitter: -1}})
		heard := make(chan Event, 1)
		begin := time.Now()
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, func(e Event) { heard <- e })
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

func TestPubSub(t *testing.T) {
	p := NewPubSub()
	every, stop := p.Subscribe()
	logs, stopLogs := p.Subscribe("notifications/message")
	for range eventQueue + 10 {
		p.Publish(Event{Method: "notifications/tools/list_changed"})
	}
	p.Publish(Event{Method: "notifications/message"})
	if len(every) != eventQueue || len(logs) != 1 || p.Dropped() != 11 {
		t.Errorf("%d and %d events wait, %d were dropped", len(every), len(logs), p.Dropped())
	}
	stop()
	stop()
	stopLogs()
	<-logs
	if _, ok := <-logs; ok {
		t.Error("the channel is not closed")
	}
}

// Options.Listen is open as soon as Connect returns.
func TestListenOption(t *testing.T) {
	s := fixture(t, &mcp.Options{})
	opts := modernOptions()
	opts.Listen = &protocol.SubscriptionFilter{ToolsListChanged: true}
	heard := make(chan Event, 1)
	opts.OnNotification = func(e Event) { heard <- e }
	connect(t, serving(t, s), opts)
	s.RemoveTools("fail")
	if e := <-heard; e.Method != protocol.MethodToolsChanged {
		t.Errorf("heard %+v", e)
	}
}

// What waits for a handler that hangs is bounded, in number and in size.
func TestEventsBounded(t *testing.T) {
	hang := make(chan struct{})
	opts := modernOptions()
	opts.OnNotification = func(Event) { <-hang }
	c := connect(t, serving(t, fixture(t, nil)), opts)
	big := make([]byte, maxEventBytes/4)
	for range 20 {
		c.events.push(Event{Method: "big", Params: big}, nil)
	}
	c.events.mu.Lock()
	if len(c.events.queue) > 4 || c.events.size > maxEventBytes {
		t.Errorf("%d events of %d bytes wait", len(c.events.queue), c.events.size)
	}
	c.events.mu.Unlock()
	for range 2 * maxEvents {
		c.events.push(Event{Method: "small"}, nil)
	}
	c.events.mu.Lock()
	if len(c.events.queue) != maxEvents || c.events.size != 0 {
		t.Errorf("%d events of %d bytes wait", len(c.events.queue), c.events.size)
	}
	c.events.mu.Unlock()
	if c.Stats().Dropped < maxEvents {
		t.Errorf("stats %+v", c.Stats())
	}
	close(hang)
	p := &call{conn: c.conn.Load(), progress: func(Progress) {}, wake: make(chan struct{}, 1), done: make(chan struct{})}
	for range 1000 {
		p.advance(Progress{Message: string(big[:maxMessages/4])}, false)
	}
	if len(p.queue) > 4 {
		t.Errorf("%d messages wait", len(p.queue))
	}
}
