// Package transporttest checks that a transport.Conn does what its interface
// demands, as testing/slogtest does for log handlers.
//
// [Run] checks that messages arrive whole, in order and exactly once, in both
// directions and from many writers; that each side owns its bytes; that a
// message beyond the limit costs only itself; and what the end of the
// connection looks like, from both sides. Anything that takes longer than 20
// seconds counts as hanging.
//
// The transports of this module are held to the same checks.
package transporttest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/transport"
)

// Link is a pair of connected ends under test.
type Link struct {
	A, B transport.Conn
	// MaxMessage is the longest message, in bytes, that both ends take. 0
	// means that they know no limit, and skips what needs one.
	MaxMessage int
	// HalfClose, if not nil, ends the side of A in order and leaves A reading, as
	// closing standard input does. B must then read io.EOF that is not a
	// transport.ErrPeerGone, and may still write.
	HalfClose func() error
}

// timeLimit is the longest wait of a test before it fails.
const timeLimit = 20 * time.Second

// Run checks the Conns that open makes. open is called once for each check,
// which closes both ends when it is done; it should fail t if it cannot make
// them. Everything is checked in both directions.
func Run(t *testing.T, open func(t *testing.T) Link) {
	checks := []struct {
		name  string
		check func(t *testing.T, l Link)
	}{
		{"Messages", checkMessages},
		{"Order", checkOrder},
		{"Big", checkBig},
		{"Ownership", checkOwnership},
		{"ConcurrentWrites", checkConcurrentWrites},
		{"BothWays", checkBothWays},
		{"TooLong", checkTooLong},
		{"End", checkEnd},
		{"HalfClose", checkHalfClose},
		{"CloseEndsRead", checkCloseEndsRead},
		{"CloseEndsWrite", checkCloseEndsWrite},
		{"AfterClose", checkAfterClose},
	}
	for _, c := range checks {
		t.Run(c.name, func(t *testing.T) {
			l := open(t)
			t.Cleanup(func() { closeBoth(t, l) })
			c.check(t, l)
		})
		if c.name == "End" || c.name == "HalfClose" {
			continue // they are about A closing first
		}
		t.Run(c.name+"/reversed", func(t *testing.T) {
			l := open(t)
			t.Cleanup(func() { closeBoth(t, l) })
			l.A, l.B = l.B, l.A
			c.check(t, l)
		})
	}
}

// closeBoth closes both ends at once, as each may wait for the other. The
// errors of closing twice, or after the peer, are the Conn's own affair.
func closeBoth(t *testing.T, l Link) {
	within(t, "Close", func() {
		var both sync.WaitGroup
		for _, c := range []transport.Conn{l.A, l.B} {
			both.Go(func() { _ = c.Close() })
		}
		both.Wait()
	})
}

// within fails t if do takes too long.
func within(t *testing.T, what string, do func()) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		defer close(done)
		do()
	}()
	timer := time.NewTimer(timeLimit)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s has not returned after %v", what, timeLimit)
	}
}

// send writes messages from a goroutine of its own, flushes, and returns a
// function that waits for it.
func send(t *testing.T, c transport.Conn, messages ...string) (wait func()) {
	t.Helper()
	result := make(chan error, 1)
	go func() {
		for _, m := range messages {
			if err := c.Write([]byte(m)); err != nil {
				result <- fmt.Errorf("writing: %w", err)
				return
			}
		}
		if err := c.Flush(); err != nil {
			result <- fmt.Errorf("flushing: %w", err)
			return
		}
		result <- nil
	}()
	return func() {
		t.Helper()
		within(t, "Write or Flush", func() {
			if err := <-result; err != nil {
				t.Error(err)
			}
		})
	}
}

// read reads one message.
func read(t *testing.T, c transport.Conn) (message []byte, err error) {
	t.Helper()
	within(t, "Read", func() { message, err = c.Read() })
	return message, err
}

// receive reads one message and wants it to be that.
func receive(t *testing.T, c transport.Conn, want string) []byte {
	t.Helper()
	got, err := read(t, c)
	if err != nil {
		t.Fatalf("Read: %v, want %s", err, short(want))
	}
	if string(got) != want {
		t.Fatalf("Read got %s, want %s", short(string(got)), short(want))
	}
	return got
}

