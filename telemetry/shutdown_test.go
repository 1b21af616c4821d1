package telemetry_test

import (
	"context"
	"errors"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
)

// frozen is a sdktrace.SpanProcessor whose backend takes nothing more.
type frozen struct{ reached, never chan struct{} }

func (f frozen) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

func (f frozen) OnEnd(sdktrace.ReadOnlySpan) {
	select {
	case f.reached <- struct{}{}:
	default: // one is enough
	}
	<-f.never
}

func (f frozen) Shutdown(context.Context) error   { <-f.never; return nil }
func (f frozen) ForceFlush(context.Context) error { <-f.never; return nil }

// A server whose backend takes nothing, and whose program does not shut its providers down,
// ends: Shutdown returns at its context, and Close of a client in its time.
func TestShutdownWithAFrozenBackend(t *testing.T) {
	for name, to := range over {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := frozen{make(chan struct{}, 1), make(chan struct{})}
			told := newCollector(sdktrace.WithSpanProcessor(f))
			s := told.watch(t, mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, nil), nil)
			s.MustAdd(mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }, mcp.Doc("Says hello")))
			c, err := client.Connect(t.Context(), to(t, s), &client.Options{Timeout: time.Second, CloseTimeout: time.Second, ConnectTimeout: 2 * time.Second})
			t.Cleanup(func() { close(f.never) })
			within := func(what string, limit time.Duration, do func() error) error {
				t.Helper()
				result := make(chan error, 1)
				go func() { result <- do() }()
				select {
				case err := <-result:
					return err
				case <-time.After(limit):
					t.Errorf("%s waits for the backend", what)
					return nil
				}
			}
			<-f.reached
			ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
			defer cancel()
			if err := within("Shutdown", 10*time.Second, func() error { return s.Shutdown(ctx) }); err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if err == nil {
				_ = within("Close", 15*time.Second, c.Close)
			}
		})
	}
}
