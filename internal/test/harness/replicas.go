package harness

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// replicas is several servers behind a load balancer that sends each request to
// the next one.
type replicas struct {
	Servers []*mcp.Server
	URL     string
}

// NewReplicas starts n servers that share a store. add gives each its
// components; it gets the number of the server.
func NewReplicas(t *testing.T, n int, opts mcp.Options, add func(i int, s *mcp.Server), around ...func(i int, h http.Handler) http.Handler) *replicas {
	t.Helper()
	r := &replicas{}
	var handlers []http.Handler
	store := scale.NewLocal()
	for i := range n {
		o := opts
		o.Store, o.StateKeys = store, SharedKeys
		s := Fixture(t, &o)
		add(i, s)
		h := s.Handler()
		for _, around := range around {
			h = around(i, h)
		}
		r.Servers, handlers = append(r.Servers, s), append(handlers, h)
	}
	server := httptest.NewServer(testcmd.RoundRobin(handlers...))
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// connect connects a client that speaks one revision, and knows two roots.
func (r *replicas) Connect(t *testing.T, rev protocol.Revision) *client.Client {
	t.Helper()
	c, err := client.Connect(t.Context(), client.HTTP(r.URL, nil), &client.Options{
		Revisions: []protocol.Revision{rev}, Timeout: time.Minute, Roots: []client.Root{{URI: "file:///a"}, {URI: "file:///b"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// Visits counts in the session.
var Visits = mcp.NewStoredKey[int]("example.com/visits")

// ReadOnly is a store that can be told to take no writes, and counts what sessions
// ask of it.
type ReadOnly struct {
	scale.Store
	Refuses     atomic.Bool
	Looks, Puts atomic.Int64
}

func (s *ReadOnly) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if strings.HasPrefix(looks[0].Key.Partition, "session") {
		s.Looks.Add(1)
	}
	return s.Store.Get(ctx, looks...)
}

func (s *ReadOnly) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if strings.HasPrefix(writes[0].Key.Partition, "session") {
		s.Puts.Add(1)
	}
	if s.Refuses.Load() {
		return nil, fmt.Errorf("%w: connection refused by 10.1.2.3", scale.ErrUnavailable)
	}
	return s.Store.Put(ctx, writes...)
}
