package limits_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

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
	before := heapAndStacks()
	for user := range principals {
		c := mcptest.New(b, s, mcptest.As(mcp.Identity{Subject: fmt.Sprint("user", user)}))
		for i := range each {
			if _, err := c.TryRequest("events/subscribe", json.RawMessage(fmt.Sprintf(
				`{"name":"x","arguments":{"A":"%d%s"},"ttlMs":86400000,"delivery":{"mode":"webhook","url":"https://example.com/%s","secret":%q}}`, i, text, text, secret))); err != nil {
				b.Fatal(err)
			}
		}
		c.Close()
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
