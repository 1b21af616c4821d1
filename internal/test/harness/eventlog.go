package harness

import (
	"sync"

	"github.com/talaria-go/mcp"
)

// EventLog counts what an observer is told.
type EventLog struct {
	mu    sync.Mutex
	Count map[[2]string]int // by Kind and Reason
}

func (l *EventLog) Observe(s *mcp.Server) {
	l.Count = map[[2]string]int{}
	s.Observe(mcp.Observer{Event: func(e mcp.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.Count[[2]string{e.Kind, e.Reason}]++
	}})
}

// of returns how many there were of a kind; why "" is any.
func (l *EventLog) Of(kind, why string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, times := range l.Count {
		if what[0] == kind && (why == "" || what[1] == why) {
			n += times
		}
	}
	return n
}
