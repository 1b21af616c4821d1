package recording

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// The bounds of what waits to be written: entries, bytes of their texts, and how long
// Close waits for it.
const (
	maxWaiting     = 65536
	maxWaitingSize = 16 << 20 // and the text that comes then
	patience       = 5 * time.Second
)

// Writer writes entries, on a goroutine of its own while there are some. Failures
// have no effect on the recorded connection, which never waits. All methods are safe
// for concurrent use.
type Writer struct {
	to     io.Writer
	left   int64 // bytes that may still be written; the goroutine's
	memory bool  // an entry is written at once: to never waits

	mu      sync.Mutex
	changed sync.Cond
	waiting []Entry
	size    int   // of the texts that wait, and of the one that is being written
	lost    int   // entries that came since there was no room
	running bool  // there is a goroutine
	over    bool  // nothing more is written
	err     error // the first
}

// NewWriter returns a Writer of at most max bytes, behind which a note says that
// the rest is missing. Each entry is one call of to.Write.
func NewWriter(to io.Writer, max int64) *Writer {
	w := &Writer{to: to, left: max}
	w.changed.L = &w.mu
	return w
}

// NewMemoryWriter is NewWriter for what takes each entry without waiting: none is left
// out because others wait.
func NewMemoryWriter(to io.Writer, max int64) *Writer {
	w := NewWriter(to, max)
	w.memory = true
	return w
}

// Add writes an entry, soon: it copies its text, which may change afterwards. Where too
// much waits to be written the entry is left out, and a note says how many were. Zero
// At means now.
func (w *Writer) Add(e Entry) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	if len(e.Text) > MaxEntry {
		e.Dir, e.Text = Note, fmt.Appendf(nil, "a text of %d bytes (%s) is left out: it is too long", len(e.Text), e.Dir)
	} else if !w.memory {
		e.Text = bytes.Clone(e.Text)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.over:
		return
	case w.memory:
		full, err := w.write(e)
		w.over, w.err = full || err != nil, err
		return
	case len(w.waiting) >= maxWaiting || w.size > maxWaitingSize:
		w.lost++
		return
	}
	w.tell(e.At)
	w.take(e)
}

// tell adds a note of what was lost. w.mu is held.
func (w *Writer) tell(at time.Time) {
	if w.lost > 0 {
		w.take(Entry{At: at, Dir: Note, Text: fmt.Appendf(nil, "entries that are missing here: %d; they came faster than they could be written", w.lost)})
		w.lost = 0
	}
}

// take adds an entry to those that wait. w.mu is held.
func (w *Writer) take(e Entry) {
	w.waiting = append(w.waiting, e)
	w.size += len(e.Text)
	if !w.running {
		w.running = true
		go w.run()
	}
}

// run writes what waits.
func (w *Writer) run() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for len(w.waiting) > 0 && !w.over {
		e := w.waiting[0]
		w.waiting[0], w.waiting = Entry{}, w.waiting[1:]
		w.mu.Unlock()
		full, err := w.write(e)
		w.mu.Lock()
		w.size -= len(e.Text)
		if full || err != nil {
			w.over, w.err = true, err
		}
	}
	w.waiting, w.running = nil, false
	w.changed.Broadcast()
}

// write writes one entry, or that there is no room for it.
func (w *Writer) write(e Entry) (full bool, err error) {
	text, err := e.Append(nil)
	if err == nil && int64(len(text)) > w.left {
		full = true
		end := Entry{At: e.At, Dir: Note, Conn: e.Conn, Text: []byte("the recording is full: what follows is missing")}
		text, err = end.Append(nil)
	}
	if err == nil {
		w.left -= int64(len(text))
		_, err = w.to.Write(text)
	}
	return full, err
}

// Close waits until all is written, but not forever. Entries that are added later are
// left out. The error says why not all was written; a full recording is not an error.
func (w *Writer) Close() error {
	late := false
	timer := time.AfterFunc(patience, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		late = true
		w.changed.Broadcast()
	})
	defer timer.Stop()
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.over {
		w.tell(time.Now())
	}
	for w.running && !late {
		w.changed.Wait()
	}
	if w.running && w.err == nil {
		w.err = errors.New("it could not be written for too long")
	}
	w.over = true
	return w.err
}
