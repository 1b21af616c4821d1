package client

import (
	"iter"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

const toolsAck = `{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{"toolsListChanged":true}}}`

// What cancels a subscription is written before Close returns, so that the next
// one does not overtake it.
func TestListenCloseWrites(t *testing.T) {
	const rounds = 50
	said := make(chan string, 4*rounds)
	c := connect(t, scripted(t, func(s *script) {
		s.modernHello()
		for h := s.next(); h != nil; h = s.next() {
			switch h.Method {
			case protocol.MethodListen:
				said <- "listen " + string(h.ID)
				s.say(toolsAck, h.ID)
			case protocol.MethodCancelled:
				said <- "cancelled " + string(jsonx.Lookup(h.Params, []string{"requestId"}))
			}
		}
	}), modernOptions())
	for range rounds {
		sub, err := c.Listen(t.Context(), protocol.SubscriptionFilter{ToolsListChanged: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := sub.Close(); err != nil {
			t.Fatal(err)
		}
	}
	for range rounds {
		id := strings.TrimPrefix(<-said, "listen ")
		if next := <-said; next != "cancelled "+id {
			t.Fatalf("after listen %s came %q", id, next)
		}
	}
}

// A server that forgets to say which subscription a notification is for reaches
// the one that wants it, and none if it could be two.
func TestListenWithoutID(t *testing.T) {
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	const foreign = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":99}}}`
	const prompts = `{"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}`
	c := connect(t, scripted(t, func(s *script) {
		s.modernHello()
		if h := s.next(); h != nil {
			s.say(toolsAck, h.ID)
		}
		for _, text := range []string{foreign, prompts, changed} {
			s.say("%s", text)
		}
		if h := s.next(); h != nil {
			s.say(toolsAck, h.ID)
		}
		s.say(changed)
		s.drain()
	}), modernOptions())
	all, stop := iter.Pull(c.Notifications(t.Context()))
	defer stop()
	heard := make(chan string, 10)
	filter := protocol.SubscriptionFilter{ToolsListChanged: true}
	if _, err := c.Listen(t.Context(), filter, func(e Notification) { heard <- "first " + e.Method }); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		all()
	}
	if _, err := c.Listen(t.Context(), filter, func(e Notification) { heard <- "second " + e.Method }); err != nil {
		t.Fatal(err)
	}
	all() // both want it, so it is nobody's
	if got := <-heard; got != "first notifications/tools/list_changed" || len(heard) != 0 {
		t.Errorf("heard %q and %d more", got, len(heard))
	}
}
