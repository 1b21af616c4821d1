package streamable

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// pipeListener hands out the server's ends of pipes. It is in memory, so that
// time in a synctest bubble passes at once.
type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	close(l.closed)
	return nil
}

func (*pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe", Net: "pipe"} }

// onPipe runs test in a bubble with the client's end of a connection to h. No
// goroutine of the server may be left at the end: the bubble sees to that.
func onPipe(t *testing.T, h http.Handler, test func(t *testing.T, c net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
		srv := &http.Server{Handler: h}
		served := make(chan error)
		go func() { served <- srv.Serve(l) }()
		client, server := net.Pipe()
		l.conns <- server
		test(t, client)
		_ = client.Close()
		if err := srv.Close(); err != nil {
			t.Error(err)
		}
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
		time.Sleep(time.Hour) // who sleeps finds the connection closed
	})
}

// head is the start of a POST; length "" means chunked.
func head(length string, hs ...string) string {
	lines := append(headers{"Host: x", content, accept, modern, "Mcp-Method: m"}, hs...)
	if length == "" {
		lines = append(lines, "Transfer-Encoding: chunked")
	} else {
		lines = append(lines, "Content-Length: "+length)
	}
	return "POST /mcp HTTP/1.1\r\n" + strings.Join(lines, "\r\n") + "\r\n\r\n"
}

// request is a whole POST.
func request(body string, hs ...string) string { return head(fmt.Sprint(len(body)), hs...) + body }

// reply reads one response and its body.
func reply(t *testing.T, r *bufio.Reader) (status int, body string) {
	t.Helper()
	w, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatalf("no response: %v", err)
	}
	text, err := io.ReadAll(w.Body)
	if err != nil {
		t.Errorf("body %q: %v", text, err)
	}
	return w.StatusCode, string(text)
}

// A body that trickles costs its connection, after the time allowed, whether
// it would have been read or was refused before.
func TestTrickle(t *testing.T) {
	tests := []struct {
		name, head, drop string
		status           int
	}{
		{"small", head("1000"), "x", 408},
		{"large", head("200000"), "x", 408},
		{"chunked", head(""), "1\r\nx\r\n", 408},
		{"chunk that trickles", head("") + "ffff\r\n", "x", 408},
		{"nothing at all", head("1000"), "", 408},
		{"refused for its type", strings.Replace(head("1000"), content, "Content-Type: text/plain", 1), "x", 415},
		{"refused for Accept", strings.Replace(head("1000"), accept, "Accept: text/html", 1), "x", 406},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			onPipe(t, New(newBackend().as(), Options{}), func(t *testing.T, c net.Conn) {
				begin := time.Now()
				go func() {
					_, err := io.WriteString(c, tt.head)
					for err == nil && tt.drop != "" {
						time.Sleep(time.Second)
						_, err = io.WriteString(c, tt.drop)
					}
				}()
				in := bufio.NewReader(c)
				status, body := reply(t, in)
				if took := time.Since(begin); status != tt.status || took > DefaultReadTimeout+time.Second {
					t.Errorf("status %d after %v (%s), want %d after %v", status, took, body, tt.status, DefaultReadTimeout)
				}
				if _, err := in.ReadByte(); err == nil {
					t.Error("the connection is still open")
				}
			})
		})
	}
}

// lateBody is whole only after some time.
type lateBody struct {
	io.Reader
	after time.Duration
}

func (b *lateBody) Read(p []byte) (int, error) {
	time.Sleep(b.after)
	b.after = 0
	return b.Reader.Read(p)
}

// A body that is whole when its time is up is too late, as the deadline may
// have reached the connection; another body's time does not count.
func TestLateBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := New(newBackend().as(), Options{})
		send := func(after time.Duration) *httptest.ResponseRecorder {
			r := httptest.NewRequest("POST", "/mcp", &lateBody{strings.NewReader(call("m", "")), after})
			setHeaders(r, headers{content, modern, "Mcp-Method: m"})
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			return w
		}
		var wg sync.WaitGroup
		for start := range 5 {
			wg.Go(func() {
				time.Sleep(time.Duration(start) * 7 * time.Second)
				check(t, fmt.Sprint("in time ", start), send(DefaultReadTimeout-time.Second), 200, 0, true)
			})
			wg.Go(func() {
				time.Sleep(time.Duration(start) * 11 * time.Second)
				check(t, fmt.Sprint("late ", start), send(DefaultReadTimeout+time.Second), 408, protocol.CodeParseError, false)
			})
		}
		wg.Wait()
		time.Sleep(time.Minute)
		synctest.Wait()
		if h.bodies.first != nil || h.bodies.last != nil || h.bodies.armed {
			t.Errorf("nobody is watched: %+v %+v %v", h.bodies.first, h.bodies.last, h.bodies.armed)
		}
	})
}

