package limits_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// echo answers with what it gets, as an endpoint that agrees.
type echo struct{}

// RoundTrip implements http.RoundTripper.
func (echo) RoundTrip(r *http.Request) (*http.Response, error) {
	text, err := io.ReadAll(r.Body)
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(text)), Request: r}, err
}

// counted is a store that counts its calls.
type counted struct {
	scale.Store
	calls atomic.Int64
}

func (s *counted) Get(ctx context.Context, ops ...scale.GetOp) ([]scale.Entry, error) {
	s.calls.Add(1)
	return s.Store.Get(ctx, ops...)
}

func (s *counted) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	s.calls.Add(1)
	return s.Store.Put(ctx, writes...)
}

func (s *counted) Append(ctx context.Context, op scale.AppendOp) (scale.Rev, string, error) {
	s.calls.Add(1)
	return s.Store.Append(ctx, op)
}

func (s *counted) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	s.calls.Add(1)
	return s.Store.Read(ctx, box, after, reader)
}

// BenchmarkUnwanted measures an event that none of 10,000 webhooks gets: the time for each, the
// calls of the store, and the heap of an idle subscription.
func BenchmarkUnwanted(b *testing.B) {
	const principals, each = 100, 100
	quiet := zerolog.Nop()
	store, asked := &counted{Store: scale.NewLocal()}, make(chan struct{}, principals*each)
	s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{
		Store: store, StateKeys: [][]byte{make([]byte, 32)}, Logger: &quiet, Webhooks: &mcp.WebhookOptions{Transport: echo{}},
	})
	s.MustAdd(mcp.EventType("x", func(context.Context, struct{ A string }, map[string]string) (bool, error) {
		asked <- struct{}{}
		return false, nil
	}))
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	text := strings.Repeat("x", 60)
	var clients [principals]*mcptest.Client // with buffers, which are no part of subscriptions
	for user := range clients {
		clients[user] = mcptest.New(b, s, mcptest.As(mcp.Identity{Subject: fmt.Sprint("user", user)}))
	}
	before := heapAndStacks()
	for _, c := range clients {
		for i := range each {
			if _, err := c.TryRequest("events/subscribe", json.RawMessage(fmt.Sprintf(
				`{"name":"x","arguments":{"A":"%d%s"},"ttlMs":86400000,"delivery":{"mode":"webhook","url":"https://example.com/%s","secret":%q}}`, i, text, text, secret))); err != nil {
				b.Fatal(err)
			}
		}
	}
	emit := func() {
		if err := s.Emit(b.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{"text": "x"}}); err != nil {
			b.Fatal(err)
		}
		for range principals * each {
			<-asked
		}
	}
	emit()
	heap := heapAndStacks() - before
	calls := store.calls.Load()
	for b.Loop() {
		emit()
	}
	b.ReportMetric(float64(heap)/principals/each, "bytes/webhook")
	b.ReportMetric(float64(store.calls.Load()-calls)/float64(b.N), "calls/event")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/principals/each, "ns/webhook")
	if err := s.Shutdown(context.Background()); err != nil {
		b.Error(err)
	}
}

// hanging is a transport of endpoints that agree, of which those below /hang then do not
// answer, those below /drip answer a byte every 10 ms, and those below /flood a gigabyte. It
// notes the events of the others.
type hanging struct{ events chan struct{} }

// RoundTrip implements http.RoundTripper.
func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := echo{}.RoundTrip(r)
	switch kind, _, _ := strings.Cut(r.URL.Path[1:], "/"); {
	case err != nil || strings.HasPrefix(r.Header.Get("Webhook-Id"), "msg_verification_"):
	case kind == "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	case kind == "drip":
		res.Body = io.NopCloser(drip{r.Context()})
	case kind == "flood":
		res.Body = io.NopCloser(io.LimitReader(zeros{}, 1<<30))
	default:
		h.events <- struct{}{}
	}
	return res, err
}

// drip is a text that comes byte by byte, as long as ctx lasts.
type drip struct{ ctx context.Context }

// Read implements io.Reader.
func (d drip) Read(p []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(10 * time.Millisecond):
		return min(len(p), 1), nil
	}
}

// zeros is a text without end.
type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// BenchmarkBadEndpoints compares how long an event takes to an endpoint of one principal, with
// and without another one whose 100 endpoints hang, drip or answer a gigabyte, in turns. An
// iteration is 100 events at each.
func BenchmarkBadEndpoints(b *testing.B) {
	for _, kind := range []string{"hang", "drip", "flood"} {
		b.Run(kind, func(b *testing.B) { besideEndpoints(b, kind) })
	}
}

func besideEndpoints(b *testing.B, kind string) {
	quiet := zerolog.Nop()
	var servers [2]*mcp.Server
	var endpoints [2]hanging
	secret := "whsec_" + base64.StdEncoding.EncodeToString(make([]byte, 32))
	for i := range servers {
		endpoints[i] = hanging{make(chan struct{}, 1)}
		servers[i] = mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{Logger: &quiet, Webhooks: &mcp.WebhookOptions{Transport: endpoints[i]}})
		servers[i].MustAdd(mcp.EventType("x", func(context.Context, struct{}, map[string]string) (bool, error) { return true, nil }))
		subscribe := func(user, path string) {
			c := mcptest.New(b, servers[i], mcptest.As(mcp.Identity{Subject: user}))
			defer c.Close()
			if _, err := c.TryRequest("events/subscribe", json.RawMessage(fmt.Sprintf(
				`{"name":"x","ttlMs":86400000,"delivery":{"mode":"webhook","url":"https://example.com%s","secret":%q}}`, path, secret))); err != nil {
				b.Fatal(err)
			}
		}
		subscribe("ann", "/")
		for n := range 100 * i {
			subscribe("bob", fmt.Sprint("/", kind, "/", n))
		}
	}
	var took [2][]float64
	for b.Loop() {
		for range 100 {
			for i, s := range servers {
				began := time.Now()
				if err := s.Emit(b.Context(), mcp.Occurrence{Name: "x", Data: map[string]string{"text": "x"}}); err != nil {
					b.Fatal(err)
				}
				<-endpoints[i].events
				took[i] = append(took[i], time.Since(began).Seconds()*1e6)
			}
		}
	}
	for i, name := range []string{"alone", "beside"} {
		slices.Sort(took[i])
		b.ReportMetric(took[i][len(took[i])/2], "µs-median-"+name)
		b.ReportMetric(took[i][len(took[i])*99/100], "µs-p99-"+name)
	}
	b.ReportMetric(took[1][len(took[1])/2]/took[0][len(took[0])/2], "median-ratio")
	b.ReportMetric(took[1][len(took[1])*99/100]/took[0][len(took[0])*99/100], "p99-ratio")
	for _, s := range servers {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = s.Shutdown(ctx) // of requests that hang
		cancel()
	}
}
