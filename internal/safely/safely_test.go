package safely_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/safely"
)

// evil is an error whose text ends the goroutine that asks for it.
type evil struct{}

func (evil) Error() string { runtime.Goexit(); return "" }

func explode() { panic("s3cret") }

func TestApart(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func()
		want string // in Value; "" for no failure
	}{
		"returns":             {func() {}, ""},
		"panics":              {explode, "s3cret"},
		"panics with nil":     {func() { panic(nil) }, "nil"},
		"panics with a trap":  {func() { panic(evil{}) }, "evil without a text"},
		"ends its goroutine":  {runtime.Goexit, "Goexit"},
		"fails while it ends": {func() { defer explode(); runtime.Goexit() }, "Goexit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := safely.Apart(c.fn)
			failure, failed := errors.AsType[*safely.Failure](err)
			if failed != (c.want != "") {
				t.Fatalf("the error is %v", err)
			}
			if !failed {
				return
			}
			if name != "fails while it ends" && !strings.Contains(failure.Value, c.want) {
				t.Errorf("the value is %q, want %q in it", failure.Value, c.want)
			}
			if len(failure.Stack) == 0 {
				t.Error("there is no stack")
			}
			if err.Error() != safely.Message {
				t.Errorf("the error says %q", err)
			}
		})
	}
}

func TestDoOnAGoroutineThatEnds(t *testing.T) {
	told, after := make(chan *safely.Failure, 1), false
	done := make(chan struct{})
	go func() {
		defer close(done)
		safely.Do(runtime.Goexit, func(f *safely.Failure) { told <- f })
		after = true
	}()
	<-done
	if f := <-told; !strings.Contains(f.Value, "Goexit") || after {
		t.Errorf("told %q, went on %t", f.Value, after)
	}
}

func TestCallHasTheStackOfThePanic(t *testing.T) {
	failure, ok := errors.AsType[*safely.Failure](safely.Call(explode))
	if !ok || !strings.Contains(string(failure.Stack), "explode") {
		t.Fatalf("the failure is %+v", failure)
	}
}
