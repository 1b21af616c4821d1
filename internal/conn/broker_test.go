package conn_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/share"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

const toolsTopic, promptsTopic = "tools", "prompts"

// subscriber is one with a channel that is filled when it is woken.
type subscriber struct {
	*conn.Subscriber
	wake chan struct{}
}

func join(t *testing.T, b *conn.Broker, keepAlive bool, topics ...string) *subscriber {
	t.Helper()
	wake := make(chan struct{}, 1)
	s, err := b.Join(conn.Subscribing{Topics: topics, KeepAlive: keepAlive, Wake: func() {
		select {
		case wake <- struct{}{}:
		default:
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return &subscriber{s, wake}
}

// taken returns the notifications that wait for s, and whether it was roused.
func taken(s *subscriber) (texts []string, signs conn.Signs, roused bool) {
	select {
	case <-s.wake:
		roused = true
	default:
	}
	changes, signs := s.Take(nil)
	for _, c := range changes {
		texts = append(texts, string(c.Plain()))
	}
	return texts, signs, roused
}

func updated(uri string) string { return string(wire.ResourceUpdated(uri).Plain()) }

func TestPublish(t *testing.T) {
	b := conn.NewBroker(10, 0, 0)
	both := join(t, b, false, toolsTopic, "resource "+"a")
	one := join(t, b, false, "resource "+"b")
	none := join(t, b, false)
	tools := wire.NewChange(protocol.MethodToolsChanged, nil)

	b.Publish("resource "+"a", wire.ResourceUpdated("a"))
	b.Publish(toolsTopic, tools)
	b.Publish(toolsTopic, tools)
	b.Publish(promptsTopic, tools)
	b.Publish("resource "+"a", wire.ResourceUpdated("newer"))

	for _, tt := range []struct {
		who  string
		s    *subscriber
		want []string
	}{
		{"both", both, []string{updated("newer"), string(tools.Plain())}},
		{"both, again", both, nil},
		{"one", one, nil},
		{"none", none, nil},
	} {
		texts, signs, roused := taken(tt.s)
		if !slices.Equal(texts, tt.want) || signs != 0 || roused != (tt.want != nil) {
			t.Errorf("%s: got %q, signs %b, roused %v, want %q", tt.who, texts, signs, roused, tt.want)
		}
	}
	both.Leave()
	b.Publish(toolsTopic, tools)
	if texts, _, roused := taken(both); texts != nil || roused {
		t.Errorf("after Leave: got %q", texts)
	}
	if n := b.Len(); n != 2 {
		t.Errorf("Len: got %d, want 2", n)
	}
}

func TestQueueIsBoundedByTopics(t *testing.T) {
	b := conn.NewBroker(1, 0, 0)
	topics := []string{}
	for i := range 100 {
		topics = append(topics, "resource "+fmt.Sprint(i))
	}
	s := join(t, b, false, topics...)
	for range 3 {
		for i, topic := range topics {
			b.Publish(topic, wire.ResourceUpdated(fmt.Sprint(i)))
		}
	}
	if texts, _, _ := taken(s); len(texts) != len(topics) || texts[99] != updated("99") {
		t.Errorf("got %d changes, want one for each of %d topics", len(texts), len(topics))
	}
}

func TestLimits(t *testing.T) {
	b := conn.NewBroker(1, 0, 0)
	s := join(t, b, false, toolsTopic)
	_, err := b.Join(conn.Subscribing{Wake: func() {}})
	if full, ok := errors.AsType[*share.FullError](err); !ok || full.Limit != 1 {
		t.Errorf("Join beyond the limit: got %v", err)
	}
	s.Leave()
	s = join(t, b, false, toolsTopic)
	b.Close()
	if _, signs, roused := taken(s); signs != conn.Over || !roused {
		t.Errorf("after Close: signs %b, roused %v", signs, roused)
	}
	if _, err := b.Join(conn.Subscribing{Wake: func() {}}); !errors.Is(err, conn.ErrBrokerClosed) {
		t.Errorf("Join after Close: got %v", err)
	}
	s.Leave()
}

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := conn.NewBroker(10, 0, time.Minute)
		s, deaf := join(t, b, true), join(t, b, false)
		for range 3 {
			start := time.Now()
			<-s.wake
			if _, signs := s.Take(nil); signs != conn.KeepAlive || time.Since(start) != time.Minute {
				t.Errorf("signs %b after %v, want a sign of life after a minute", signs, time.Since(start))
			}
		}
		if _, signs, roused := taken(deaf); signs != 0 || roused {
			t.Error("a sign of life for one who wants none")
		}
		s.Leave()
		deaf.Leave()
		time.Sleep(time.Hour)
		if _, signs, roused := taken(s); signs != 0 || roused {
			t.Error("a sign of life after Leave")
		}
		s = join(t, b, true)
		time.Sleep(time.Minute)
		synctest.Wait()
		if _, signs, _ := taken(s); signs != conn.KeepAlive {
			t.Error("no sign of life for one who joined later")
		}
		s.Leave()
	})
}

// TestConcurrentUse is for the race detector: every subscriber hears of the
// last change, whatever happens around it.
func TestConcurrentUse(t *testing.T) {
	b := conn.NewBroker(1000, 0, time.Millisecond)
	last := wire.ResourceUpdated("last")
	var ready, all sync.WaitGroup
	for range 20 {
		ready.Add(1)
		all.Go(func() {
			join(t, b, true, toolsTopic).Leave()
			s := join(t, b, true, toolsTopic, promptsTopic)
			defer s.Leave()
			ready.Done()
			for range s.wake {
				changes, _ := s.Take(nil)
				if slices.Contains(changes, last) {
					return
				}
			}
		})
		all.Go(func() { b.Publish(toolsTopic, wire.NewChange(protocol.MethodToolsChanged, nil)) })
	}
	ready.Wait()
	b.Publish(promptsTopic, last)
	all.Wait()
	if n := b.Len(); n != 0 {
		t.Errorf("%d subscribers left, want 0", n)
	}
}

// One principal has a share of the subscribers, and of the room for what they
// name; what it may not take is not told.
func TestShareOfPrincipal(t *testing.T) {
	join := func(b *conn.Broker, owner string, topics ...string) (*conn.Subscriber, bool) {
		s, err := b.Join(conn.Subscribing{Owner: owner, Topics: topics, Wake: func() {}})
		full, isFull := errors.AsType[*share.FullError](err)
		if isFull != (s == nil) || isFull && !full.Own {
			t.Fatalf("%v, %v", s, err)
		}
		return s, !isFull
	}
	b := conn.NewBroker(100, 0, 0)
	var last *conn.Subscriber
	for n := range 11 {
		s, ok := join(b, "alice", toolsTopic)
		if ok != (n < 10) {
			t.Errorf("subscription %d of alice: %v", n, ok)
		}
		if ok {
			last = s
		}
	}
	if _, ok := join(b, "bob", toolsTopic); !ok {
		t.Error("bob finds no room")
	}
	last.Leave()
	last.Leave()
	if _, ok := join(b, "alice", toolsTopic); !ok {
		t.Error("alice finds no room after one has left")
	}
	if _, ok := join(b, "alice"); ok {
		t.Error("leaving twice makes room twice")
	}
	b = conn.NewBroker(100, 0, 0)
	long := strings.Repeat("x", conn.MaxTopics/10-1000)
	if _, ok := join(b, "alice", long); !ok {
		t.Error("the share of alice is too small")
	}
	if _, ok := join(b, "alice", long); ok {
		t.Error("alice has the room of others")
	}
	if _, ok := join(b, "bob", long); !ok {
		t.Error("bob finds no room for what he names")
	}
}

func TestMay(t *testing.T) {
	b := conn.NewBroker(1, 0, 0)
	allowed := map[string]bool{toolsTopic: true}
	s, err := b.Join(conn.Subscribing{Topics: []string{toolsTopic, promptsTopic}, Wake: func() {}, May: func(topic string) bool {
		b.Publish("other", nil) // no lock is held
		return allowed[topic]
	}})
	if err != nil {
		t.Fatal(err)
	}
	for want := range 3 {
		b.Publish(toolsTopic, wire.ResourceUpdated("a"))
		b.Publish(promptsTopic, wire.ResourceUpdated("b"))
		allowed[promptsTopic] = want == 1
		if changes, _ := s.Take(nil); len(changes) != 1+want%2 {
			t.Errorf("%d changes with %v", len(changes), allowed)
		}
	}
}
