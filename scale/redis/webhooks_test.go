//go:build unix

package redis

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/internal/test/testexec"
	"github.com/talaria-go/mcp/scale"
)

var hooks = flag.Duration("webhooks", 0, "how long TestWebhooks kills replicas and the engine; 0 leaves the kills of replicas out")

// hooksEngine is the variable of the environment that makes the test program a replica of
// TestWebhooks: the URL of the engine.
const hooksEngine = "TALARIA_TEST_WEBHOOKS_ENGINE"

// What happens in TestWebhooks.
const (
	hookCount   = 40                     // subscriptions to all events, of four principals
	hookRare    = 20                     // subscriptions of which each gets one event of a hundred
	hookLate    = 4                      // subscriptions to a type that a deploy adds
	hookEvery   = 200 * time.Millisecond // between two events
	hookCycle   = 90 * time.Second       // in which a replica is killed, and then the engine
	hookSilence = 2 * time.Minute        // two leases
)

func TestMain(m *testing.M) {
	if os.Getenv(hooksEngine) != "" {
		testcmd.Main("replica", serveHooks)
		return
	}
	os.Exit(m.Run())
}

// hookServer is a replica, or what emits. A late one has the type that a deploy adds.
func hookServer(store scale.Store, late bool) *mcp.Server {
	logger := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "ticks", Version: "1"}, &mcp.Options{
		Store: store, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}, Webhooks: &mcp.WebhookOptions{Loopback: true}, Logger: &logger,
	})
	all := func(context.Context, struct{}, tick) (bool, error) { return true, nil }
	s.MustAdd(mcp.EventType("tick", all), mcp.EventType("rare", func(_ context.Context, in tick, e tick) (bool, error) { return e.N%100 == in.N, nil }))
	if late {
		s.MustAdd(mcp.EventType("late", all))
	}
	return s
}

// hookOf returns the type and the arguments of a subscription, and by how much its events
// differ.
func hookOf(i int) (name string, arguments any, step int) {
	switch {
	case i < hookCount:
		return "tick", nil, 1
	case i < hookCount+hookRare:
		return "rare", tick{i - hookCount}, 100
	}
	return "late", nil, 1
}

// tick is an event.
type tick struct{ N int }

// serveHooks is the main function of a replica, whose arguments are its address and whether it
// is late.
func serveHooks(ctx context.Context, args []string) error {
	store, err := Open(ctx, Options{URL: os.Getenv(hooksEngine), Prefix: "hooks"})
	if err != nil {
		return err
	}
	defer store.Close()
	s := hookServer(store, args[1] == "true")
	endpoint := s.Handler()
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		endpoint.ServeHTTP(w, r.WithContext(mcp.WithIdentity(r.Context(), &mcp.Identity{Subject: r.Header.Get("X-User")})))
	})
	return testcmd.Serve(ctx, args[0], handler, func(ctx context.Context) error { return errors.Join(s.Drain(ctx), s.Shutdown(ctx)) })
}

// hookReceiver is the endpoints of all subscriptions, of which each has a path.
type hookReceiver struct {
	t *testing.T

	mu  sync.Mutex
	got map[string][]int // events, by path
	at  map[string]time.Time
	// silence is the longest time between two events of a subscription.
	silence time.Duration
}

// ServeHTTP implements http.Handler. It refuses one event of 200.
func (r *hookReceiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	var body struct {
		Type, Challenge string
		Data            tick
	}
	text, err := io.ReadAll(req.Body)
	switch {
	case err != nil: // its sender was killed
		return
	case json.Unmarshal(text, &body) != nil || body.Type != "" && body.Type != "verification":
		r.t.Errorf("received %s", text)
	case body.Type != "":
		fmt.Fprintf(w, `{"challenge":%q}`, body.Challenge)
	case rand.IntN(200) == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		r.mu.Lock()
		defer r.mu.Unlock()
		path, now := req.URL.Path, time.Now()
		r.got[path] = append(r.got[path], body.Data.N)
		if before, ok := r.at[path]; ok && strings.HasPrefix(path, "/tick/") {
			r.silence = max(r.silence, now.Sub(before))
		}
		r.at[path] = now
	}
}

// behind returns a subscription that has not received the last of n events.
func (r *hookReceiver) behind(n int) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range hookCount + hookRare + hookLate {
		name, _, step := hookOf(i)
		last := n - 1
		if step > 1 {
			last -= (last - (i - hookCount) + step) % step
		}
		if path := fmt.Sprint("/", name, "/", i); last >= 0 && !slices.Contains(r.got[path], last) {
			return path
		}
	}
	return ""
}

