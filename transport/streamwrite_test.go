package transport

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestStreamWrite(t *testing.T) {
	var out bytes.Buffer
	s := NewStream(strings.NewReader(""), &out, nil)
	message := []byte(`{"a":1}`)
	for _, err := range []error{
		s.Write(message),
		s.Write([]byte("{\n\"b\": [\r\n2]\n}\n")), // still one line
		s.Write(nil),
		s.Flush(),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	message[1] = 'X' // Write does not keep it
	want := "{\"a\":1}\n{ \"b\": [\r 2] } \n\n"
	if got := out.String(); got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

// Goroutines that write at once never mix their lines, and each keeps its
// order.
func TestStreamWriteConcurrent(t *testing.T) {
	const writers, each = 16, 200
	var out bytes.Buffer
	s := NewStream(strings.NewReader(""), &out, nil)
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := s.Write(fmt.Appendf(nil, "%d %d %s", w, i, strings.Repeat("x", i))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	next := make([]int, writers)
	for _, line := range lines(t, out.String()) {
		var w, i int
		var xs string
		if n, err := fmt.Sscanf(line+" ", "%d %d %s", &w, &i, &xs); n < 2 || (err != nil && i > 0) || len(xs) != i || i != next[w] {
			t.Fatalf("line %.40q is not message %d of its writer", line, next[w])
		}
		next[w]++
	}
	for w, n := range next {
		if n != each {
			t.Errorf("%d messages of writer %d, want %d", n, w, each)
		}
	}
}

// gate is a writer that waits for leave before each Write, and fails when it
// is closed or told to.
type gate struct {
	leave  chan error
	closed chan struct{}

	mu     sync.Mutex
	writes []string
}

func newGate() *gate { return &gate{leave: make(chan error), closed: make(chan struct{})} }

func (g *gate) Write(p []byte) (int, error) {
	select {
	case err := <-g.leave:
		if err != nil {
			return 0, err
		}
	case <-g.closed:
		return 0, io.ErrClosedPipe
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.writes = append(g.writes, string(p))
	return len(p), nil
}

func (g *gate) Close() error {
	close(g.closed)
	return nil
}

// What comes while a write is under way leaves in one write after it.
func TestStreamBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := NewStream(strings.NewReader(""), g, nil)
		var wg sync.WaitGroup
		write := func(m string) {
			wg.Go(func() {
				if err := s.Write([]byte(m)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		for _, m := range []string{"a", "b", "c", "d"} {
			write(m)
		}
		flushed := false
		wg.Go(func() {
			if err := s.Flush(); err != nil {
				t.Error(err)
			}
			flushed = true
		})
		synctest.Wait()
		g.leave <- nil
		synctest.Wait()
		if flushed {
			t.Error("Flush returned while b, c and d had not left")
		}
		g.leave <- nil
		wg.Wait()
		if want := []string{"a\n", "b\nc\nd\n"}; !slices.Equal(g.writes, want) {
			t.Errorf("writes %q, want %q", g.writes, want)
		}
	})
}

// A peer that does not read makes writers wait, not memory grow; when it reads
// again everything arrives.
func TestStreamBackPressure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const size, writers = 100 << 10, 40 // 4 MB in all
		g := newGate()
		s := NewStream(strings.NewReader(""), g, nil).(*stream)
		var wg sync.WaitGroup
		done := make(chan int, writers)
		for i := range writers {
			wg.Go(func() {
				if err := s.Write(bytes.Repeat([]byte("x"), size)); err != nil {
					t.Error(err)
				}
				done <- i
			})
		}
		synctest.Wait()
		waiting := writers - len(done)
		if held := len(s.unsent); held > maxUnsent+size+1 || waiting < 10 {
			t.Errorf("the stream holds %d bytes, %d writers wait; want about %d bytes and the rest waiting", held, waiting, maxUnsent)
		}
		go func() {
			for {
				select {
				case g.leave <- nil:
				case <-g.closed:
					return
				}
			}
		}()
		wg.Wait()
		if err := s.Flush(); err != nil {
			t.Error(err)
		}
		if got := len(strings.Join(g.writes, "")); got != writers*(size+1) {
			t.Errorf("%d bytes arrived, want %d", got, writers*(size+1))
		}
		if cap(s.spare) > maxUnsent && cap(s.unsent) > maxUnsent {
			t.Error("the memory of the rush is kept")
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}

// A failure is the error of everything that waits and of everything after.
func TestStreamWriteFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		broken := errors.New("broken pipe")
		g := newGate()
		s := NewStream(strings.NewReader("still\n"), g, nil)
		errs := make(chan error, 21)
		for range 20 { // more than may wait unsent
			go func() { errs <- s.Write(bytes.Repeat([]byte("x"), 200<<10)) }()
		}
		synctest.Wait()
		early := len(errs) // those whose message was taken
		go func() { errs <- s.Flush() }()
		synctest.Wait()
		g.leave <- broken
		synctest.Wait()
		if len(errs) != 21 {
			t.Fatalf("%d of 21 calls have returned", len(errs))
		}
		for i := range 21 {
			if err := <-errs; (i >= early) != errors.Is(err, broken) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		for name, err := range map[string]error{"Write": s.Write([]byte("x")), "Flush": s.Flush()} {
			if !errors.Is(err, broken) {
				t.Errorf("%s after the failure: %v", name, err)
			}
		}
		if m, err := s.Read(); string(m) != "still" || err != nil {
			t.Errorf("Read: %q, %v; a failed write must not end reading", m, err)
		}
	})
}

// Close frees everybody that waits, and makes everything after fail.
func TestStreamClose(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		in, stdin := io.Pipe()
		g := newGate()
		s := NewStream(in, g, nil)
		errs := make(chan error, 30)
		for range 20 {
			go func() { errs <- s.Write(bytes.Repeat([]byte("x"), 200<<10)) }()
		}
		synctest.Wait()
		taken := len(errs)
		go func() { errs <- s.Flush() }()
		go func() { _, err := s.Read(); errs <- err }()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		if len(errs) != 22 {
			t.Fatalf("%d of 22 calls have returned", len(errs))
		}
		for i := range 22 {
			if err := <-errs; (i >= taken) != errors.Is(err, ErrClosed) {
				t.Errorf("call %d: %v", i, err)
			}
		}
		_, readErr := s.Read()
		for name, err := range map[string]error{"Read": readErr, "Write": s.Write([]byte("x")), "Flush": s.Flush()} {
			if !errors.Is(err, ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", name, err)
			}
		}
		if _, err := stdin.Write([]byte("x")); err == nil {
			t.Error("the reading side is open still")
		}
	})
}

// A writer that nothing can interrupt, as a blocked standard output, holds the
// one goroutine that is inside it and nobody else.
func TestStreamCloseStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newGate()
		s := NewStream(strings.NewReader(""), struct{ io.Writer }{g}, nil)
		go func() { _ = s.Write([]byte("stuck")) }()
		synctest.Wait()
		flushed := make(chan error, 1)
		go func() { flushed <- s.Flush() }()
		synctest.Wait()
		if err := s.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		synctest.Wait()
		select {
		case err := <-flushed:
			if !errors.Is(err, ErrClosed) {
				t.Errorf("Flush: %v, want ErrClosed", err)
			}
		default:
			t.Error("Flush waits for the writer still")
		}
		if err := s.Write([]byte("x")); !errors.Is(err, ErrClosed) {
			t.Errorf("Write: %v, want ErrClosed", err)
		}
		g.leave <- nil // let it go, or the bubble would not end
	})
}