// The time for reading is for the body alone: the handler may take longer, the
// connection may idle longer, and is not cancelled by it.
func TestReadTimeoutEndsWithBody(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		time.Sleep(10 * time.Minute)
		if err := c.HTTP.Context().Err(); err != nil {
			t.Errorf("the request's context: %v", err)
		}
		return result(c, "1")
	}
	onPipe(t, New(b.as(), Options{}), func(t *testing.T, c net.Conn) {
		in := bufio.NewReader(c)
		for range 3 {
			body := call("m", "")
			if _, err := io.WriteString(c, head(fmt.Sprint(len(body)))+body[:20]); err != nil {
				t.Fatal(err)
			}
			time.Sleep(DefaultReadTimeout - time.Second)
			if _, err := io.WriteString(c, body[20:]); err != nil {
				t.Fatal(err)
			}
			if status, text := reply(t, in); status != 200 || !strings.Contains(text, `"did":1`) {
				t.Errorf("%d %s", status, text)
			}
			time.Sleep(time.Hour)
		}
	})
}

// Without a limit a body may take as long as it likes.
func TestNoReadTimeout(t *testing.T) {
	onPipe(t, New(newBackend().as(), Options{ReadTimeout: -1}), func(t *testing.T, c net.Conn) {
		body := call("m", "")
		go func() {
			_, _ = io.WriteString(c, head(fmt.Sprint(len(body))))
			for i := range body {
				time.Sleep(time.Minute)
				_, _ = io.WriteString(c, body[i:i+1])
			}
		}()
		if status, text := reply(t, bufio.NewReader(c)); status != 200 {
			t.Errorf("%d %s", status, text)
		}
	})
}

// A client that does not read its stream fails the sender after the time for
// one write, and holds nothing longer.
func TestStalledReader(t *testing.T) {
	b := newBackend()
	var failed error
	var took time.Duration
	b.serve = func(c *Call) Answer {
		begin := time.Now()
		for failed == nil && time.Since(begin) < time.Hour {
			failed = c.Send([]byte(`{"n":1}`))
		}
		took = time.Since(begin)
		return result(c, "1")
	}
	onPipe(t, New(b.as(), Options{}), func(t *testing.T, c net.Conn) {
		if _, err := io.WriteString(c, request(call("m", ""))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if !errors.Is(failed, os.ErrDeadlineExceeded) || took != DefaultWriteTimeout {
			t.Errorf("Send: %v after %v, want a deadline after %v", failed, took, DefaultWriteTimeout)
		}
		if _, err := io.Copy(io.Discard, c); err != nil {
			t.Errorf("the connection is not closed: %v", err)
		}
	})
}

// The same for a JSON answer too large for the buffers.
func TestStalledReaderOfJSON(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer { return result(c, `"`+strings.Repeat("x", 1<<20)+`"`) }
	var took time.Duration
	h := New(b.as(), Options{})
	timed := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		begin := time.Now()
		h.ServeHTTP(w, r)
		took = time.Since(begin)
	})
	onPipe(t, timed, func(t *testing.T, c net.Conn) {
		if _, err := io.WriteString(c, request(call("m", ""))); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if took != DefaultWriteTimeout {
			t.Errorf("the handler took %v (0: it hangs), want %v", took, DefaultWriteTimeout)
		}
	})
}

// A slow stream is not a stalled one: the time is for each write, and over
// with the request.
func TestWriteTimeoutIsPerWrite(t *testing.T) {
	b := newBackend()
	b.serve = func(c *Call) Answer {
		for range 3 {
			time.Sleep(10 * time.Minute)
			if err := c.Send([]byte(`{}`)); err != nil {
				t.Errorf("Send: %v", err)
			}
		}
		return result(c, "1")
	}
	onPipe(t, New(b.as(), Options{}), func(t *testing.T, c net.Conn) {
		in := bufio.NewReader(c)
		for range 2 {
			if _, err := io.WriteString(c, request(call("m", ""))); err != nil {
				t.Fatal(err)
			}
			if status, body := reply(t, in); status != 200 || strings.Count(body, "data: ") != 4 {
				t.Errorf("%d %q", status, body)
			}
			time.Sleep(time.Hour)
		}
	})
}

