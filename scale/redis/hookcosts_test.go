//go:build unix

package redis

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/mcptest"
)

// monitor returns a function that counts what clients have asked of the engine so far, by
// script or command, without what replicas do from time to time.
func (s *server) monitor() func() map[string]int {
	conn, err := net.Dial("tcp", s.address())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte("MONITOR\r\n")); err != nil {
		s.t.Fatal(err)
	}
	scripts := map[string]string{putScript.sha: "put", touchScript.sha: "touch", appendScript.sha: "append", readScript.sha: "read", dueScript.sha: "", takeScript.sha: "take"}
	var mu sync.Mutex
	counts, seen := map[string]int{}, make(chan string, 100)
	go func() {
		lines := bufio.NewReader(conn)
		for {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			args := strings.Split(line, `"`)
			if len(args) < 2 || strings.Contains(args[0], "lua]") || strings.Contains(line, ":e:contact") {
				continue
			}
			name := strings.ToLower(args[1])
			if name == "evalsha" {
				name = scripts[args[3]]
			}
			if name == "ping" && len(args) > 3 {
				seen <- args[3]
				continue
			}
			mu.Lock()
			counts[name]++
			mu.Unlock()
		}
	}()
	n := 0
	return func() map[string]int {
		n++
		mark := fmt.Sprint("mark", n)
		for s.say("PING", mark); <-seen != mark; {
		}
		mu.Lock()
		defer mu.Unlock()
		all := maps.Clone(counts)
		maps.DeleteFunc(all, func(name string, _ int) bool {
			return !slices.Contains([]string{"put", "touch", "append", "read", "take", "hmget", "eval"}, name)
		})
		return all
	}
}

// hookDocs is a server whose events concern one document, and a client for each user.
type hookDocs struct {
	t   testing.TB
	s   *mcp.Server
	url string
}

type hookArguments struct{ Document string }

func newHookDocs(t testing.TB, store *Store, url string, transport http.RoundTripper) *hookDocs {
	logger := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "docs", Version: "1"}, &mcp.Options{
		Store: store, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}, Webhooks: &mcp.WebhookOptions{Loopback: true, Transport: transport}, Logger: &logger,
	})
	s.MustAdd(mcp.EventType("comment", func(_ context.Context, in hookArguments, c map[string]string) (bool, error) {
		return in.Document == c["document"], nil
	}))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return &hookDocs{t, s, url}
}

func (d *hookDocs) client(user string) *mcptest.Client {
	return mcptest.New(d.t, d.s, mcptest.As(mcp.Identity{Subject: user}))
}

// subscribe subscribes to a document, or refreshes that; method may be the opposite.
func (d *hookDocs) subscribe(c *mcptest.Client, method, document, path string) {
	d.t.Helper()
	if _, err := c.TryRequest(method, map[string]any{"name": "comment", "arguments": hookArguments{document}, "ttlMs": 86_400_000, "delivery": map[string]string{
		"mode": "webhook", "url": d.url + path, "secret": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
	}}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *hookDocs) emit(document string) {
	d.t.Helper()
	if err := d.s.Emit(d.t.Context(), mcp.Occurrence{Name: "comment", Data: map[string]string{"document": document, "text": strings.Repeat("x", 400)}}); err != nil {
		d.t.Fatal(err)
	}
}

// echoing is an endpoint that agrees. It calls received for each event.
func echoing(received func()) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if bytes.Contains(text, []byte(`"challenge"`)) {
			_, _ = w.Write(text)
			return
		}
		received()
	})
}

// TestWebhookCommands counts the commands that webhooks send to the engine.
func TestWebhookCommands(t *testing.T) {
	const n = 32
	engine := start(t)
	counts := engine.monitor()
	events := make(chan struct{}, n)
	endpoint := httptest.NewServer(echoing(func() { events <- struct{}{} }))
	t.Cleanup(endpoint.Close)
	d := newHookDocs(t, open(t, user(t, engine)), endpoint.URL, nil)
	c := d.client("ann")
	d.subscribe(c, "events/subscribe", "first", "/0")
	each := func(do func(i int)) func() {
		return func() {
			for i := range n {
				do(i)
			}
		}
	}
	for _, step := range []struct {
		name string
		do   func()
		most map[string]float64 // by command; 0 for all others
	}{
		{"subscribe, an endpoint that has to agree", each(func(i int) { d.subscribe(c, "events/subscribe", "a", fmt.Sprint("/", i+1)) }),
			map[string]float64{"hmget": 2, "put": 5, "read": 1}},
		{"subscribe, one that has agreed", each(func(i int) { d.subscribe(c, "events/subscribe", fmt.Sprint("b", i), "/0") }),
			map[string]float64{"hmget": 2, "put": 1, "read": 1}},
		{"refresh", each(func(i int) { d.subscribe(c, "events/subscribe", fmt.Sprint("b", i), "/0") }),
			map[string]float64{"hmget": 3, "put": 1, "read": 1}},
		{"an event that none of 65 gets", each(func(int) { d.emit("none") }), map[string]float64{"append": 1}},
		{"an event and its delivery", each(func(int) { d.emit("b7"); <-events }), map[string]float64{"append": 1, "put": 1}},
		{"an event of a burst and its delivery", func() { each(func(int) { d.emit("b7") })(); each(func(int) { <-events })() },
			map[string]float64{"append": 1, "put": 0.5}},
		{"unsubscribe", each(func(i int) { d.subscribe(c, "events/unsubscribe", fmt.Sprint("b", i), "/0") }), map[string]float64{"hmget": 2, "put": 1}},
	} {
		before, began := counts(), time.Now()
		step.do()
		after := counts()
		idle := 4 + 2*time.Since(began).Seconds() // looks at the log and its birth, and scripts that the engine did not know
		for name, count := range after {
			if used := float64(count - before[name]); used > n*step.most[name]+idle {
				t.Errorf("%s: %.1f × %s, at most %g", step.name, used/n, name, step.most[name])
			}
		}
		t.Logf("%s: %v", step.name, difference(after, before, n))
	}
}

