package session

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T) *Session {
	t.Helper()
	return New(t.Context(), "", Client{})
}

func send(t *testing.T, s *Session, messages string) {
	t.Helper()
	for m := range strings.FieldsSeq(messages) {
		if !s.Send([]byte(m)) {
			t.Errorf("Send(%s) = false", m)
		}
	}
}

// take returns what waits in a stream.
func take(out *Outbox) string {
	var got []string
	for {
		select {
		case m := <-out.C:
			got = append(got, string(m))
		default:
			return strings.Join(got, " ")
		}
	}
}

func over(out *Outbox) bool {
	select {
	case <-out.Done:
		return true
	default:
		return false
	}
}

func TestSendAndListen(t *testing.T) {
	s := open(t)
	send(t, s, "a b a") // nobody listens yet
	out, leave := s.Listen()
	send(t, s, "c a b c") // a, b wait still
	if got := take(out); got != "a b c" {
		t.Errorf("first stream: %q, want a b c, each once", got)
	}
	send(t, s, "a") // taken before: it is news again
	if got := take(out); got != "a" {
		t.Errorf("after taking: %q, want a", got)
	}
	leave()
	if !over(out) {
		t.Error("leave did not end the stream")
	}
	send(t, s, "d")
	out, leave = s.Listen()
	defer leave()
	if got := take(out); got != "d" {
		t.Errorf("second stream: %q, want d", got)
	}
}

// Another stream takes over what the first has not taken; nothing is lost and
// nothing goes out on both.
func TestListenTakeover(t *testing.T) {
	s := open(t)
	first, leaveFirst := s.Listen()
	send(t, s, "a b c")
	if got := string(<-first.C); got != "a" {
		t.Fatalf("got %q", got)
	}
	second, leaveSecond := s.Listen()
	if !over(first) || over(second) {
		t.Errorf("over: first %v, second %v; want the first alone", over(first), over(second))
	}
	send(t, s, "d")
	leaveFirst() // late, as a handler's defer is: it must not end the second
	send(t, s, "e")
	if got := take(first); got != "" {
		t.Errorf("the first stream still got %q", got)
	}
	if over(second) {
		t.Error("the first stream's end ended the second")
	}
	if got := take(second); got != "b c d e" {
		t.Errorf("second stream: %q, want b c d e", got)
	}
	leaveSecond()
}

// What a stream has not taken when it breaks waits for the next.
func TestListenAgain(t *testing.T) {
	for name, end := range map[string]func(s *Session, leave func()){
		"leave":      func(_ *Session, leave func()) { leave() },
		"EndStreams": func(s *Session, leave func()) { s.endStream(); leave(); s.endStream() },
	} {
		s := open(t)
		out, leave := s.Listen()
		send(t, s, "a b")
		end(s, leave)
		if !over(out) {
			t.Errorf("%s: the stream is not over", name)
		}
		send(t, s, "b c")
		out, leave = s.Listen()
		if got := take(out); got != "a b c" {
			t.Errorf("%s: next stream %q, want a b c", name, got)
		}
		leave()
	}
}

func TestSendIsBounded(t *testing.T) {
	s := open(t)
	fill := func() {
		t.Helper()
		for i := range outboxSize {
			if !s.Send(fmt.Append(nil, i)) {
				t.Fatalf("message %d was dropped", i)
			}
		}
		if s.Send([]byte("more")) {
			t.Errorf("message %d was let in", outboxSize+1)
		}
		if !s.Send([]byte("0")) {
			t.Error("a message that waits already was called dropped")
		}
	}
	fill()
	out, leave := s.Listen()
	defer leave()
	if got := len(out.C); got != outboxSize {
		t.Fatalf("%d messages went over to the stream, want %d", got, outboxSize)
	}
	if s.Send([]byte("more")) {
		t.Error("a full stream took one more")
	}
	take(out)
	fill()
	if got := len(out.sent); got != outboxSize {
		t.Errorf("the stream remembers %d messages, want %d", got, outboxSize)
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
				out, leave := s.Listen()
				for range 3 {
					select {
					case m := <-out.C:
						mu.Lock()
						got = append(got, string(m))
						mu.Unlock()
					case <-out.Done:
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
	out, leave := s.Listen()
	defer leave()
	got = append(got, strings.Fields(take(out))...)
	slices.Sort(got)
	if unique := slices.Compact(slices.Clone(got)); len(got) != senders*each || len(unique) != len(got) {
		t.Errorf("%d messages arrived, %d of them different; want %d", len(got), len(unique), senders*each)
	}
}
