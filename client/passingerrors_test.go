package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// rtFunc is an http.RoundTripper.
type rtFunc func(*http.Request) (*http.Response, error)

func (f rtFunc) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// brokenBody is a body that ends with an error.
type brokenBody struct {
	text io.Reader
	err  error
}

func (b *brokenBody) Read(p []byte) (int, error) {
	n, err := b.text.Read(p)
	if err == io.EOF {
		err = b.err
	}
	return n, err
}

func (b *brokenBody) Close() error { return nil }

// respond answers every request alike; broken is how the body ends, nil for its
// end.
func respond(code int, kind, body string, broken error) rtFunc {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{}
		body := body
		if request, err := io.ReadAll(r.Body); err == nil {
			if _, id, ok := strings.Cut(string(request), `"id":`); ok {
				id, _, _ = strings.Cut(id, ",")
				body = strings.Replace(body, `"id":1,`, `"id":`+id+`,`, 1)
			}
		}
		if kind != "" {
			h.Set("Content-Type", kind)
		}
		if code/100 == 3 {
			h.Set("Location", body)
		}
		if broken == nil {
			broken = io.EOF
		}
		return &http.Response{StatusCode: code, Status: http.StatusText(code), Header: h, Body: &brokenBody{strings.NewReader(body), broken}, ContentLength: -1, Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
	}
}

