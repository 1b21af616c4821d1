package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/internal/core"
)

func open(t *testing.T) *Session {
	t.Helper()
	return New(t.Context(), "", core.ClientInfo{})
}

func send(t *testing.T, s *Session, messages string) {
	t.Helper()
	for m := range strings.FieldsSeq(messages) {
		if !s.Send([]byte(m)) {
			t.Errorf("Send(%s) = false", m)
		}
	}
}

// listen opens a stream that nobody waits for.
func listen(s *Session, last string) (out *outStream, leave func()) { return s.listen(last, func() {}) }

// take returns what waits in a stream, and takes it.
func take(s *Session, out *outStream) string {
	var got []string
	for {
		_, m, _ := s.next(out)
		if m == nil {
			return strings.Join(got, " ")
		}
		got = append(got, string(m))
	}
}

func over(s *Session, out *outStream) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return out.over
}

func TestSendAndListen(t *testing.T) {
	s := open(t)
	send(t, s, "a b a") // nobody listens yet
	out, leave := listen(s, "")
	send(t, s, "c a b c") // a, b wait still
	if got := take(s, out); got != "a b c" {
		t.Errorf("first stream: %q, want a b c, each once", got)
	}
	send(t, s, "a") // taken before: it is news again
	if got := take(s, out); got != "a" {
		t.Errorf("after taking: %q, want a", got)
	}
	leave()
	if !over(s, out) {
		t.Error("leave did not end the stream")
	}
	send(t, s, "d")
	out, leave = listen(s, "")
	defer leave()
	if got := take(s, out); got != "d" {
		t.Errorf("second stream: %q, want d", got)
	}
}

// The newest stream gets what the one before has not taken, and every message
// from then on; when it ends, the one before goes on with what it has left.
// Nothing is lost and nothing goes out on both.
func TestListenTwice(t *testing.T) {
	s := open(t)
	first, leaveFirst := listen(s, "")
	send(t, s, "a b c")
	if _, got, _ := s.next(first); string(got) != "a" {
		t.Errorf("the first stream got %q, want a", got)
	}
	second, leaveSecond := listen(s, "")
	if over(s, first) || over(s, second) {
		t.Errorf("over: first %v, second %v; want neither", over(s, first), over(s, second))
	}
	send(t, s, "d")
	if got := take(s, first); got != "" {
		t.Errorf("the first stream got %q", got)
	}
	if _, got, _ := s.next(second); string(got) != "b" {
		t.Errorf("the second stream got %q, want b", got)
	}
	leaveSecond()
	leaveSecond()
	send(t, s, "c e")
	if got := take(s, first); got != "c d e" {
		t.Errorf("the first stream has %q, want c d e", got)
	}
	leaveFirst()
	if !over(s, first) || !over(s, second) {
		t.Errorf("over: first %v, second %v; want both", over(s, first), over(s, second))
	}
}

// A stream that ends while it is not the newest takes nothing with it.
func TestListenEndsBehind(t *testing.T) {
	s := open(t)
	first, leaveFirst := listen(s, "")
	second, leaveSecond := listen(s, "")
	defer leaveSecond()
	send(t, s, "a")
	leaveFirst()
	send(t, s, "b")
	if got := take(s, second); !over(s, first) || over(s, second) || got != "a b" {
		t.Errorf("over: first %v, second %v; the second has %q", over(s, first), over(s, second), got)
	}
}

// Of too many streams the oldest ends.
func TestListenIsBounded(t *testing.T) {
	s := open(t)
	var all []*outStream
	for range maxStreams + 2 {
		out, leave := listen(s, "")
		defer leave()
		all = append(all, out)
	}
	for i, out := range all {
		if over(s, out) != (i < 2) {
			t.Errorf("stream %d of %d: over %v", i+1, len(all), over(s, out))
		}
	}
	s.EndStreams(0)
	for i, out := range all {
		if !over(s, out) {
			t.Errorf("stream %d is open after endStreams", i+1)
		}
	}
}

