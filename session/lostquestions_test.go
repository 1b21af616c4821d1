package session

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/protocol"
)

// A question that has not reached its client and is not kept for it fails, as
// soon as that is known; it would wait for an answer that cannot come.
func TestLostQuestions(t *testing.T) {
	long := json.RawMessage(`{"x":"` + strings.Repeat("x", 2000) + `"}`)
	short := json.RawMessage(`{"x":"y"}`)
	for _, tt := range []struct {
		name   string
		params json.RawMessage
		to     core.EventWriter
		then   func(t *testing.T, s *Session, st core.AnswerStream)
		fails  bool
	}{
		{"too long for a connection that breaks", long, &sink{broken: true}, nil, true},
		{"short for a connection that breaks", short, &sink{broken: true}, nil, false},
		{"too long, and the client comes back without it", long, &sink{}, func(t *testing.T, s *Session, _ core.AnswerStream) {
			if _, _, err := s.history.resume(s.history.idOf(1, 1, protocol.ID{}), &sink{}, nil); !errors.Is(err, errNotKept) {
				t.Errorf("Resume: %v", err)
			}
		}, true},
		{"too long, and the client comes back with it", long, &sink{}, func(t *testing.T, s *Session, _ core.AnswerStream) {
			if _, _, err := s.history.resume(s.history.idOf(1, 2, protocol.ID{}), &sink{}, nil); err != nil {
				t.Errorf("Resume: %v", err)
			}
		}, false},
		{"too old, and the client comes back without it", short, &sink{}, func(t *testing.T, s *Session, st core.AnswerStream) {
			sendAll(t, st, strings.Repeat("m", 400)+" "+strings.Repeat("n", 400))
			var to sink
			if _, _, err := s.history.resume(s.history.idOf(1, 1, protocol.ID{}), &to, nil); err != nil || len(to.got) == 0 {
				t.Errorf("Resume: %v, %q", err, to.got)
			}
		}, true},
		{"kept, and the client comes back without it", short, &sink{}, func(t *testing.T, s *Session, _ core.AnswerStream) {
			var to sink
			if _, _, err := s.history.resume(s.history.idOf(1, 1, protocol.ID{}), &to, nil); err != nil || !strings.Contains(strings.Join(to.got, " "), "roots/list") {
				t.Errorf("Resume: %v, %q", err, to.got)
			}
		}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := NewManager(Config{History: 600, MaxEvent: 1000})
				defer m.Close(context.Background(), core.ErrSessionClosed)
				s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125})
				if err != nil {
					t.Fatal(err)
				}
				st := s.OpenStream(tt.to, protocol.ID{}) // event 1 primes it
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				answered := make(chan error, 1)
				go func() {
					_, err := s.Pending.Call(ctx, st.Send, "roots/list", tt.params)
					answered <- err
				}()
				synctest.Wait()
				if tt.then != nil {
					tt.then(t, s, st)
				}
				synctest.Wait()
				select {
				case err := <-answered:
					if !tt.fails || !errors.Is(err, errLost) {
						t.Errorf("the question ended with %v", err)
					}
				default:
					if tt.fails {
						t.Error("the question waits")
					}
				}
				cancel()
				synctest.Wait()
			})
		})
	}
}

// A client that comes back to the session's own stream over what is not kept is
// told so, once, and its question fails.
func TestLostOnOwnStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{MaxEvent: 1000})
		defer m.Close(context.Background(), core.ErrSessionClosed)
		s, err := m.Open(context.Background(), core.ClientInfo{Revision: protocol.V20251125})
		if err != nil {
			t.Fatal(err)
		}
		out, leave := listen(s, "")
		send := func(message []byte) error { s.Send(message); return nil }
		claim := func() (id string, message []byte) {
			id, message, _ = s.next(out)
			return id, message
		}
		_ = send([]byte("a"))
		first, _ := claim()
		answered := make(chan error, 2)
		ask := func(n int) {
			go func() {
				_, err := s.Pending.Call(t.Context(), send, "roots/list", json.RawMessage(`{"x":"`+strings.Repeat("x", n)+`"}`))
				answered <- err
			}()
			synctest.Wait()
		}
		ask(2000)
		claim()
		_ = send([]byte("b"))
		claim()
		leave()
		var to sink
		if err := s.history.sendMissed(first, &to); !errors.Is(err, errNotKept) || len(to.got) != 0 {
			t.Errorf("Missed: %v, %q", err, to.got)
		}
		if err := <-answered; !errors.Is(err, errLost) {
			t.Errorf("the question ended with %v", err)
		}
		if err := s.history.sendMissed(first, &to); err != nil || !strings.HasSuffix(strings.Join(to.got, " "), "=b") {
			t.Errorf("Missed again: %v, %q", err, to.got)
		}
		out, leave = listen(s, "")
		defer leave()
		ask(2000)
		_, message := claim()
		s.history.restoreUnsent(message)
		if err := <-answered; !errors.Is(err, errLost) {
			t.Errorf("the question that was not sent ended with %v", err)
		}
	})
}
