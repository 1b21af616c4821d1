package client

import (
	"strings"
	"testing"
)

// A server may use the id of a question again as soon as it has the answer.
func TestQuestionIDAgain(t *testing.T) {
	const rounds = 500
	answers := make(chan string, rounds)
	tr := scripted(t, func(s *script) {
		s.legacyHello("2025-06-18")
		for range rounds {
			s.say(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)
			if h := s.next(); h != nil {
				answers <- h.raw
			}
		}
		s.drain()
	})
	connect(t, tr, legacy)
	for range rounds {
		if answer := <-answers; !strings.Contains(answer, `"id":1,"result":{}`) {
			t.Fatalf("answer %s", answer)
		}
	}
}