// What a stream has not taken when it breaks waits for the next.
func TestListenAgain(t *testing.T) {
	for name, end := range map[string]func(s *Session, leave func()){
		"leave":      func(_ *Session, leave func()) { leave() },
		"EndStreams": func(s *Session, leave func()) { s.EndStreams(0); leave(); s.EndStreams(0) },
	} {
		s := open(t)
		out, leave := listen(s, "")
		send(t, s, "a b")
		end(s, leave)
		if !over(s, out) {
			t.Errorf("%s: the stream is not over", name)
		}
		send(t, s, "b c")
		out, leave = listen(s, "")
		if got := take(s, out); got != "a b c" {
			t.Errorf("%s: next stream %q, want a b c", name, got)
		}
		leave()
	}
}

func TestSendIsBounded(t *testing.T) {
	s := open(t)
	fill := func() {
		t.Helper()
		for i := range maxQueued {
			if !s.Send(fmt.Append(nil, i)) {
				t.Fatalf("message %d was dropped", i)
			}
		}
		if s.Send([]byte("more")) {
			t.Errorf("message %d was let in", maxQueued+1)
		}
		if !s.Send([]byte("0")) {
			t.Error("a message that waits already was called dropped")
		}
	}
	fill()
	out, leave := listen(s, "")
	defer leave()
	if got := len(out.queue); got != maxQueued {
		t.Fatalf("%d messages went over to the stream, want %d", got, maxQueued)
	}
	if s.Send([]byte("more")) {
		t.Error("a full stream took one more")
	}
	take(s, out)
	if out.queue != nil || s.outbox.bytes != 0 {
		t.Errorf("the stream keeps %d messages and %d bytes after they were taken", len(out.queue), s.outbox.bytes)
	}
	fill()
}

// What streams leave behind when all of them end comes together, and makes no
// room for more than any one may have.
func TestSendIsBoundedAfterTheEnd(t *testing.T) {
	s := open(t)
	_, leave := listen(s, "")
	for i := range maxQueued {
		s.Send(fmt.Append(nil, "first ", i))
	}
	s.EndStreams(0) // the stream still has what it has not sent
	s.Send([]byte("second"))
	leave()
	if s.Send([]byte("third")) {
		t.Errorf("%d messages waited, and one more was let in", len(s.outbox.waiting))
	}
	out, leave := listen(s, "")
	defer leave()
	if got := len(strings.Fields(strings.ReplaceAll(take(s, out), "first ", "first"))); got != maxQueued+1 {
		t.Errorf("%d messages were kept, want %d", got, maxQueued+1)
	}
}

// Many send while streams come and go: each message is delivered exactly once.
func TestSendConcurrent(t *testing.T) {
	const senders, each = 4, 10 // fewer than outboxSize: none is dropped
	s := open(t)
	var mu sync.Mutex
	var got []string
	var sending, listening sync.WaitGroup
	stop := make(chan struct{})
	for range 3 {
		listening.Go(func() {
			for {
				wake := make(chan struct{}, 1)
				out, leave := s.listen("", func() {
					select {
					case wake <- struct{}{}:
					default:
					}
				})
				for range 3 {
					_, m, over := s.next(out)
					if m != nil {
						mu.Lock()
						got = append(got, string(m))
						mu.Unlock()
						continue
					}
					if over {
						break
					}
					select {
					case <-wake:
					case <-stop:
						leave()
						return
					}
				}
				leave()
			}
		})
	}
	for w := range senders {
		sending.Go(func() {
			for i := range each {
				if !s.Send(fmt.Appendf(nil, "%d-%d", w, i)) {
					t.Errorf("message %d-%d was dropped", w, i)
				}
			}
		})
	}
	sending.Wait()
	close(stop)
	listening.Wait()
	out, leave := listen(s, "")
	defer leave()
	got = append(got, strings.Fields(take(s, out))...)
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(got) != senders*each || len(unique) != len(got) {
		t.Errorf("%d messages arrived, %d of them different; want %d", len(got), len(unique), senders*each)
	}
}
