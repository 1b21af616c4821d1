package record

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// Proxy passes HTTP requests on to the origin of a URL, and records the bodies of
// both ways; of an event stream the data of each event. Of headers it records none,
// as they have tokens. host is what clients call it, such as 127.0.0.1:8080: requests
// with another Host are refused, so that no foreign name leads through it to the
// server.
func Proxy(w *recording.Writer, to *url.URL, host string) http.Handler {
	origin := &url.URL{Scheme: to.Scheme, Host: to.Host}
	p := &proxy{w: w, host: host}
	p.pass = &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(origin)
			r.Out.Header.Set("Accept-Encoding", "identity") // what is recorded is to be read
		},
		ModifyResponse: p.answered,
		ErrorHandler: func(rw http.ResponseWriter, r *http.Request, err error) {
			p.note(r, 0, "failed: %v", err)
			http.Error(rw, "talaria tap: "+err.Error(), http.StatusBadGateway)
		},
	}
	return p
}

type proxy struct {
	w    *recording.Writer
	host string
	pass *httputil.ReverseProxy
	n    atomic.Int64
}

// connKey is where the context of a request has the number of its exchange, and
// its begin.
type connKey struct{}

type exchange struct {
	conn     string
	begin    time.Time
	switched bool // what follows is no HTTP
}

func (p *proxy) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	if _, port, _ := net.SplitHostPort(p.host); r.Host != p.host && r.Host != "localhost:"+port {
		http.Error(rw, fmt.Sprintf("talaria tap: Host is %q; ask %s", r.Host, p.host), http.StatusForbidden)
		return
	}
	// Otherwise net/http closes the body of the request when the answer begins. If it is not
	// yet known there that the body has ended, the transport fails, and cuts the answer off.
	_ = http.NewResponseController(rw).EnableFullDuplex() // HTTP/2 is, and a test need not be
	e := &exchange{conn: strconv.FormatInt(p.n.Add(1), 10), begin: time.Now()}
	r = r.WithContext(context.WithValue(r.Context(), connKey{}, e))
	in := r.Body
	if in == nil || in == http.NoBody {
		p.pass.ServeHTTP(rw, r)
		return
	}
	r.Body = &body{ReadCloser: in, to: &whole{w: p.w, dir: recording.Out, conn: e.conn}}
	p.pass.ServeHTTP(rw, r)
	// With full duplex, net/http panics when it reads the rest of the body after the handler
	// (golang/go#68560). Close reads it here; the answer does not wait for that.
	if !e.switched {
		_ = http.NewResponseController(rw).Flush()
		_ = in.Close()
	}
}

// note says how a request was answered, status 0 if it was not.
func (p *proxy) note(r *http.Request, status int, format string, args ...any) {
	e, _ := r.Context().Value(connKey{}).(*exchange)
	text := fmt.Appendf(nil, "%s %s ", r.Method, r.URL.Path)
	p.w.Add(recording.Entry{Dir: recording.Note, Conn: e.conn, HTTP: status, Text: fmt.Appendf(text, format, args...)})
}

// answered is called with the head of a response.
func (p *proxy) answered(resp *http.Response) error {
	e, _ := resp.Request.Context().Value(connKey{}).(*exchange)
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	p.note(resp.Request, resp.StatusCode, "HTTP %d %s after %v", resp.StatusCode, kind, time.Since(e.begin).Round(10*time.Microsecond))
	switch {
	case resp.StatusCode == http.StatusSwitchingProtocols:
		e.switched = true
	case kind == "text/event-stream":
		resp.Body = &body{ReadCloser: resp.Body, to: &events{whole: whole{w: p.w, dir: recording.In, conn: e.conn}}}
	default:
		resp.Body = &body{ReadCloser: resp.Body, to: &whole{w: p.w, dir: recording.In, conn: e.conn}}
	}
	return nil
}

// taker gets the bytes of a body, and its end.
type taker interface {
	take(p []byte)
	end()
}

// body is one that is examined while it is read.
type body struct {
	io.ReadCloser
	to   taker
	over bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.to.take(p[:n])
	if err != nil {
		b.finish()
	}
	return n, err
}

func (b *body) Close() error {
	b.finish()
	return b.ReadCloser.Close()
}

func (b *body) finish() {
	if !b.over {
		b.over = true
		b.to.end()
	}
}

// whole makes one entry of a body.
type whole struct {
	w    *recording.Writer
	dir  recording.Dir
	conn string
	text []byte
	more int // bytes that are left out
}

func (o *whole) take(p []byte) {
	room := min(len(p), recording.MaxEntry-len(o.text))
	o.text = append(o.text, p[:room]...)
	o.more += len(p) - room
}

func (o *whole) end() {
	if o.more > 0 {
		o.w.Add(recording.Entry{Dir: recording.Note, Conn: o.conn, Text: tooLong(len(o.text)+o.more, o.dir)})
	} else if len(bytes.TrimSpace(o.text)) > 0 {
		o.w.Add(recording.Entry{Dir: o.dir, Conn: o.conn, Text: bytes.TrimSpace(o.text)})
	}
	o.text, o.more = nil, 0
}

// events makes an entry of the data of each event.
type events struct {
	whole
	line []byte
}

func (e *events) take(p []byte) {
	for len(p) > 0 {
		part, after, ended := bytes.Cut(p, []byte{'\n'})
		if len(e.line)+len(part) <= recording.MaxEntry {
			e.line = append(e.line, part...)
		}
		if ended {
			e.endLine()
		}
		p = after
	}
}

func (e *events) endLine() {
	line := bytes.TrimSuffix(e.line, []byte{'\r'})
	if data, ok := bytes.CutPrefix(line, []byte("data:")); ok {
		if len(e.text) > 0 {
			e.whole.take([]byte{'\n'})
		}
		e.whole.take(bytes.TrimPrefix(data, []byte{' '}))
	} else if len(line) == 0 {
		e.whole.end()
	}
	e.line = e.line[:0]
}

func (e *events) end() {
	e.endLine()
	e.whole.end()
}
