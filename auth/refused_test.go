package auth_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/auth"
)

// pipeListener accepts connections within the process, so that time can be
// false.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l *pipeListener) Close() error   { close(l.done); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// Who has no token and never sends the body that it promised is let go soon.
func TestRefusedBodyHasATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		web := &http.Server{Handler: protect(newJWT(t, newIssuer(), auth.JWTOptions{}), resource, &auth.Options{})(&reached{})}
		ended := make(chan error, 1)
		go func() { ended <- web.Serve(l) }()
		client, server := net.Pipe()
		l.conns <- server
		start := time.Now()
		if _, err := io.WriteString(client, "POST /mcp HTTP/1.1\r\nHost: notes.example.com\r\nContent-Length: 1000\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(client)
		res, err := http.ReadResponse(in, nil)
		if err != nil || res.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%v, %+v", err, res)
		}
		if _, err := io.Copy(io.Discard, res.Body); err != nil {
			t.Error(err)
		}
		if _, err := in.ReadByte(); err == nil || time.Since(start) > time.Minute {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := web.Close(); err != nil {
			t.Error(err)
		}
		<-ended
	})
}