// Close without anything to close: buffered input is not read any more.
func TestStreamCloseBuffered(t *testing.T) {
	s := NewStream(strings.NewReader("1\n2\n"), io.Discard, nil)
	if m, err := s.Read(); string(m) != "1" || err != nil {
		t.Fatalf("Read: %q, %v", m, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if m, err := s.Read(); !errors.Is(err, ErrClosed) {
		t.Errorf("Read after Close: %q, %v", m, err)
	}
}

type socket struct {
	io.ReadWriter
	closed int
}

func (s *socket) Close() error {
	s.closed++
	return errors.New("close failed")
}

func TestStreamCloseOnce(t *testing.T) {
	both := &socket{ReadWriter: &bytes.Buffer{}}
	if err := NewStream(both, both, nil).Close(); err == nil || err.Error() != "close failed" || both.closed != 1 {
		t.Errorf("one thing for both: closed %d times, %v", both.closed, err)
	}
	r, w := &socket{}, &socket{}
	if err := NewStream(r, w, nil).Close(); err == nil || r.closed != 1 || w.closed != 1 {
		t.Errorf("two things: closed %d and %d times, %v", r.closed, w.closed, err)
	}
}

// Two streams over a pipe, as two programs use them.
func TestStreamPair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fromA, toB := io.Pipe()
		fromB, toA := io.Pipe()
		a, b := NewStream(fromB, toB, nil), NewStream(fromA, toA, nil)
		go func() { // b echoes
			for {
				m, err := b.Read()
				if err != nil {
					_ = b.Close()
					return
				}
				time.Sleep(time.Second)
				_ = b.Write(append([]byte("re: "), m...))
			}
		}()
		for _, m := range []string{"one", "two"} {
			if err := a.Write([]byte(m)); err != nil {
				t.Error(err)
			}
			if got, err := a.Read(); string(got) != "re: "+m || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
	})
}
