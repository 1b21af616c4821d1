package deploy

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

var revisions = []protocol.Revision{protocol.V20251125, protocol.V20260728}

// What clients and servers do together, through each proxy, with HTTP/1.1, HTTP/2
// and WebSocket to the client.
func TestTraffic(t *testing.T) {
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := newFleet(t, false)
			web := p.start(t, servers.addresses, false)
			for _, version := range []int{1, 2} {
				browser := web.browser(t, version)
				address := "https://" + host + "/mcp"
				for _, revision := range revisions {
					t.Run(fmt.Sprintf("http%d/%s", version, revision), func(t *testing.T) {
						works(t, servers, web, client.HTTP(address, &client.HTTPOptions{Client: browser, MaxMessage: maxMessage}), revision)
					})
				}
				t.Run(fmt.Sprintf("http%d/leaves", version), func(t *testing.T) { leaves(t, servers, web, browser) })
				t.Run(fmt.Sprintf("http%d/deleted", version), func(t *testing.T) { deleted(t, web, browser, version) })
				t.Run(fmt.Sprintf("http%d/too much", version), func(t *testing.T) { tooMuch(t, p, servers, web, browser) })
			}
			for _, revision := range revisions {
				t.Run(fmt.Sprintf("websocket/%s", revision), func(t *testing.T) {
					works(t, servers, web, client.WebSocket("wss://"+host+"/mcp/ws", &client.HTTPOptions{Client: web.browser(t, 1), MaxMessage: maxMessage}), revision)
				})
			}
		})
	}
}

// works does with a client what it can do with every transport.
func works(t *testing.T, servers *fleet, web *site, transport client.Transport, revision protocol.Revision) {
	c := web.connect(t, transport, revision)
	for range 2 * len(shippedReplicas) {
		if r, err := c.Call(t.Context(), "hello", nil); err != nil || r.Text() != "hello" {
			t.Fatalf("hello: %v, %v", r, err)
		}
	}

	key := t.Name() + " acknowledged"
	if r, err := c.Call(t.Context(), "acknowledged", keyIn{key}, client.OnProgress(func(p client.Progress) {
		servers.call(key).seen <- int(p.Progress)
	})); err != nil || r.Text() != "all arrived" {
		t.Errorf("events, one after the other: %v, %v", r, err)
	}

	large := strings.Repeat("0123456789abcdef", 8<<20/16)
	if n, err := client.Call[int](t.Context(), c, "length", textIn{large}); err != nil || n != len(large) {
		t.Errorf("8 MiB of arguments: %d, %v", n, err)
	}
	both := large[:3<<20]
	if r, err := c.Call(t.Context(), "echo", textIn{both}); err != nil || r.Text() != both {
		t.Errorf("3 MiB both ways: %v", err)
	}

	heard := make(chan client.Notification, 10)
	s, err := c.Listen(t.Context(), client.Filter{ResourceSubscriptions: []string{watched}}, func(n client.Notification) { heard <- n })
	if err != nil {
		t.Fatal(err)
	}
	if r, err := c.Call(t.Context(), "touch", nil); err != nil {
		t.Errorf("touch: %v, %v", r, err)
	}
	select {
	case n := <-heard:
		if !strings.Contains(string(n.Params), watched) {
			t.Errorf("heard %s %s", n.Method, n.Params)
		}
	case <-time.After(timeLimit):
		t.Error("the change was not heard")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// TLS may end before HAProxy, which then writes to the client itself, and must not
// let an event wait for the next. An event is late if the next one was sent before
// it came: half of them or more are, if they wait for each other, however often one
// looks; on a busy machine it may be so once.
func TestWithoutTLS(t *testing.T) {
	servers := newFleet(t, false)
	p := proxies["haproxy"]
	withTLS := p.prepare
	p.prepare = func(t *testing.T, s setup, text string) {
		line := " ssl crt /etc/haproxy/mcp.pem alpn h2,http/1.1"
		withTLS(t, s, replace(t, text, line, " # "+line))
	}
	web := p.start(t, servers.addresses, false)
	c := web.connect(t, client.HTTP("http://"+host+"/mcp", &client.HTTPOptions{Client: web.browser(t, 1)}), protocol.V20260728)
	const looks = 5
	var late [looks]atomic.Int64
	for look := range looks {
		key := fmt.Sprint(look)
		if r, err := c.Call(t.Context(), "paced", keyIn{key}, client.OnProgress(func(p client.Progress) {
			if servers.call(key).sent.Load() > int64(p.Progress) {
				late[look].Add(1)
			}
		})); err != nil || r.Text() != "all sent" {
			t.Fatalf("events every %v: %v, %v", pace, r, err)
		}
		if late[look].Load() < steps/2-1 {
			return
		}
	}
	t.Errorf("of %d events, half came after the next was sent, however often it was tried", steps)
}

// leaves: when a client ends its request, its call is cancelled.
func leaves(t *testing.T, servers *fleet, web *site, browser *http.Client) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := servers.call(t.Name())
	left := make(chan error, 1)
	go func() {
		_, _, err := web.send(ctx, browser, http.MethodPost, tool("wait", fmt.Sprintf(`{"key":%q}`, t.Name())), "")
		left <- err
	}()
	select {
	case <-c.begun:
	case err := <-left:
		t.Fatalf("the call ended before it was left: %v", err)
	}
	cancel()
	if err := <-left; err == nil {
		t.Error("the request was answered")
	}
	select {
	case <-c.ended:
	case <-time.After(timeLimit):
		t.Error("the call goes on without its client")
	}
}

// deleted: a session that was deleted is unknown, to whichever replica the next
// request goes.
func deleted(t *testing.T, web *site, browser *http.Client, version int) {
	res, text, err := web.send(t.Context(), browser, http.MethodPost, initialize, "")
	if err != nil || res.StatusCode != http.StatusOK || res.ProtoMajor != version {
		t.Fatalf("initialize: %v, %s, %v", res, text, err)
	}
	session := res.Header.Get("Mcp-Session-Id")
	const ping = `{"jsonrpc":"2.0","id":2,"method":"ping"}`
	for range len(shippedReplicas) {
		if res, text, err := web.send(t.Context(), browser, http.MethodPost, ping, session); err != nil || res.StatusCode != http.StatusOK {
			t.Fatalf("ping: %v, %s, %v", res, text, err)
		}
	}
	if res, text, err := web.send(t.Context(), browser, http.MethodDelete, "", session); err != nil || res.StatusCode/100 != 2 {
		t.Fatalf("DELETE: %v, %s, %v", res, text, err)
	}
	for range len(shippedReplicas) {
		if res, text, err := web.send(t.Context(), browser, http.MethodPost, ping, session); err != nil || res.StatusCode != http.StatusNotFound {
			t.Fatalf("ping after DELETE: %v, %s, %v", res, text, err)
		}
	}
}

// tooMuch: what exceeds the limit of bodies is refused, with 413 if the proxy lets
// its client hear of it, and does not run.
func tooMuch(t *testing.T, p proxy, servers *fleet, web *site, browser *http.Client) {
	ran := servers.runs.Load()
	body := tool("length", fmt.Sprintf(`{"text":%q}`, strings.Repeat("x", maxMessage)))
	res, text, err := web.send(t.Context(), browser, http.MethodPost, body, "")
	if cut := err != nil || res.StatusCode == http.StatusBadGateway; cut && p.cuts {
		t.Logf("it was cut off: %v, %v", res, err)
	} else if err != nil || res.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("%v, %.200s, %v", res, text, err)
	}
	if n := servers.runs.Load(); n != ran {
		t.Error("the call ran")
	}
}