// short returns a text quoted, cut to 80 bytes.
func short(s string) string {
	if len(s) > 80 {
		return fmt.Sprintf("%q… (%d bytes)", s[:80], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// text returns a message of n bytes, at least 2.
func text(n int) string { return `"` + strings.Repeat("x", n-2) + `"` }

// checkMessages checks that single messages arrive with the same content.
func checkMessages(t *testing.T, l Link) {
	for _, m := range []string{`{}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `"äöü 😀 \n \u0000"`, `[1,2]`, `7`} {
		wait := send(t, l.A, m)
		receive(t, l.B, m)
		wait()
	}
	// White space is not a part of what a message says.
	wait := send(t, l.A, "{\n\"a\":\r\n1}")
	got, err := read(t, l.B)
	if err != nil {
		t.Fatal(err)
	}
	wait()
	if stripped := bytes.Join(bytes.Fields(got), nil); string(stripped) != `{"a":1}` {
		t.Errorf("a message with newlines inside arrived as %q", got)
	}
}

// checkOrder checks that messages arrive in the order in which they were
// written.
func checkOrder(t *testing.T, l Link) {
	var messages []string
	for i := range 500 {
		messages = append(messages, fmt.Sprint(i))
	}
	wait := send(t, l.A, messages...)
	for _, m := range messages {
		receive(t, l.B, m)
	}
	wait()
}

// checkBig checks messages of a megabyte, or as long as the limit permits.
func checkBig(t *testing.T, l Link) {
	size := 1 << 20
	if l.MaxMessage > 0 {
		size = min(size, l.MaxMessage)
	}
	wait := send(t, l.A, text(size), `"next"`, text(size-1))
	receive(t, l.B, text(size))
	receive(t, l.B, `"next"`)
	receive(t, l.B, text(size-1))
	wait()
}

// checkOwnership checks that Write does not keep the bytes that it is given,
// and that those of Read do not change when more is read.
func checkOwnership(t *testing.T, l Link) {
	result := make(chan error, 1)
	go func() {
		written := []byte(`"first"`)
		err := l.A.Write(written)
		copy(written, `"XXXXX"`)
		result <- errors.Join(err, l.A.Write([]byte(`"other"`)), l.A.Write([]byte(`"third"`)), l.A.Flush())
	}()
	first := receive(t, l.B, `"first"`)
	receive(t, l.B, `"other"`)
	receive(t, l.B, `"third"`)
	within(t, "Write", func() {
		if err := <-result; err != nil {
			t.Error(err)
		}
	})
	if string(first) != `"first"` {
		t.Errorf("the message from Read became %s when others were read", first)
	}
}

// checkConcurrentWrites checks that messages of several writers are not mixed,
// and that those of each writer stay in order.
func checkConcurrentWrites(t *testing.T, l Link) {
	const writers, each = 8, 50
	var waits []func()
	for w := range writers {
		var messages []string
		for i := range each {
			// Of every size, so that torn writes show.
			messages = append(messages, fmt.Sprintf(`{"w":%d,"i":%d,"pad":%s}`, w, i, text(2+i*i)))
		}
		waits = append(waits, send(t, l.A, messages...))
	}
	next := make([]int, writers)
	for range writers * each {
		got, err := read(t, l.B)
		if err != nil {
			t.Fatal(err)
		}
		var w, i int
		if _, err := fmt.Sscanf(string(got), `{"w":%d,"i":%d,`, &w, &i); err != nil || w < 0 || w >= writers {
			t.Fatalf("Read got %s: %v", short(string(got)), err)
		}
		if want := fmt.Sprintf(`{"w":%d,"i":%d,"pad":%s}`, w, i, text(2+i*i)); string(got) != want || i != next[w] {
			t.Fatalf("Read got %s, want message %d of writer %d", short(string(got)), next[w], w)
		}
		next[w]++
	}
	for _, wait := range waits {
		wait()
	}
}

// checkBothWays checks that both directions work at the same time, without
// either waiting for the other.
func checkBothWays(t *testing.T, l Link) {
	var messages []string
	for i := range 200 {
		messages = append(messages, fmt.Sprintf(`{"i":%d,"pad":%s}`, i, text(1000)))
	}
	waitA, waitB := send(t, l.A, messages...), send(t, l.B, messages...)
	var both sync.WaitGroup
	for _, c := range []transport.Conn{l.A, l.B} {
		both.Go(func() {
			for i := range messages {
				got, err := c.Read()
				if err != nil || string(got) != messages[i] {
					t.Errorf("message %d: got %s, %v", i, short(string(got)), err)
					return
				}
			}
		})
	}
	within(t, "Read", both.Wait)
	waitA()
	waitB()
}

// long returns a request of that many bytes.
func long(size int) string {
	const begin, end = `{"id":7,"params":{"id":8,"text":"`, `"}}`
	return begin + strings.Repeat("x", max(0, size-len(begin+end))) + end
}

// checkTooLong checks that messages beyond the limit are reported, with their id if
// the Conn writes them to the error, and that the next message arrives.
func checkTooLong(t *testing.T, l Link) {
	if l.MaxMessage == 0 {
		t.Skip("the link has no limit")
	}
	wait := send(t, l.A, `"before"`, long(l.MaxMessage+1), long(3*l.MaxMessage), `"after"`)
	receive(t, l.B, `"before"`)
	for _, size := range []int{l.MaxMessage + 1, 3 * l.MaxMessage} {
		_, err := read(t, l.B)
		tooLong, ok := errors.AsType[*transport.TooLongError](err)
		if !ok {
			t.Fatalf("Read of a message over the limit: %v, want a *transport.TooLongError", err)
		}
		if tooLong.Limit != l.MaxMessage {
			t.Errorf("TooLongError.Limit is %d, want %d", tooLong.Limit, l.MaxMessage)
		}
		if tooLong.Size != 0 && tooLong.Size != int64(size) {
			t.Errorf("TooLongError.Size is %d, want %d", tooLong.Size, size)
		}
		if got, whole := tooLong.Message(); got != nil && (string(got) != `{"id":7,"params":{}}` || !whole) {
			t.Errorf(`TooLongError.Message returns %.60s, %v, want {"id":7,"params":{}}`, got, whole)
		}
	}
	receive(t, l.B, `"after"`)
	wait()
}

// checkEnd checks that everything written is read before the end, and that the
// end is an io.EOF.
func checkEnd(t *testing.T, l Link) {
	wait := send(t, l.A, `"one"`, `"two"`)
	receive(t, l.B, `"one"`)
	receive(t, l.B, `"two"`)
	wait()
	closed := make(chan error, 1)
	go func() { closed <- l.A.Close() }()
	if _, err := read(t, l.B); !errors.Is(err, io.EOF) {
		t.Errorf("Read after the peer has closed: %v, want io.EOF", err)
	}
	within(t, "Close", func() {
		if err := <-closed; err != nil {
			t.Errorf("Close: %v", err)
		}
	})
}

// checkHalfClose checks that a peer which has closed its side only can still be
// written to.
func checkHalfClose(t *testing.T, l Link) {
	if l.HalfClose == nil {
		t.Skip("the link has no half-close")
	}
	wait := send(t, l.A, `"last"`)
	receive(t, l.B, `"last"`)
	wait()
	if err := l.HalfClose(); err != nil {
		t.Fatal(err)
	}
	if _, err := read(t, l.B); !errors.Is(err, io.EOF) || errors.Is(err, transport.ErrPeerGone) {
		t.Errorf("Read after the peer has closed its side: %v, want io.EOF", err)
	}
	wait = send(t, l.B, `"answer"`)
	receive(t, l.A, `"answer"`)
	wait()
}

// checkCloseEndsRead checks that Close ends a Read that waits.
func checkCloseEndsRead(t *testing.T, l Link) {
	failed := make(chan error, 1)
	entered := make(chan struct{})
	go func() {
		close(entered)
		_, err := l.A.Read()
		failed <- err
	}()
	<-entered
	within(t, "Close", func() { _ = l.A.Close() })
	within(t, "Read, when the Conn is closed,", func() {
		if err := <-failed; err == nil {
			t.Error("Read returned no error when the Conn was closed")
		}
	})
}

// checkCloseEndsWrite checks that Close ends a Write that waits for a peer
// which does not read.
func checkCloseEndsWrite(t *testing.T, l Link) {
	failed := make(chan error, 1)
	entered := make(chan struct{})
	go func() {
		message := []byte(text(64 << 10))
		close(entered)
		var err error
		for err == nil { // without a reader it waits at some point
			err = l.A.Write(message)
		}
		failed <- err
	}()
	<-entered
	within(t, "Close", func() { _ = l.A.Close() })
	within(t, "Write, when the Conn is closed,", func() { <-failed })
}

// checkAfterClose checks that a closed Conn returns errors and can be closed
// again.
func checkAfterClose(t *testing.T, l Link) {
	within(t, "Close", func() {
		_ = l.A.Close()
		_ = l.A.Close() // must not panic or hang
	})
	if _, err := read(t, l.A); err == nil {
		t.Error("Read after Close returned no error")
	}
	within(t, "Write", func() {
		if l.A.Write([]byte(`1`)) == nil && l.A.Flush() == nil {
			t.Error("neither Write nor Flush after Close returned an error")
		}
	})
}