// difference returns what counts have grown by, for each of n.
func difference(after, before map[string]int, n int) (lines []string) {
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if used := after[name] - before[name]; used > 0 {
			lines = append(lines, fmt.Sprintf("%s %.2f", name, float64(used)/float64(n)))
		}
	}
	return lines
}

// BenchmarkDelivery compares deliveries to an endpoint over TLS, the position kept, with bare
// signed POSTs of the same body, in turns, by the medians of their ratios.
func BenchmarkDelivery(b *testing.B) {
	const burst = 256
	var mu sync.Mutex
	gate := make(chan struct{})
	var left atomic.Int64 // of a burst, whose last one alone wakes this goroutine
	received := make(chan struct{}, 1)
	endpoint := httptest.NewTLSServer(echoing(func() {
		mu.Lock()
		open := gate
		mu.Unlock()
		<-open
		if left.Add(-1) == 0 {
			received <- struct{}{}
		}
	}))
	b.Cleanup(endpoint.Close)
	transport := endpoint.Client().Transport
	d := newHookDocs(b, open(b, user(b, start(b))), endpoint.URL, transport)
	d.subscribe(d.client("ann"), "events/subscribe", "a", "/")
	client := &http.Client{Transport: transport}
	body := []byte(`{"eventId":"evt_ABCDEFGHIJKLMNOPQRSTUVWXYZ","name":"comment","timestamp":"2026-11-28T04:00:00.123456789Z","data":{"document":"a","text":"` +
		strings.Repeat("x", 400) + `"},"cursor":"e1abcdefghijklm.abcdefghijk"}`)
	bare := func() error {
		now, id := time.Now(), "evt_ABCDEFGHIJKLMNOPQRSTUVWXYZ"
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, endpoint.URL+"/", bytes.NewReader(body))
		if err != nil {
			return err
		}
		for name, value := range map[string]string{
			"Content-Type": "application/json", wire.HeaderWebhookID: id, wire.HeaderWebhookTimestamp: strconv.FormatInt(now.Unix(), 10),
			wire.HeaderWebhookSignature: wire.WebhookSignature(id, now, body, make([]byte, 32)), wire.HeaderSubscriptionID: "sub_ABCDEFGHIJKLMNOPQRSTUVWXYZ1",
		} {
			req.Header.Set(name, value)
		}
		res, err := client.Do(req)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		return errors.Join(err, res.Body.Close())
	}
	var ours, theirs, ratios []float64
	for b.Loop() {
		for range burst {
			d.emit("a")
		}
		left.Store(burst)
		began := time.Now()
		close(gate)
		<-received
		ours = append(ours, time.Since(began).Seconds()*1e6/burst)
		left.Store(burst)
		began = time.Now()
		for range burst {
			if err := bare(); err != nil {
				b.Fatal(err)
			}
		}
		<-received
		theirs = append(theirs, time.Since(began).Seconds()*1e6/burst)
		ratios = append(ratios, ours[len(ours)-1]/theirs[len(theirs)-1])
		mu.Lock()
		gate = make(chan struct{})
		mu.Unlock()
	}
	for _, list := range [][]float64{ours, theirs, ratios} {
		slices.Sort(list)
	}
	b.ReportMetric(ours[len(ours)/2], "µs-delivery")
	b.ReportMetric(theirs[len(theirs)/2], "µs-POST")
	b.ReportMetric(ratios[len(ratios)/2], "delivery/POST")
}

// BenchmarkIdleWebhooks measures what 10,000 webhooks without events make the engine do, in
// commands a second of two intervals of renewal.
func BenchmarkIdleWebhooks(b *testing.B) {
	const users, each, seconds = 100, 100, 40
	engine := start(b)
	endpoint := httptest.NewServer(echoing(func() {}))
	b.Cleanup(endpoint.Close)
	d := newHookDocs(b, open(b, user(b, engine)), endpoint.URL, nil)
	for user := range users {
		c := d.client(fmt.Sprint("user", user))
		for i := range each {
			d.subscribe(c, "events/subscribe", fmt.Sprint("document", i), "/")
		}
		c.Close()
	}
	counts := engine.monitor()
	sum := func() (all int) {
		for _, n := range counts() {
			all += n
		}
		return all
	}
	for b.Loop() {
		before := sum()
		<-time.After(seconds * time.Second)
		b.ReportMetric(float64(sum()-before)/seconds, "commands/s")
	}
}
