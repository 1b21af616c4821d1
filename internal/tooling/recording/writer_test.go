package recording

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// stuck is a place that takes nothing until it is freed.
type stuck struct {
	bytes.Buffer
	begun, free chan struct{}
}

func newStuck() *stuck {
	return &stuck{begun: make(chan struct{}, maxWaiting+9), free: make(chan struct{})}
}

func (s *stuck) Write(p []byte) (int, error) {
	s.begun <- struct{}{}
	<-s.free
	return s.Buffer.Write(p)
}

// held is a Writer that writes its first entry until to is freed.
func held(t *testing.T) (w *Writer, to *stuck) {
	t.Helper()
	to = newStuck()
	w = NewWriter(to, 1<<30)
	w.Add(Entry{Dir: Note, Text: []byte("first")})
	<-to.begun
	return w, to
}

// TestWriterWaitsForNobody: who is watched pays for one copy, even if nothing can be
// written.
func TestWriterWaitsForNobody(t *testing.T) {
	w, to := held(t)
	long := make([]byte, 1<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	w.Add(Entry{Dir: In, Text: long})
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20+1<<14 {
		t.Errorf("a message of %d bytes takes %d", len(long), n)
	}
	text := []byte(`{"jsonrpc":"2.0"}`)
	if n := testing.AllocsPerRun(2000, func() { w.Add(Entry{Dir: In, Text: text}) }); n > 1 { // but for the list, which grows
		t.Errorf("%v allocations for an entry", n)
	}
	close(to.free)
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}

// TestWriterLoses: what comes faster than it can be written is left out, and a note says
// how much, where it was.
func TestWriterLoses(t *testing.T) {
	for name, c := range map[string]struct{ length, fit int }{"many": {1, maxWaiting}, "long": {maxWaitingSize / 4, 4}} {
		t.Run(name, func(t *testing.T) {
			if name == "long" {
				testdep.NoRace(t, "one goroutine writes it")
			}
			synctest.Test(t, func(t *testing.T) { // Close waits in its time
				w, to := held(t)
				const more = 5
				text := bytes.Repeat([]byte("x"), c.length)
				for range c.fit + more {
					w.Add(Entry{Dir: In, Text: text})
				}
				to.free <- struct{}{} // the first
				to.free <- struct{}{} // there is room for one now
				<-to.begun
				<-to.begun
				w.Add(Entry{Dir: In, Text: []byte("last")})
				w.Add(Entry{Dir: In, Text: text})
				w.Add(Entry{Dir: In, Text: text})
				close(to.free)
				if err := w.Close(); err != nil {
					t.Error(err)
				}
				list := all(t, to.String())
				n, lost := 0, 0
				for _, text := range list {
					var one int
					if _, err := fmt.Sscanf(text, `note  "entries that are missing here: %d;`, &one); err == nil {
						lost += one
					} else {
						n++
					}
				}
				if n+lost != 1+c.fit+more+3 || lost < more || !strings.Contains(list[1+c.fit], fmt.Sprintf("missing here: %d;", more)) || list[2+c.fit] != `in  "last"` {
					t.Errorf("%d entries, %d lost", n, lost)
				}
			})
		})
	}
}

// TestWriterEnds: a place that takes nothing holds nobody for ever.
func TestWriterEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, to := held(t)
		if err := w.Close(); err == nil {
			t.Error("it is said to be written")
		}
		w.Add(Entry{Dir: In})
		close(to.free)
		synctest.Wait()
		if list := all(t, to.String()); len(list) != 1 {
			t.Errorf("%q", list)
		}
	})
}

// TestMemoryWriter: what is kept in memory has all, however fast it comes.
func TestMemoryWriter(t *testing.T) {
	testdep.NoRace(t, "one goroutine writes what is kept")
	var b bytes.Buffer
	w := NewMemoryWriter(&b, 1<<30)
	text := bytes.Repeat([]byte("x"), maxWaitingSize/4)
	for range 10 {
		w.Add(Entry{Dir: In, Text: text})
	}
	if n := len(all(t, b.String())); n != 10 {
		t.Errorf("%d entries before Close", n)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
}
