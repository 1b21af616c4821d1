package transport_test

import (
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/transport"
)

type trapWriter struct{ way func() }

func (w trapWriter) Write([]byte) (int, error) { w.way(); return 0, nil }
func (w trapWriter) Read([]byte) (int, error)  { w.way(); return 0, nil }

// A Writer that does not return leaves a broken stream, on which nobody hangs,
// and a Reader the end of one.
func TestStreamThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("no wire") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			s := transport.NewStream(strings.NewReader(""), trapWriter{way}, nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				_ = s.Write([]byte("{}"))
			}()
			<-done
			if err := s.Write([]byte("{}")); err == nil {
				t.Error("a broken stream takes messages")
			}
			if err := s.Flush(); err == nil {
				t.Error("a broken stream is flushed")
			}
		})
	}
	_, err := transport.NewStream(trapWriter{func() { panic("no wire") }}, io.Discard, nil).Read()
	if err == nil || !strings.Contains(err.Error(), "no wire") {
		t.Errorf("reading says %v", err)
	}
}
