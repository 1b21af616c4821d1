//go:build unix

package redis

import (
	"context"
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// eventReplica is a server with the event type "news".
func eventReplica(t testing.TB, store scale.Store) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "news", Version: "1"}, &mcp.Options{Store: store, StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}})
	s.MustAdd(mcp.EventType("news", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s
}

// Two servers with stores of their own on one engine emit, while clients of both stream and
// poll: each receives each event once, in one order.
func TestEvents(t *testing.T) {
	const each = 50
	for name, servers := range map[string][]*server{"alone": {start(t)}, "cluster": startCluster(t, 0)} {
		t.Run(name, func(t *testing.T) {
			o := user(t, servers...)
			replicas := []*mcp.Server{eventReplica(t, open(t, o)), eventReplica(t, open(t, o))}
			var ready, watching, emitting sync.WaitGroup
			var orders [4]string
			for i := range orders {
				rev := []protocol.Revision{protocol.V20251125, protocol.V20260728}[i/2] // by poll, by stream
				web := httptest.NewServer(replicas[i%2].Handler())
				t.Cleanup(web.Close)
				t.Cleanup(web.CloseClientConnections)
				c, err := client.Connect(t.Context(), client.HTTP(web.URL, nil), &client.Options{Revisions: []protocol.Revision{rev}})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Close() })
				ready.Add(1)
				begun := sync.OnceFunc(ready.Done)
				watching.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
					defer cancel()
					n := 0
					for e, err := range c.Watch(ctx, "news", nil, &client.WatchOptions{Moved: func(_ string, missed bool) {
						begun()
						if missed {
							t.Error("missed")
						}
					}}) {
						if err != nil {
							t.Errorf("client %d: after %d events: %v", i, n, err)
							return
						}
						orders[i] += e.ID + " "
						if n++; n == 2*each {
							return
						}
					}
				})
			}
			ready.Wait()
			for i, s := range replicas {
				emitting.Go(func() {
					for n := range each {
						if err := s.Emit(t.Context(), mcp.Occurrence{Name: "news", Data: map[string]string{"text": strings.Repeat("x", 400)}, ID: fmt.Sprint(i, "-", n)}); err != nil {
							t.Error(err)
						}
					}
				})
			}
			emitting.Wait()
			watching.Wait()
			for i, order := range orders {
				if order != orders[0] {
					t.Errorf("client %d: %s\nclient 0: %s", i, order, orders[0])
				}
			}
		})
	}
}

// BenchmarkEmit compares Emit with a bare Append of as many bytes, in pairs, by their medians,
// and counts the scripts that the engine runs for each pair.
func BenchmarkEmit(b *testing.B) {
	engine := start(b)
	store := open(b, user(b, engine))
	s := eventReplica(b, store)
	text, bare := map[string]string{"text": strings.Repeat("x", 400)}, make([]byte, 560)
	scripts := func() (n int) {
		for line := range strings.Lines(engine.say("INFO", "commandstats")) {
			if calls, ok := strings.CutPrefix(line, "cmdstat_evalsha:calls="); ok {
				_, _ = fmt.Sscan(calls[:strings.IndexByte(calls, ',')], &n)
			}
		}
		return n
	}
	pair := [2]func() error{
		func() error { return s.Emit(b.Context(), mcp.Occurrence{Name: "news", Data: text}) },
		func() error {
			_, _, err := store.Append(b.Context(), scale.AppendOp{Box: "bare", Data: bare, Keep: 4 << 20, TTL: 25 * time.Hour})
			return err
		},
	}
	var took [2][]time.Duration
	before, n := scripts(), 0
	for b.Loop() {
		for i := range pair {
			i = (i + n) % 2 // each is the first one half of the time
			began := time.Now()
			if err := pair[i](); err != nil {
				b.Fatal(err)
			}
			took[i] = append(took[i], time.Since(began))
		}
		n++
	}
	b.ReportMetric(float64(scripts()-before)/float64(n), "scripts/pair")
	var medians [2]float64
	for i := range took {
		slices.Sort(took[i])
		medians[i] = float64(took[i][n/2].Nanoseconds()) / 1000
	}
	b.ReportMetric(medians[0], "µs-Emit")
	b.ReportMetric(medians[1], "µs-Append")
	b.ReportMetric(medians[0]/medians[1], "Emit/Append")
}
