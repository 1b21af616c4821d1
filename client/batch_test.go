package client

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/protocol"
)

func TestBatch(t *testing.T) {
	c := connect(t, serving(t, fixture(t, nil)), only(protocol.V20250326))
	results, err := c.Batch(t.Context(),
		Operation{Method: "tools/call", Params: map[string]any{"name": "sum", "arguments": sumIn{1, 2}}},
		Operation{Method: "ping"},
		Operation{Method: "no/such"},
		Operation{Method: "tools/call", Params: map[string]any{"name": "wait"}, Options: []CallOption{Timeout(10 * time.Millisecond)}},
		Operation{Method: "tools/call", Params: map[string]any{"name": "work"}, Options: []CallOption{OnProgress(func(Progress) {})}},
	)
	if err != nil || len(results) != 5 {
		t.Fatalf("%+v, %v", results, err)
	}
	if !strings.Contains(string(results[0].Result), "3") || results[0].Err != nil {
		t.Errorf("sum: %s, %v", results[0].Result, results[0].Err)
	}
	if string(results[1].Result) != "{}" {
		t.Errorf("ping: %s, %v", results[1].Result, results[1].Err)
	}
	if !errors.Is(results[2].Err, ErrUnsupported) {
		t.Errorf("no/such: %v", results[2].Err)
	}
	if !errors.Is(results[3].Err, ErrTimeout) {
		t.Errorf("wait: %v", results[3].Err)
	}
	if _, err := c.Batch(t.Context()); err == nil {
		t.Error("an empty batch was sent")
	}
}

func TestBatchOverHTTP(t *testing.T) {
	var failing bool
	tr := &fakeHTTP{name: "http://fake", respond: func(l *fakeLink, _ context.Context, m *link.Message) error {
		switch {
		case m.Method == protocol.MethodInitialize:
			l.answer(m, strings.Replace(fakeInitialize, "2025-06-18", "2025-03-26", 1))
		case m.Body[0] == '[':
			if failing {
				return errors.New("connection refused")
			}
			l.to.Receive([]byte(`[{"jsonrpc":"2.0","id":3,"result":{"n":3}},{"jsonrpc":"2.0","id":2,"error":{"code":1,"message":"two"}}]`), m)
		}
		return nil
	}}
	c := connect(t, tr, only(protocol.V20250326))
	results, err := c.Batch(t.Context(), Operation{Method: "a"}, Operation{Method: "b"}, Operation{Method: "c"})
	if err != nil {
		t.Fatal(err)
	}
	if code(results[0].Err) != 1 || string(results[1].Result) != `{"n":3}` || results[2].Err == nil || !strings.Contains(results[2].Err.Error(), "without a response") {
		t.Errorf("results %+v", results)
	}
	failing = true
	results, err = c.Batch(t.Context(), Operation{Method: "a"})
	if err != nil || results[0].Err == nil || !strings.Contains(results[0].Err.Error(), "connection refused") {
		t.Errorf("results %+v, %v", results, err)
	}
}

// A request of a batch whose time is over before the batch was sent is cancelled after it,
// so that the server knows which request is meant and answers the others.
func TestBatchCancelledAtOnce(t *testing.T) {
	c := connect(t, serving(t, fixture(t, nil)), only(protocol.V20250326))
	for range 200 {
		results, err := c.Batch(t.Context(),
			Operation{Method: "ping"},
			Operation{Method: "tools/call", Params: map[string]any{"name": "wait"}, Options: []CallOption{Timeout(1)}},
		)
		if err != nil || results[0].Err != nil || !errors.Is(results[1].Err, ErrTimeout) {
			t.Fatalf("%+v, %v", results, err)
		}
	}
}
