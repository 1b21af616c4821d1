package recording

import (
	"fmt"
	"io"
	"sync"
	"time"
)

// Writer writes entries. What fails fails here alone: who is watched does not
// notice. All methods are safe for concurrent use.
type Writer struct {
	mu   sync.Mutex
	to   io.Writer
	left int64 // bytes that may still be written
	full bool
	err  error // the first
}

// NewWriter returns a Writer of at most max bytes, behind which a note says that
// the rest is missing. Each entry is one call of to.Write.
func NewWriter(to io.Writer, max int64) *Writer { return &Writer{to: to, left: max} }

// Add writes an entry. Its text may change afterwards. Zero At means now.
func (w *Writer) Add(e Entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.full || w.err != nil {
		return
	}
	if e.At.IsZero() {
		e.At = time.Now()
	}
	if len(e.Text) > MaxEntry {
		e.Dir, e.Text = Note, fmt.Appendf(nil, "a text of %d bytes (%s) is left out: it is too long", len(e.Text), e.Dir)
	}
	text, err := e.append(nil)
	if err == nil && int64(len(text)) > w.left {
		w.full = true
		end := Entry{At: e.At, Dir: Note, Conn: e.Conn, Text: []byte("the recording is full: what follows is missing")}
		text, err = end.append(nil)
	}
	if err == nil {
		w.left -= int64(len(text))
		_, err = w.to.Write(text)
	}
	w.err = err
}

// Err returns why nothing is written any more; nil if all is well, or if the
// recording is full.
func (w *Writer) Err() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}
