package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/scale"
)

// mortalStore is a scale.Store that a replica can be cut off from, as if killed:
// nothing that it does reaches anybody.
type mortalStore struct {
	scale.Store
	dead atomic.Bool
}

func (s *mortalStore) err() error {
	if s.dead.Load() {
		return scale.ErrUnavailable
	}
	return nil
}

func (s *mortalStore) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Get(ctx, looks...)
}

func (s *mortalStore) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Put(ctx, writes...)
}

func (s *mortalStore) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

// TaskReplica is a server that shares its tasks, and a client of it alone.
type TaskReplica struct {
	*mcp.Server
	TaskClient
	store *mortalStore
	Ran   atomic.Int64 // handlers that began here
}

// kill cuts a replica off.
func (r *TaskReplica) Kill() { r.store.dead.Store(true) }

// TaskWeb is a conversation over HTTP without a network, as ann, or as who the
// identity says.
type TaskWeb struct {
	t *testing.T
	h http.Handler
	*frame.Identity
}

func (c *TaskWeb) Say(text string) []string {
	c.t.Helper()
	var m struct {
		Method string
		Params struct{ Name, TaskID string }
	}
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		c.t.Fatal(err)
	}
	ctx := core.WithPrincipal(c.t.Context(), "ann")
	if c.Identity != nil {
		ctx = mcp.WithIdentity(c.t.Context(), c.Identity)
	}
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(text))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {m.Method}, "Mcp-Name": {m.Params.Name + m.Params.TaskID}}
	res := httptest.NewRecorder()
	c.h.ServeHTTP(res, req)
	var all []string
	for line := range strings.Lines(res.Body.String()) {
		if line = strings.TrimSpace(strings.TrimPrefix(line, "data: ")); strings.HasPrefix(line, "{") {
			all = append(all, line)
		}
	}
	return all
}

// TaskReplicas runs test with n servers, in a bubble, which have been in touch with
// their store for long. tool is the one that all of them have.
func TaskReplicas(t *testing.T, n int, o *mcp.TaskOptions, tool func(r *TaskReplica, f *mcp.Frame) (string, error), test func(t *testing.T, all []*TaskReplica)) {
	synctest.Test(t, func(t *testing.T) {
		store := scale.NewLocal()
		var all []*TaskReplica
		for range n {
			r := &TaskReplica{store: &mortalStore{Store: store}}
			r.Server = Fixture(t, &mcp.Options{Store: r.store, StateKeys: SharedKeys})
			r.MustAdd(mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
				r.Ran.Add(1)
				return tool(r, f)
			}, mcp.AsTask(o)))
			r.TaskClient = TaskClient{T: t, C: &TaskWeb{t: t, h: r.Handler()}}
			all = append(all, r)
		}
		time.Sleep(time.Minute)
		defer func() { // a shutdown without a limit waits for a store that is away
			for _, r := range all {
				r.store.dead.Store(false)
			}
		}()
		test(t, all)
	})
}

// state returns the state of a task at a replica.
func (r *TaskReplica) State(id string) TaskAnswer {
	r.T.Helper()
	return r.Ask("tasks/get", fmt.Sprintf(`"taskId":%q`, id))
}
