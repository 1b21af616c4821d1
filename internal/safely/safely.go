// Package safely runs code of users: handlers, callbacks, stores, connections,
// whatever an interface or a function-typed field lets in. It is the one guard
// of the module, and the one place with a recover.
//
// Code may fail to return in two ways. A panic is caught and becomes a
// *Failure. runtime.Goexit, which t.FailNow calls, cannot be caught: the
// goroutine always ends. So code either runs by Do, on a goroutine whose
// deferred calls complete what it leaves (they answer the call, give back locks
// and places), or by Apart, on a goroutine of its own.
//
// What runs on a user's own goroutine may be left to it: a panic of a codec, a
// rule or a method of a result under a call of Client, or under schema.Plan,
// reaches the caller, like that of any callback in Go. Locks and places are
// given back on the way.
package safely

import (
	"errors"
	"fmt"
	"runtime/debug"
)

// Message is the text of a Failure that a peer receives.
const Message = "the handler panicked"

// Failure is how code ended that did not return. Its error text has nothing of
// what it panicked with, which may be a secret; that is for logs.
type Failure struct {
	Value string // what it panicked with, or that it ended its goroutine
	Stack []byte
}

// Error implements error.
func (f *Failure) Error() string { return Message }

// Detail returns all details, for a log of errors.
func (f *Failure) Detail() error { return &detail{f} }

// Exited reports that the code ended its goroutine, and did not panic.
func (f *Failure) Exited() bool { return f.Value == exited }

// detail is a Failure with a text that tells everything.
type detail struct{ failure *Failure }

// Error returns the value of the panic and the stack.
func (d *detail) Error() string {
	return "panic: " + d.failure.Value + "\n\n" + string(d.failure.Stack)
}

// Unwrap lets errors.As find the Failure.
func (d *detail) Unwrap() error { return d.failure }

// exited is the Value of code that called runtime.Goexit.
const exited = "the code ended its goroutine (runtime.Goexit)"

// Do calls fn on this goroutine. If fn panics, failed is called and Do returns;
// if fn ends the goroutine, failed is called and the goroutine ends: cleanup
// must be in failed, or deferred by the caller of Do.
func Do(fn func(), failed func(*Failure)) {
	returned := false
	defer func() {
		if !returned {
			failed(failure(recover()))
		}
	}()
	fn()
	returned = true
}

// Call is Do for code whose failure is an error: nil if fn returned. It does not
// return if fn ends the goroutine.
func Call(fn func()) (err error) {
	Do(fn, func(f *Failure) { err = f })
	return err
}

// failure makes a Failure of what recover returned: nil only for Goexit, since
// panic(nil) has an error for its value.
func failure(value any) *Failure { return &Failure{Value: textOf(value), Stack: debug.Stack()} }

// Apart calls fn on a goroutine of its own and waits for it: whatever fn does,
// Apart returns, with a *Failure if fn did not.
func Apart(fn func()) error { return Try(func() error { fn(); return nil }) }

// Try is Apart for code that has an error of its own.
func Try(fn func() error) error {
	a := apart{fn: fn, done: make(chan struct{})}
	go a.run()
	<-a.done
	return a.err
}

// apart is code on a goroutine of its own.
type apart struct {
	fn   func() error
	err  error
	done chan struct{}
}

// run calls fn and closes done, whatever fn does.
func (a *apart) run() {
	returned := false
	defer func() {
		if !returned {
			a.err = failure(recover())
		}
		close(a.done)
	}()
	a.err = a.fn()
	returned = true
}

// Log writes a line of a log, whose writer and hooks are users' code. A line that
// fails is lost. e is a *zerolog.Event.
func Log(e interface {
	Enabled() bool
	Msg(string)
}, message string) {
	if e.Enabled() {
		_ = Apart(func() { e.Msg(message) })
	}
}

// Known returns err, or the details if err is a Failure: only for logs.
func Known(err error) error {
	if failure, ok := errors.AsType[*Failure](err); ok {
		return failure.Detail()
	}
	return err
}

// textOf returns the text of what was panicked with. Methods that make it are
// users' code, too.
func textOf(value any) string {
	switch v := value.(type) {
	case nil:
		return exited
	case string:
		return v
	}
	text := fmt.Sprintf("a %T without a text", value)
	if err := Apart(func() { text = fmt.Sprint(value) }); err != nil {
		return text
	}
	return text
}
