package inflight

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

func start(t *testing.T, table *Requests, id protocol.ID) (context.Context, func()) {
	t.Helper()
	ctx, done, ok := table.Start(t.Context(), id)
	if !ok {
		t.Fatalf("Start(%v) failed", id)
	}
	return ctx, done
}

func TestInflight(t *testing.T) {
	var table Requests
	one, doneOne := start(t, &table, protocol.NewID(1))
	text, doneText := start(t, &table, protocol.NewID("1"))
	if _, _, ok := table.Start(t.Context(), protocol.NewID(1)); ok {
		t.Error("a second request with the id 1 was let in")
	}
	if got := table.Len(); got != 2 {
		t.Errorf("Len() = %d, want 2: 1 and \"1\" differ", got)
	}
	table.Cancel(protocol.NewID(7)) // nobody's
	table.Cancel(protocol.ID{})
	table.Cancel(protocol.NewID(1))
	if !Cancelled(one) || Cancelled(text) {
		t.Errorf("cancelled: 1 %v, \"1\" %v; want 1 alone", Cancelled(one), Cancelled(text))
	}
	doneOne()
	doneText()
	if got := table.Len(); got != 0 {
		t.Errorf("Len() = %d when all is done", got)
	}
	if text.Err() == nil || Cancelled(text) {
		t.Errorf("after done: %v; want a context that ended, but not by the client", context.Cause(text))
	}
	if _, _, ok := table.Start(t.Context(), protocol.NewID(1)); !ok {
		t.Error("the id of a request that is done is not free")
	}
}

// A cancelled request counts until its handler has returned, so that a client
// cannot pile up handlers that ignore their context, and so that its end does
// not touch a later request with the same id.
func TestInflightCancelledStays(t *testing.T) {
	var table Requests
	id := protocol.NewID(1)
	_, done := start(t, &table, id)
	table.Cancel(id)
	table.Cancel(id)
	if got := table.Len(); got != 1 {
		t.Fatalf("Len() = %d while the cancelled handler runs, want 1", got)
	}
	if _, _, ok := table.Start(t.Context(), id); ok {
		t.Fatal("its id was free")
	}
	done()
	second, doneSecond := start(t, &table, id)
	if second.Err() != nil {
		t.Error("the second request starts cancelled")
	}
	doneSecond()
}

func TestInflightCancelAll(t *testing.T) {
	var table Requests
	cause := errors.New("gone")
	before, done := start(t, &table, protocol.NewID(1))
	table.CancelAll(cause)
	if got := context.Cause(before); got != cause {
		t.Errorf("cause %v, want %v", got, cause)
	}
	after, doneAfter := start(t, &table, protocol.NewID(2))
	if got := context.Cause(after); got != cause {
		t.Errorf("a request that starts later: cause %v, want %v", got, cause)
	}
	done()
	doneAfter()
	if got := table.Len(); got != 0 {
		t.Errorf("Len() = %d", got)
	}
}

func TestInflightConcurrent(t *testing.T) {
	var table Requests
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 200 {
				id := protocol.NewID(fmt.Sprint(i % 5))
				ctx, done, ok := table.Start(context.Background(), id)
				table.Cancel(id)
				if ok {
					if ctx.Err() == nil {
						t.Errorf("worker %d: its request is not cancelled", w)
					}
					done()
				}
			}
		})
	}
	wg.Wait()
	if got := table.Len(); got != 0 {
		t.Errorf("Len() = %d at the end", got)
	}
}

// TestRequestsLimit: however many come at once, no more than the limit are
// entered, and a request without one always is.
func TestRequestsLimit(t *testing.T) {
	const limit, asked = 8, 100
	var table Requests
	var entered atomic.Int32
	var all sync.WaitGroup
	for i := range asked {
		all.Go(func() {
			fault := table.Enter(protocol.NewID(i), newTask(t.Context()), limit)
			if fault == nil {
				entered.Add(1)
			} else if fault.Code != protocol.CodeBusy {
				t.Errorf("got %v", fault)
			}
		})
	}
	all.Wait()
	if entered.Load() != limit || table.Len() != limit {
		t.Errorf("%d were entered, and %d are there", entered.Load(), table.Len())
	}
	if fault := table.Enter(protocol.NewID(asked), newTask(t.Context()), 0); fault != nil {
		t.Errorf("without a limit: %v", fault)
	}
}
