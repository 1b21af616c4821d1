package session

import (
	"bytes"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/core"
)

// A leader that looks for the end of its session keeps no lock while it waits for that of
// the resumer, which waits for that of the leader when a follower leaves.
func TestLeaderSessionEnds(t *testing.T) {
	r := &resumer{}
	s := New(t.Context(), "s", core.ClientInfo{})
	s.end(core.ErrSessionDeleted, true)()
	l := &leader{resumer: r, session: s, news: make(chan struct{}, 1)}
	r.mu.Lock() // as handleMessage does
	over := make(chan bool, 1)
	go func() { over <- l.isOver() }()
	stacks := make([]byte, 1<<20)
	for !bytes.Contains(stacks[:runtime.Stack(stacks, true)], []byte("isClosed")) && len(over) == 0 {
		runtime.Gosched()
	}
	if !l.mu.TryLock() {
		t.Fatal("the leader and the resumer wait for each other")
	}
	l.mu.Unlock()
	r.mu.Unlock()
	if !<-over {
		t.Error("the session has ended")
	}
}

// A client that breaks off while it gets a saved answer comes back for that.
func TestSavedAnswersBrokenOff(t *testing.T) {
	together(t, func(t *testing.T, f *team) {
		st := f.call()
		last := f.event(1)
		st.End([]byte("answer"))
		f.all[0].Local(f.id).history.dropFinished() // only the store has it now
		l := &listener{client: newClient(), done: make(chan struct{})}
		l.broken = true
		if err := f.at(1).ServeStream(last, l); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute) // what was acknowledged is deleted
		again := f.back(2, last)
		again.wants(t, "2=answer")
		again.ended(t, true)
		time.Sleep(time.Minute)
		again = f.back(1, last)
		again.ended(t, true)
		if again.err == nil || !strings.Contains(again.err.Error(), "names no stream") {
			t.Errorf("after the client has it: %v", again.err)
		}
	})
}
