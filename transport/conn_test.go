package transport_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/transporttest"
)

const limit = 8 << 10

func TestStream(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Link {
		ar, bw := io.Pipe()
		br, aw := io.Pipe()
		opts := &transport.StreamOptions{MaxMessage: limit}
		return transporttest.Link{
			A: transport.NewStream(ar, aw, opts), B: transport.NewStream(br, bw, opts),
			MaxMessage: limit, HalfClose: aw.Close,
		}
	})
}

func TestPipe(t *testing.T) {
	transporttest.Run(t, func(*testing.T) transporttest.Link {
		a, b := transport.Pipe()
		return transporttest.Link{A: a, B: b}
	})
}

func TestSocket(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		t.Run(network, func(t *testing.T) {
			transporttest.Run(t, func(t *testing.T) transporttest.Link {
				a, b := sockets(t, network)
				opts := &transport.SocketOptions{MaxMessage: limit}
				return transporttest.Link{
					A: transport.NewSocket(a, opts), B: transport.NewSocket(b, opts),
					MaxMessage: limit, HalfClose: a.(interface{ CloseWrite() error }).CloseWrite,
				}
			})
		})
	}
}

// sockets returns the two ends of a connection.
func sockets(t *testing.T, network string) (a, b net.Conn) {
	t.Helper()
	address := "127.0.0.1:0"
	if network == "unix" {
		address = filepath.Join(t.TempDir(), "s")
	}
	listener, err := net.Listen(network, address)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if a, err = net.Dial(network, listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = listener.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestSocketStalled sees that a peer which reads nothing loses the connection
// after the time allowed, and that both Write and Read end.
func TestSocketStalled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe() // takes nothing that is not read
		defer b.Close()
		conn := transport.NewSocket(a, &transport.SocketOptions{WriteTimeout: 3 * time.Second})
		read := make(chan error, 1)
		go func() {
			_, err := conn.Read()
			read <- err
		}()
		begin := time.Now()
		err := conn.Write([]byte(`{}`))
		if err == nil {
			err = conn.Flush()
		}
		if netErr, ok := errors.AsType[net.Error](err); !ok || !netErr.Timeout() {
			t.Errorf("Write: %v, want a timeout", err)
		}
		if took := time.Since(begin); took != 3*time.Second {
			t.Errorf("Write failed after %v, want 3s", took)
		}
		if err := <-read; err == nil || errors.Is(err, io.EOF) {
			t.Errorf("Read: %v, want the error of a closed connection", err)
		}
	})
}

// TestSocketSlow sees that a peer which reads slowly but steadily keeps the
// connection, though a message takes longer than the time for a write.
func TestSocketSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := net.Pipe()
		conn := transport.NewSocket(a, &transport.SocketOptions{WriteTimeout: 3 * time.Second})
		message := make([]byte, 1<<20)
		go func() {
			_ = conn.Write(message)
			_ = conn.Close()
		}()
		begin, total := time.Now(), 0
		buffer := make([]byte, 64<<10)
		for {
			n, err := io.ReadFull(b, buffer)
			total += n
			if err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		if total != len(message)+1 {
			t.Errorf("read %d bytes of %d", total, len(message)+1)
		}
		if took := time.Since(begin); took < 10*time.Second {
			t.Errorf("took %v, which tests nothing", took)
		}
	})
}

// TestPipeGone sees that who writes to an end that is gone does not wait.
func TestPipeGone(t *testing.T) {
	a, b := transport.Pipe()
	if err := a.Write([]byte(`1`)); err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if m, err := b.Read(); string(m) != `1` || err != nil {
		t.Errorf("Read: %s, %v, want what was written before", m, err)
	}
	if _, err := b.Read(); !errors.Is(err, transport.ErrPeerGone) || !errors.Is(err, io.EOF) {
		t.Errorf("Read: %v, want ErrPeerGone", err)
	}
	if err := b.Write([]byte(`2`)); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Write: %v, want io.ErrClosedPipe", err)
	}
}