// A client that goes away cancels a modern request's context.
func TestDisconnect(t *testing.T) {
	b := newBackend()
	var sent error
	ended := false
	b.serve = func(c *Call) Answer {
		<-c.HTTP.Context().Done()
		sent, ended = c.Send([]byte(`{}`)), true
		return result(c, "1")
	}
	onPipe(t, New(b.as(), Options{}), func(t *testing.T, c net.Conn) {
		if _, err := io.WriteString(c, request(call("m", ""))); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_ = c.Close()
		synctest.Wait()
		if !ended || sent == nil || errors.Is(sent, wire.ErrAnswered) {
			t.Errorf("ended %v, Send to nobody: %v; want the error of the connection", ended, sent)
		}
	})
}

// The stream of a session: open at once, comments while it is quiet, messages
// as they come, an end when the backend says so.
func TestGetStream(t *testing.T) {
	b := newBackend()
	b.listen = func(to *Events) *protocol.Error {
		if err := to.Open(); err != nil || !to.Wait() {
			t.Errorf("Open: %v, or over", err)
		}
		if err := to.Event("", []byte(`{"n":1}`)); err != nil || !to.Wait() {
			t.Errorf("Event: %v, or over", err)
		}
		return nil
	}
	onPipe(t, New(b.as(), Options{}), func(t *testing.T, c net.Conn) {
		begin := time.Now()
		if _, err := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMcp-Session-Id: s1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		w, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil || w.StatusCode != 200 || w.Header.Get("Content-Type") != "text/event-stream" || time.Since(begin) != 0 {
			t.Fatalf("%v after %v, %v; want the headers at once", w, time.Since(begin), err)
		}
		text, err := io.ReadAll(w.Body)
		if want := ":\n\n:\n\n" + event(`{"n":1}`) + ":\n\n"; err != nil || string(text) != want || time.Since(begin) != 2*DefaultKeepAlive {
			t.Errorf("%q after %v, %v; want %q after %v", text, time.Since(begin), err, want, 2*DefaultKeepAlive)
		}
	})
}

// The header of a stream says that its connection ends with it where that was taken
// over: a client that sent its next request on it would get no answer.
func TestStreamSaysThatItsConnectionEnds(t *testing.T) {
	for _, keep := range []bool{false, true} {
		b := newBackend()
		b.listen = func(to *Events) *protocol.Error {
			_ = to.Open()
			to.Wait()
			return nil
		}
		onPipe(t, New(b.as(), Options{NoHijack: keep}), func(t *testing.T, c net.Conn) {
			from := bufio.NewReader(c)
			for i := range 2 {
				_, sent := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: x\r\nAccept: text/event-stream\r\nMcp-Session-Id: s1\r\n\r\n")
				w, err := http.ReadResponse(from, nil)
				if i > 0 {
					if served := sent == nil && err == nil; served != keep {
						t.Errorf("NoHijack is %v: a second request is served: %v", keep, served)
					}
					return
				}
				if err != nil || w.Close == keep {
					t.Fatalf("NoHijack is %v: %+v, %v", keep, w, err)
				}
				if _, err := io.Copy(io.Discard, w.Body); err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
			}
		})
	}
}

// A listener that stops reading ends with its next sign of life.
func TestGetStalled(t *testing.T) {
	b := newBackend()
	var took time.Duration
	b.listen = func(to *Events) *protocol.Error {
		begin := time.Now()
		if err := to.Open(); err != nil {
			t.Error(err)
		}
		for to.Wait() && time.Since(begin) < time.Hour {
		}
		took = time.Since(begin)
		return nil
	}
	onPipe(t, New(b.as(), Options{KeepAlive: time.Minute, WriteTimeout: time.Second}), func(t *testing.T, c net.Conn) {
		if _, err := io.WriteString(c, "GET /mcp HTTP/1.1\r\nHost: x\r\nMcp-Session-Id: s1\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if _, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		synctest.Wait()
		if took != time.Minute+time.Second {
			t.Errorf("the stream ended after %v, want a minute and a second", took)
		}
	})
}

// Negative durations switch the limits off.
func TestNoLimits(t *testing.T) {
	h := New(newBackend().as(), Options{ReadTimeout: -1, WriteTimeout: -1, KeepAlive: -1})
	if h.opts.ReadTimeout != 0 || h.opts.WriteTimeout != 0 || h.opts.KeepAlive != 0 {
		t.Errorf("%+v, want no timeouts", h.opts)
	}
}
