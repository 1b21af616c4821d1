package session

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// A session that has moved while its old process lives ends once, where it was
// used last.
func TestMoveWhileAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var store Memory
		const idle = time.Hour
		ends := make(chan string, 10)
		first := NewManager(Config{Store: &store, Idle: idle})
		defer first.Close(ErrClosed)
		second := NewManager(Config{Store: &store, Idle: idle})
		defer second.Close(ErrClosed)
		second.OnRestore(func(_ *Session, reason error) {
			if !errors.Is(reason, ErrIdle) {
				t.Errorf("ended for %v", reason)
			}
			ends <- "second"
		})
		s := mustOpen(t, first)
		s.OnEnd(func(error) { ends <- "first" })
		s.Use()
		s.Release()

		moved, ok := second.Get(s.ID())
		if !ok {
			t.Fatal("the second process does not find the session")
		}
		for range 8 {
			moved.Use()
			moved.Release()
			time.Sleep(idle / 2)
		}
		synctest.Wait()
		if again, ok := second.Get(s.ID()); first.Len() != 0 || !ok || again != moved || len(ends) != 0 || s.Context().Err() == nil {
			t.Errorf("the first process has %d sessions, the second finds it: %v; %d ends", first.Len(), ok, len(ends))
		}
		time.Sleep(2 * idle)
		synctest.Wait()
		if by := <-ends; by != "second" || len(ends) != 0 {
			t.Errorf("ended by the %s process, and %d times more", by, len(ends))
		}
		if snapshot, err := store.Load(t.Context(), s.ID()); snapshot != nil || err != nil {
			t.Errorf("snapshot %v, %v", snapshot, err)
		}
	})
}

// No two processes give events the same id, and none takes the id of another
// for its own.
func TestEventIDsAfterMove(t *testing.T) {
	first := kept(t, protocol.V20251125, 0)
	var to sink
	stream := first.OpenStream(&to)
	sendAll(t, stream, "a")
	to.want(t, "1-1= 1-2=a")

	m := NewManager(Config{})
	defer m.Close(ErrClosed)
	restored, err := Restore(t.Context(), first.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	second, err := m.add(restored)
	if err != nil {
		t.Fatal(err)
	}
	stream = second.OpenStream(&to)
	stream.End([]byte("b"))
	life := second.idOf(0, 0)[len("0-0"):]
	if len(life) < 2 {
		t.Fatalf("ids of the second process end with %q", life)
	}
	to.want(t, "1-1"+life+"= 1-2"+life+"=b")
	for id, want := range map[string]bool{"1-1": false, "1-1" + life: true, "1-1.1": false, "1-1" + life + ".1": false} {
		if _, _, ok := second.Resume(id, &to); ok != want {
			t.Errorf("Resume(%q) = %v, want %v", id, ok, want)
		}
	}
	to.want(t, "1-2"+life+"=b")
	if _, _, ok := first.Resume("1-1"+life, &to); ok {
		t.Error("the first process takes an id of the second for its own")
	}

	out, leave := second.Listen()
	defer leave()
	second.Send([]byte("c"))
	id, ok := second.Claim(out, <-out.C)
	if !ok || id != "0-1"+life || !Unasked(id) || !Unasked("0-1") {
		t.Errorf("own stream: id %q, %v", id, ok)
	}
	if err := second.Missed("0-0", &to); err != nil {
		t.Error(err)
	}
	to.want(t, "")
	if err := second.Missed("0-0"+life, &to); err != nil {
		t.Error(err)
	}
	to.want(t, "0-1"+life+"=c")
}
