package telemetry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// mortal is a store that a replica can be cut off from, as if it were killed.
type mortal struct {
	scale.Store
	dead atomic.Bool
}

func (s *mortal) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Get(ctx, looks...)
}

func (s *mortal) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.Put(ctx, writes...)
}

func (s *mortal) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	if s.dead.Load() {
		return nil, scale.ErrUnavailable
	}
	return s.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

// TestReplayed: a task that runs again at another replica has a span there, in the
// trace of the call that began it, and below the same span of the client.
func TestReplayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		shared := scale.NewLocal()
		nop := zerolog.Nop()
		replica := func(work func(f *mcp.Frame)) (*collector, *mortal, *mcp.Server) {
			told, store := newCollector(), &mortal{Store: shared}
			s := mcp.NewServer(mcp.Info{Name: "tasks", Version: "1"}, &mcp.Options{Store: store, Logger: &nop,
				StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}})
			s.MustAdd(mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
				work(f)
				return "done", nil
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1, Replay: true})))
			t.Cleanup(func() {
				ctx, cancel := context.WithCancel(context.Background())
				cancel()
				_ = s.Shutdown(ctx)
			})
			return told, store, told.watch(t, s, nil)
		}
		first, dies, a := replica(func(f *mcp.Frame) { <-f.Done() })
		second, _, b := replica(func(*mcp.Frame) {})
		to := func(s *mcp.Server) *client.Client {
			return connect(t, client.Local(func(ctx context.Context, conn connection) error {
				return s.ServeConn(mcp.WithIdentity(ctx, &alice), conn)
			}), protocol.Latest, nil)
		}
		of, at := to(a), to(b)
		time.Sleep(time.Minute)
		result, err := of.Call(t.Context(), "work", nil, client.Detached(), client.Meta("traceparent", remoteParent))
		if err != nil || result.Task == nil {
			t.Fatal(result, err)
		}
		dies.dead.Store(true)
		time.Sleep(time.Minute)
		task, err := at.Task(t.Context(), result.Task.ID)
		if err != nil || task.Status != protocol.TaskCompleted {
			t.Fatal(task, err)
		}
		for name, told := range map[string]*collector{"the first": first, "the second": second} {
			spans := told.named("tools/call work")
			if len(spans) != 1 {
				t.Errorf("%s replica has %d spans", name, len(spans))
				continue
			}
			if got := spans[0].Parent().TraceID().String(); got != remoteTrace || spans[0].Parent().SpanID().String() != "00f067aa0ba902b7" {
				t.Errorf("%s replica's span is below %v", name, spans[0].Parent())
			}
		}
	})
}