// Webhooks of three processes lose no event and keep their order, while a process ends or is
// killed, a deploy adds a type, and the engine is killed.
func TestWebhooks(t *testing.T) {
	engine := start(t, "--appendonly", "yes", "--appendfsync", "always")
	url := "redis://" + engine.address()
	r := &hookReceiver{t: t, got: map[string][]int{}, at: map[string]time.Time{}}
	endpoint := httptest.NewServer(r)
	t.Cleanup(endpoint.Close)
	var replicas [3]*process
	var addresses [3]string
	begin := func(i int, late bool) {
		replicas[i] = launch(t, true, []string{hooksEngine + "=" + url, "GOMAXPROCS=1"}, os.Args[0], addresses[i], fmt.Sprint(late))
	}
	for i := range replicas {
		addresses[i] = testexec.FreeAddr(t)
		begin(i, false)
	}
	subscribe := func(i, at int) error {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		c, err := client.Connect(ctx, client.HTTP("http://"+addresses[at]+"/mcp", &client.HTTPOptions{Header: http.Header{"X-User": {fmt.Sprint("user", i%4)}}}), nil)
		if err != nil {
			return err
		}
		defer c.Close()
		name, arguments, _ := hookOf(i)
		return c.Request(ctx, "events/subscribe", map[string]any{"name": name, "arguments": arguments, "delivery": map[string]string{
			"mode": "webhook", "url": fmt.Sprint(endpoint.URL, "/", name, "/", i), "secret": "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32)),
		}}, nil)
	}
	for i := range hookCount + hookRare {
		if err := subscribe(i, i%3); err != nil {
			t.Fatal(err)
		}
	}
	store, err := Open(t.Context(), Options{URL: url, Prefix: "hooks"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(store.Close)
	emitter := hookServer(store, true)
	t.Cleanup(func() { _ = emitter.Shutdown(context.Background()) })

	ctx, cancel := context.WithTimeout(t.Context(), cmp.Or(*hooks, time.Hour))
	defer cancel()
	again := map[int]bool{} // events that the log may have twice
	n := 0
	var emitting, refreshing sync.WaitGroup
	emitting.Go(func() {
		for ; ctx.Err() == nil; n++ {
			for _, name := range []string{"tick", "rare", "late"} {
				for tries := 0; emitter.Emit(t.Context(), mcp.Occurrence{Name: name, Data: tick{n}, ID: fmt.Sprint(n)}) != nil; tries++ {
					if again[n] = true; tries == 600 {
						t.Errorf("event %d cannot be emitted", n)
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}
			time.Sleep(hookEvery)
		}
	})
	refreshing.Go(func() {
		for ctx.Err() == nil {
			_ = subscribe(rand.IntN(hookCount+hookRare), rand.IntN(3)) // some replicas and the engine are down
			time.Sleep(hookEvery)
		}
	})
	killEngine := func() {
		t.Log("the engine is killed")
		engine.kill()
		time.Sleep(300 * time.Millisecond)
		engine.run()
	}
	late := func() { // at the first replica that the deploy has reached
		for i := range hookLate {
			if err := subscribe(hookCount+hookRare+i, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	if *hooks == 0 {
		time.Sleep(time.Second)
		replicas[0].end(t)
		begin(0, true)
		late()
		time.Sleep(time.Second)
		killEngine()
		time.Sleep(2 * time.Second)
		cancel()
	}
	for k := 0; *hooks > 0 && ctx.Err() == nil; k++ {
		sleep(ctx, 20*time.Second)
		if ctx.Err() == nil {
			t.Logf("replica %d is killed", k%3)
			replicas[k%3].kill()
			begin(k%3, true)
		}
		if k == 0 {
			late()
		}
		if sleep(ctx, hookCycle-25*time.Second); ctx.Err() == nil {
			killEngine()
		}
		sleep(ctx, 5*time.Second)
	}
	<-ctx.Done()
	emitting.Wait()
	refreshing.Wait()
	for end := time.Now().Add(hookSilence + time.Minute); r.behind(n) != ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("subscription %s has not received its last of %d events", r.behind(n), n)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	received, repeated := 0, 0
	for path, got := range r.got {
		var i int
		if _, err := fmt.Sscan(path[strings.LastIndexByte(path, '/')+1:], &i); err != nil {
			t.Fatal(path)
		}
		name, _, step := hookOf(i)
		next := 0
		switch name {
		case "rare":
			next = i - hookCount
		case "late":
			next = got[0]
		}
		for _, one := range got {
			received++
			switch {
			case one == next:
				next += step
			case one > next:
				t.Fatalf("subscription %s: event %d came before %d", path, one, next)
			case !again[one]:
				repeated++
			}
		}
	}
	t.Logf("%d events, %d deliveries, %d repeated, %d events emitted again; longest silence %v", n, received, repeated, len(again), r.silence)
	if repeated > received*3/100 {
		t.Errorf("%d of %d deliveries were repeated", repeated, received)
	}
	if r.silence >= hookSilence {
		t.Errorf("a subscription received nothing for %v", r.silence)
	}
}

// sleep waits, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