// fails returns an error of the network.
func fails(err error) rtFunc {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

// Media types.
const js, sse = "application/json", "text/event-stream"

// passingErrors are failures of a network, of what is between, and of a server that is not
// ready.
var passingErrors = map[string]rtFunc{
	"dns temporary":   fails(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "server misbehaving", Name: "x", IsTemporary: true}}),
	"dns not found":   fails(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}}),
	"dns timeout":     fails(&net.OpError{Op: "dial", Net: "tcp", Err: &net.DNSError{Err: "i/o timeout", IsTimeout: true}}),
	"refused":         fails(&net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}),
	"tls reset":       fails(&net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}),
	"tls eof":         fails(io.EOF),
	"tls alert":       fails(&net.OpError{Op: "remote error", Err: tls.AlertError(80)}),
	"tls record":      fails(tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}),
	"tls unknown ca":  fails(&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}),
	"tls timeout":     fails(errors.New("net/http: TLS handshake timeout")),
	"http2 goaway":    fails(errors.New("http2: server sent GOAWAY and closed the connection; LastStreamID=1")),
	"http2 refused":   fails(errors.New("stream error: stream ID 1; REFUSED_STREAM")),
	"malformed":       fails(errors.New(`net/http: HTTP/1.x transport connection broken: malformed HTTP response "SSH-2.0"`)),
	"proxy":           fails(errors.New("proxyconnect: Proxy Authentication Required")),
	"header timeout":  fails(errors.New("net/http: timeout awaiting response headers")),
	"401 then ok":     respond(401, js, `{"error":"invalid_token"}`, nil),
	"403 then ok":     respond(403, "text/html", `<html>WAF`, nil),
	"402":             respond(402, "", ``, nil),
	"408":             respond(408, "", ``, nil),
	"410":             respond(410, "text/html", `gone`, nil),
	"411":             respond(411, "text/html", ``, nil),
	"413":             respond(413, "text/html", ``, nil),
	"418":             respond(418, "text/html", ``, nil),
	"423":             respond(423, "text/html", ``, nil),
	"424":             respond(424, "text/html", ``, nil),
	"425":             respond(425, "text/html", ``, nil),
	"426":             respond(426, "text/html", ``, nil),
	"428":             respond(428, "text/html", ``, nil),
	"431":             respond(431, "text/html", ``, nil),
	"444":             respond(444, "text/html", ``, nil),
	"451":             respond(451, "text/html", ``, nil),
	"460":             respond(460, "text/html", ``, nil),
	"494":             respond(494, "text/html", ``, nil),
	"499":             respond(499, "text/html", ``, nil),
	"501":             respond(501, "text/html", ``, nil),
	"505":             respond(505, "text/html", ``, nil),
	"507":             respond(507, "text/html", ``, nil),
	"509":             respond(509, "text/html", ``, nil),
	"511":             respond(511, "text/html", `captive portal`, nil),
	"521":             respond(521, "text/html", ``, nil),
	"522":             respond(522, "text/html", ``, nil),
	"523":             respond(523, "text/html", ``, nil),
	"524":             respond(524, "text/html", ``, nil),
	"525":             respond(525, "text/html", ``, nil),
	"529":             respond(529, js, `{"type":"error","error":{"type":"overloaded_error"}}`, nil),
	"530":             respond(530, "text/html", ``, nil),
	"598":             respond(598, "text/html", ``, nil),
	"101":             respond(101, "", ``, nil),
	"205":             respond(205, "", ``, nil),
	"206":             respond(206, js, `{"jsonrpc":"2.0","id":1,"resu`, nil),
	"300":             respond(300, "", `/mcp`, nil),
	"302 loop":        respond(302, "", `/mcp`, nil),
	"303 loop":        respond(303, "", `/mcp`, nil),
	"307 loop":        respond(307, "", `/mcp`, nil),
	"308 other":       respond(308, "", `https://login.example/`, nil),
	"302 login":       respond(302, "", `https://login.example/`, nil),
	"304":             respond(304, "", ``, nil),
	"json cut":        respond(200, js, `{"jsonrpc":"2.0","id":1,"result":{"res`, nil),
	"json cut reset":  respond(200, js, `{"jsonrpc":"2.0","id":1,"result":{"res`, io.ErrUnexpectedEOF),
	"json cut reset2": respond(200, js, `{"jsonrpc":"2.0","id":1,"result":{"res`, &net.OpError{Op: "read", Err: syscall.ECONNRESET}),
	"json http2":      respond(200, js, `{"jsonrpc":"2.0","id":1,"result":{"res`, errors.New("stream error: stream ID 1; INTERNAL_ERROR; received from peer")),
	"json null":       respond(200, js, `null`, nil),
	"json []":         respond(200, js, `[]`, nil),
	"json {}":         respond(200, js, `{}`, nil),
	"json string":     respond(200, js, `"ok"`, nil),
	"json ok":         respond(200, js, `{"status":"ok"}`, nil),
	"json message":    respond(200, js, `{"message":"Service warming up"}`, nil),
	"json err":        respond(200, js, `{"error":{"code":503,"message":"x"}}`, nil),
	"rpc null":        respond(200, js, `{"jsonrpc":"2.0","id":1,"result":null}`, nil),
	"rpc empty":       respond(200, js, `{"jsonrpc":"2.0","id":1}`, nil),
	"rpc both":        respond(200, js, `{"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1,"message":"x"}}`, nil),
	"rpc err null":    respond(200, js, `{"jsonrpc":"2.0","id":1,"error":"Service unavailable"}`, nil),
	"rpc wrong id":    respond(200, js, `{"jsonrpc":"2.0","id":99,"result":{}}`, nil),
	"rpc text id":     respond(200, js, `{"jsonrpc":"2.0","id":"1","result":{"resultType":"complete","supportedVersions":["2026-07-28"]}}`, nil),
	"rpc null id err": respond(200, js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32603,"message":"x"}}`, nil),
	"rpc -32000":      respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Server is starting, try again"}}`, nil),
	"rpc -32000 c":    respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32000,"message":"Connection closed"}}`, nil),
	"rpc -32050":      respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32050,"message":"overloaded"}}`, nil),
	"rpc 429":         respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":429,"message":"rate"}}`, nil),
	"rpc 500":         respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":500,"message":"boom"}}`, nil),
	"rpc 502":         respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":502,"message":"boom"}}`, nil),
	"rpc 504":         respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":504,"message":"boom"}}`, nil),
	"rpc 401":         respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":401,"message":"who"}}`, nil),
	"rpc -32603":      respond(200, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}`, nil),
	"400 -32603":      respond(400, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"boom"}}`, nil),
	"400 busy":        respond(400, js, `{"jsonrpc":"2.0","id":1,"error":{"code":429,"message":"boom"}}`, nil),
	"429 rpc":         respond(429, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32029,"message":"Rate limit"}}`, nil),
	"503 null":        respond(503, js, `{"jsonrpc":"2.0","id":null,"error":{"code":-32601,"message":"Method not found"}}`, nil),
	"503 -32601":      respond(503, js, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found"}}`, nil),
	"sse empty":       respond(200, sse, ``, nil),
	"sse comment":     respond(200, sse, ": hi\n\n", nil),
	"sse cut":         respond(200, sse, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"res", nil),
	"sse cut reset":   respond(200, sse, "id: 5\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"res", io.ErrUnexpectedEOF),
	"sse primed":      respond(200, sse, "id: 5\nretry: 10\ndata:\n\n", io.ErrUnexpectedEOF),
	"sse garbage":     respond(200, sse, "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"res\n\n", nil),
	"sse notes":       respond(200, sse, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":1}}\n\n", io.ErrUnexpectedEOF),
	"sse wrong id":    respond(200, sse, "data: {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n\n", nil),
	"sse err":         respond(200, sse, "event: error\ndata: overloaded\n\n", nil),
	"text":            respond(200, "text/plain", `ok`, nil),
	"page":            respond(200, "text/html", `<html>`, nil),
	"no type":         respond(200, "", `<html>`, nil),
	"octet":           respond(200, "application/octet-stream", `{}`, nil),
	"gzip":            respond(200, js, "\x1f\x8b\x08", nil),
	"utf16":           respond(200, js, "\xff\xfe{\x00}\x00", nil),
	"too long":        respond(200, js, strings.Repeat(" ", 8<<20), nil),
}

// None of them makes a server a legacy one that is not, for the connection or for the next
// one. One that lasts for two requests may be the answer of a legacy server, but is not
// remembered.
func TestPassingErrors(t *testing.T) {
	for name, fail := range passingErrors {
		for era, server := range eras {
			for _, warm := range []bool{false, true} {
				for _, times := range []int{1, 2} {
					t.Run(fmt.Sprintf("%s/%s/warm=%t/%d", name, era, warm, times), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							s := fixture(t, &mcp.Options{Revisions: server.revisions})
							f := &faulty{inner: s.Handler()}
							left := 0
							client := &http.Client{Transport: rtFunc(func(r *http.Request) (*http.Response, error) {
								if left > 0 && r.Method == "POST" {
									left--
									return fail(r)
								}
								return inProcess{f}.RoundTrip(r)
							})}
							tr := HTTP("http://server.example/mcp", &HTTPOptions{Client: client, NoStream: true})
							opts := &Options{Cache: NewCache(0)}
							open := func() (protocol.Revision, error) {
								c, err := Connect(t.Context(), tr, opts)
								if err != nil {
									return 0, err
								}
								rev := c.Revision()
								return rev, c.Close()
							}
							if warm {
								if _, err := open(); err != nil {
									t.Fatal(err)
								}
							}
							left = times
							rev, err := open()
							left = 0
							if errors.Is(err, ErrUnsupported) {
								t.Errorf("first: %v", err)
							}
							if err == nil && times == 1 && rev != server.want {
								t.Errorf("first: %v", rev)
							}
							time.Sleep(time.Minute)
							if rev, err := open(); err != nil || rev != server.want {
								t.Errorf("next: %v %v", rev, err)
							}
							if err := s.Shutdown(t.Context()); err != nil {
								t.Error(err)
							}
						})
					})
				}
			}
		}
	}
}
