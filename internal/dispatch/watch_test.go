package dispatch

import (
	"context"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

type red struct{}

// observers are what a Dispatcher may have, and how many allocations more than
// without them it may make.
var observers = []struct {
	name string
	more float64
	all  []frame.Observer
}{
	{name: "none"},
	{name: "End", all: []frame.Observer{{End: func(*frame.Frame, frame.Outcome) {}}}},
	{name: "Begin returns f", all: []frame.Observer{{Begin: func(f *frame.Frame) (context.Context, error) { return f, nil }, End: func(*frame.Frame, frame.Outcome) {}}}},
	{name: "two", all: []frame.Observer{
		{Begin: func(f *frame.Frame) (context.Context, error) { return f, nil }, End: func(*frame.Frame, frame.Outcome) {}},
		{Begin: func(f *frame.Frame) (context.Context, error) { return f, nil }, End: func(*frame.Frame, frame.Outcome) {}},
	}},
	{name: "Begin with a context", more: 1, all: []frame.Observer{{Begin: func(*frame.Frame) (context.Context, error) { return made, nil }, End: func(*frame.Frame, frame.Outcome) {}}}},
}

// made stands for a context whose making is the observer's own.
var made = context.WithValue(context.Background(), red{}, "red")

// observed returns what serves one request of a Dispatcher with these observers.
func observed(all []frame.Observer) func() {
	d := serving(Config{Observers: all}, func(*frame.Frame) (protocol.Result, error) { return protocol.RawResult("{}"), nil })
	f, dst := request(context.Background(), "m", "", legacy), make([]byte, 0, 1<<10)
	return func() { d.Serve(f, dst) }
}

// What observers cost is paid by who has some.
func TestObserversAllocate(t *testing.T) {
	without := testing.AllocsPerRun(100, observed(nil))
	for _, tt := range observers {
		if got := testing.AllocsPerRun(100, observed(tt.all)) - without; got != tt.more {
			t.Errorf("%s: %v allocations more, want %v", tt.name, got, tt.more)
		}
	}
}

func BenchmarkObservers(b *testing.B) {
	for _, tt := range observers {
		b.Run(tt.name, func(b *testing.B) {
			serve := observed(tt.all)
			b.ReportAllocs()
			for b.Loop() {
				serve()
			}
		})
	}
}

// A flood of refusals costs nothing where nobody hears of them.
func TestRefusedAllocates(t *testing.T) {
	fault := protocol.Errorf(protocol.CodeBusy, "later")
	deaf := New(Config{Observers: []frame.Observer{{End: func(*frame.Frame, frame.Outcome) {}}}})
	if n := testing.AllocsPerRun(100, func() { deaf.Refused(frame.HTTP, "busy", fault) }); n != 0 {
		t.Errorf("%v allocations without an Event", n)
	}
	told := 0
	hears := New(Config{Observers: []frame.Observer{{Event: func(e frame.Event) {
		if e.Kind == "refused" && e.Reason == "busy" && e.Err == fault && e.Frame == nil {
			told++
		}
	}}}})
	if hears.Refused(frame.HTTP, "busy", fault); told != 1 {
		t.Errorf("told %d times", told)
	}
}

// What users put into a fault is not asked; a code that nobody knows has no word of its
// own.
func TestRefusedWhy(t *testing.T) {
	var why []string
	for _, fault := range []*protocol.Error{
		wire.Refused("host", protocol.CodeInvalidRequest, "no"), {Code: protocol.CodeUnavailable, Err: bomb{}}, {Code: 4711},
	} {
		why = append(why, Why(fault))
	}
	if got := strings.Join(why, " "); got != "host unavailable _OTHER" {
		t.Error(got)
	}
}

// bomb is an error of users whose methods panic.
type bomb struct{}

func (bomb) Error() string { panic("Error") }
func (bomb) As(any) bool   { panic("As") }
