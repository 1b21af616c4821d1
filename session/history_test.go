package session

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// sink writes events down as "id=message", and fails once it is broken.
type sink struct {
	mu     sync.Mutex
	got    []string
	broken bool
}

func (k *sink) Event(id string, message []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.broken {
		return errors.New("broken")
	}
	k.got = append(k.got, id+"="+string(message))
	return nil
}

func (k *sink) Pause(retry time.Duration) error {
	return k.Event("retry", []byte(retry.String()))
}

func (k *sink) want(t *testing.T, events string) {
	t.Helper()
	k.mu.Lock()
	defer k.mu.Unlock()
	if got := strings.Join(k.got, " "); got != events {
		t.Errorf("events %q, want %q", got, events)
	}
	k.got = nil
}

func kept(t *testing.T, rev protocol.Revision, limit int) *Session {
	t.Helper()
	m := NewManager(Config{History: limit})
	t.Cleanup(func() { m.Close(context.Background(), core.ErrSessionClosed) })
	s, err := m.Open(context.Background(), core.ClientInfo{Revision: rev})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func sendAll(t *testing.T, st core.AnswerStream, messages string) {
	t.Helper()
	for m := range strings.FieldsSeq(messages) {
		if err := st.Send([]byte(m)); err != nil {
			t.Errorf("Send(%s): %v", m, err)
		}
	}
}

// A client that lost its connection gets what followed, and then the rest.
func TestResume(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	var first, second, third sink
	st := s.OpenStream(&first, protocol.ID{})
	sendAll(t, st, "a b")
	first.want(t, "1-1= 1-2=a 1-3=b")
	first.broken = true
	sendAll(t, st, "c d")
	attached, lost, err := s.history.resume("1-2", &second, nil)
	if err != nil || !attached() {
		t.Fatalf("Resume: %v, attached %v", err, attached != nil && attached())
	}
	second.want(t, "1-3=b 1-4=c 1-5=d")
	sendAll(t, st, "e")
	second.want(t, "1-6=e")

	// Another takes over; what the second does now is of no account.
	thirdAttached, _, _ := s.history.resume("1-6", &third, nil)
	lost()
	if attached() || !thirdAttached() {
		t.Error("want the second connection over, and the third not")
	}
	st.End([]byte("answer"))
	if thirdAttached() {
		t.Error("the answer did not end the connection")
	}
	second.want(t, "")
	third.want(t, "1-7=answer")
	if err := st.Send([]byte("late")); !errors.Is(err, wire.ErrAnswered) {
		t.Errorf("Send after the answer: %v", err)
	}

	// A client may come back after the end, too.
	var fourth sink
	if attached, _, err = s.history.resume("1-6", &fourth, nil); err != nil || attached() {
		t.Errorf("Resume of an ended stream: %v", err)
	}
	fourth.want(t, "1-7=answer")
}

// Streams of one session do not mix.
func TestResumeOwnStreamOnly(t *testing.T) {
	s := kept(t, protocol.V20250326, 0)
	var a, b, again sink
	one, two := s.OpenStream(&a, protocol.ID{}), s.OpenStream(&b, protocol.ID{})
	for i := range 3 {
		sendAll(t, one, fmt.Sprint("one", i))
		sendAll(t, two, fmt.Sprint("two", i))
	}
	a.want(t, "1-1=one0 1-2=one1 1-3=one2") // this revision has no priming
	if _, _, err := s.history.resume("2-1", &again, nil); err != nil {
		t.Fatal("not resumed")
	}
	again.want(t, "2-2=two1 2-3=two2")
	for _, id := range []string{"3-1", "1", "-", "", "x-y-z", "0-1", "é-1", "99999999999999999999-1"} {
		if _, _, err := s.history.resume(id, &again, nil); err == nil {
			t.Errorf("Resume(%q) worked", id)
		}
	}
}

// The history keeps the newest events within its limit, and the last beyond
// that.
func TestHistoryIsBounded(t *testing.T) {
	s := kept(t, protocol.V20250618, 10)
	var lost, found sink
	lost.broken = true
	st := s.OpenStream(&lost, protocol.ID{})
	sendAll(t, st, "aaaa bbbb cccc")
	if s.history.size != 8 || len(s.history.records) != 2 {
		t.Errorf("kept %d bytes in %d events", s.history.size, len(s.history.records))
	}
	st.End([]byte(strings.Repeat("x", 100)))
	if _, _, err := s.history.resume("1-1", &found, nil); err != nil {
		t.Fatal("not resumed")
	}
	found.want(t, "1-4="+strings.Repeat("x", 100))
	two := s.OpenStream(&lost, protocol.ID{})
	two.End([]byte("y"))
	if _, _, err := s.history.resume("1-1", &found, nil); err == nil {
		t.Error("the first stream is known though nothing of it is kept")
	}
	s.history.dropFinished()
	if _, _, err := s.history.resume("2-0", &found, nil); err == nil || s.history.size != 0 {
		t.Error("forget left something")
	}
}

func TestPause(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	var first, second sink
	st := s.OpenStream(&first, protocol.ID{})
	if !st.Pause(time.Second) || st.Pause(time.Second) {
		t.Error("Pause must work once for a connection")
	}
	first.want(t, "1-1= retry=1s")
	st.End([]byte("answer"))
	first.want(t, "")
	if attached, _, err := s.history.resume("1-1", &second, nil); err != nil || attached() {
		t.Error("not resumed")
	}
	second.want(t, "1-2=answer")
}

// Sessions whose revision or server has no coming back keep nothing.
func TestNoHistory(t *testing.T) {
	for _, s := range []*Session{kept(t, protocol.V20241105, 0), kept(t, protocol.V20251125, -1), open(t)} {
		if s.OpenStream(&sink{}, protocol.ID{}) != nil || s.resumable() {
			t.Errorf("%v: want no resumable stream", s.Revision())
		}
		out, leave := listen(s, "")
		send(t, s, "m")
		if id, m, _ := s.next(out); id != "" || string(m) != "m" || len(s.history.records) > 0 {
			t.Errorf("%v: Next = %q, %q", s.Revision(), id, m)
		}
		leave()
	}
}

// The session's own stream: its events have ids, a client that comes back gets
// what it missed, and a message that was taken from a stream that is over goes
// to the next.
func TestUnasked(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	out, leave := listen(s, "")
	send(t, s, "a b c")
	for i := range 2 {
		if id, m, _ := s.next(out); m == nil || id != fmt.Sprint("0-", i+1) || !isUnsolicited(id) {
			t.Errorf("Next = %q, %q", id, m)
		}
	}
	leave()
	next, leaveNext := listen(s, "")
	defer leaveNext()
	if _, m, over := s.next(out); m != nil || !over {
		t.Errorf("a stream that is over got %q, over %v", m, over)
	}
	if got := take(s, next); got != "c" {
		t.Errorf("the next stream has %q, want c", got)
	}
	var to sink
	if err := s.history.sendMissed("0-1", &to); err != nil {
		t.Error(err)
	}
	to.want(t, "0-2=b")
	if err := s.history.sendMissed("1-1", &to); err != nil {
		t.Error(err)
	}
	to.want(t, "")
	if isUnsolicited("1-1") || !isUnsolicited("made up") {
		t.Error("Unasked takes the ids of other streams, or not what is none")
	}
}

// Each of the session's own streams has ids of its own: a client that comes back
// for one of them gets nothing that went out on another.
func TestUnaskedOnSeveralStreams(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	claim := func(out *outStream, message, want string) {
		t.Helper()
		send(t, s, message)
		if id, m, _ := s.next(out); string(m) != message || id != want {
			t.Errorf("Next = %q, %q, want %s, %s", id, m, want, message)
		}
	}
	missed := func(id string, want ...string) {
		t.Helper()
		var to sink
		if err := s.history.sendMissed(id, &to); err != nil {
			t.Error(err)
		}
		to.want(t, strings.Join(want, " "))
	}
	first, leave := listen(s, "")
	defer leave()
	claim(first, "a", "0-1")
	second, leave := listen(s, "")
	claim(second, "b", "01-2")
	claim(second, "c", "01-3")
	missed("0-1")
	missed("01-2", "01-3=c")
	leave()
	claim(first, "d", "0-4")
	missed("0-1", "0-4=d")
	again, leave := listen(s, "01-3")
	defer leave()
	claim(again, "e", "01-5")
	missed("01-2", "01-3=c", "01-5=e")
	for _, id := range []string{"0-1", "01-2"} {
		if !isUnsolicited(id) {
			t.Errorf("Unasked does not know %s", id)
		}
		if _, _, err := s.history.resume(id, &sink{}, nil); !errors.Is(err, errUnknownStream) {
			t.Errorf("Resume(%s): %v, as if it were an answer", id, err)
		}
	}
}

// A session that ends leaves streams that can still be called.
func TestHistoryAfterClose(t *testing.T) {
	s := kept(t, protocol.V20251125, 0)
	var to sink
	st := s.OpenStream(&to, protocol.ID{})
	s.Close(core.ErrSessionDeleted)
	sendAll(t, st, "a")
	st.End([]byte("b"))
	to.want(t, "1-1= 1-2=a 1-3=b")
	if s.OpenStream(&to, protocol.ID{}) != nil {
		t.Error("an ended session opened a stream")
	}
	if _, _, err := s.history.resume("1-1", &to, nil); err == nil {
		t.Error("an ended session resumed a stream")
	}
}

func TestResumeConcurrent(t *testing.T) {
	s := kept(t, protocol.V20251125, 1<<20)
	const messages = 500
	st := s.OpenStream(&sink{broken: true}, protocol.ID{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range messages {
			sendAll(t, st, fmt.Sprint(i))
		}
		st.End([]byte("answer"))
	})
	// One client that comes back again and again must get everything, once.
	last, seen := "1-1", 0
	for done := false; !done; {
		to := &sink{}
		gone := make(chan struct{})
		attached, lost, err := s.history.resume(last, to, func() { close(gone) })
		if err != nil {
			t.Fatal(err)
		}
		if seen > messages/2 {
			if attached() {
				<-gone
			}
		}
		lost()
		to.mu.Lock()
		for _, event := range to.got {
			id, message, _ := strings.Cut(event, "=")
			if message == "answer" {
				done = true
			} else if message != fmt.Sprint(seen) {
				t.Fatalf("got %s, want message %d", event, seen)
			} else {
				seen++
			}
			last = id
		}
		to.mu.Unlock()
	}
	wg.Wait()
	if seen != messages {
		t.Errorf("%d messages, want %d", seen, messages)
	}
}

// A question is known by its head, however deep its params are.
func TestQuestionOf(t *testing.T) {
	deep := strings.Repeat("[", 1000) + strings.Repeat("]", 1000)
	for message, want := range map[string]string{
		`{"jsonrpc":"2.0","id":"q","method":"sampling/createMessage","params":` + deep + `}`: `"q"`,
		`{"jsonrpc":"2.0","id":7,"method":"ping"}`:                                           "7",
		`{"jsonrpc":"2.0","id":7,"result":{}}`:                                               protocol.ID{}.String(),
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{}}`:                    protocol.ID{}.String(),
	} {
		if got := questionOf([]byte(message)).String(); got != want {
			t.Errorf("%.60s: got %s, want %s", message, got, want)
		}
	}
}