// Without a store the lines that the files have for that keep a session at its
// replica.
func TestWithoutStore(t *testing.T) {
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			web := p.start(t, newFleet(t, true).addresses, true)
			for range 4 {
				c := web.connect(t, client.HTTP("https://"+host+"/mcp", &client.HTTPOptions{Client: web.browser(t, 2)}), protocol.V20251125)
				for want := range 6 {
					if n, err := client.Call[int](t.Context(), c, "visit", nil); err != nil || n != want+1 {
						t.Fatalf("visit %d: %d, %v", want+1, n, err)
					}
				}
			}
		})
	}
}

// Replicas that are gone fail no call but those that they had, and none of these
// runs a second time.
func TestReplicasGone(t *testing.T) {
	for name, p := range proxies {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			servers := newFleet(t, false)
			web := p.start(t, servers.addresses, false)
			browser := web.browser(t, 1)
			type answer struct {
				status int
				text   string
				err    error
			}
			answered := make(chan answer, 1)
			go func() {
				res, text, err := web.send(t.Context(), browser, http.MethodPost, tool("wait", fmt.Sprintf(`{"key":%q}`, t.Name())), "")
				a := answer{text: text, err: err}
				if res != nil {
					a.status = res.StatusCode
				}
				answered <- a
			}()
			var at int
			select {
			case at = <-servers.call(t.Name()).begun:
			case a := <-answered:
				t.Fatalf("the call did not begin: %+v", a)
			}
			if err := servers.web[at].Close(); err != nil {
				t.Fatal(err)
			}
			if a := <-answered; a.err != nil || a.status != http.StatusBadGateway {
				t.Errorf("a call whose replica has gone: %+v, want 502", a)
			}
			// Another one goes that the proxy has nothing against yet.
			if err := servers.web[(at+1)%len(servers.web)].Close(); err != nil {
				t.Fatal(err)
			}
			for n := range 40 {
				res, text, err := web.send(t.Context(), browser, http.MethodPost, tool("hello", "{}"), "")
				if err != nil || res.StatusCode != http.StatusOK || !strings.Contains(text, "hello") {
					t.Errorf("call %d after that: %v, %s, %v", n, res, text, err)
				}
			}
			if n := servers.runs.Load(); n != 1 {
				t.Errorf("the call ran %d times", n)
			}
		})
	}
}
