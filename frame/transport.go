package frame

import (
	"net/http"
	"net/url"
	"os"
	"strings"
)

// Kind names a transport.
type Kind string

// The transports that Talaria brings.
const (
	HTTP      Kind = "http"
	SSE       Kind = "sse" // the HTTP transport of 2024-11-05
	WebSocket Kind = "websocket"
	Socket    Kind = "socket" // a Unix or TCP socket
	Stdio     Kind = "stdio"
	Pipe      Kind = "pipe" // any other Conn
)

// Transport tells how a request came.
type Transport struct {
	Kind Kind
	// HTTP is the request over HTTP. For SSE and WebSocket it is the one that
	// opened the connection, whose headers, URL and context stand for all that
	// comes over it; the headers of a POST of SSE are used to check who sends
	// it, and are then gone. On other transports it is nil.
	HTTP *http.Request
	// Remote is the client's address on a socket, "" elsewhere.
	Remote string
}

// RemoteAddr returns the client's address as net/http has it, "" if there is
// none.
func (t Transport) RemoteAddr() string {
	if t.HTTP == nil {
		return t.Remote
	}
	return t.HTTP.RemoteAddr
}

// Scheme returns "https" for a request over TLS, "http" for another HTTP
// request, "" else. A proxy's forwarding headers are not believed: who trusts
// a proxy reads them with Frame.Header.
func (t Transport) Scheme() string {
	switch {
	case t.HTTP == nil:
		return ""
	case t.HTTP.TLS != nil:
		return "https"
	}
	return "http"
}

// Host returns the host, with its port if given, that the client asked for.
func (t Transport) Host() string {
	if t.HTTP == nil {
		return ""
	}
	return t.HTTP.Host
}

// Path returns the path of the request's URL, "" without HTTP.
func (t Transport) Path() string {
	if t.HTTP == nil {
		return ""
	}
	return t.HTTP.URL.Path
}

// Query returns the parameters of the request's URL, nil without HTTP.
func (t Transport) Query() url.Values {
	if t.HTTP == nil || t.HTTP.URL.RawQuery == "" {
		return nil
	}
	return t.HTTP.URL.Query()
}

// Env returns the environment of this process, which is what the client of a
// stdio server configures; nil on other transports.
func (t Transport) Env() map[string]string {
	if t.Kind != Stdio {
		return nil
	}
	list := os.Environ()
	env := make(map[string]string, len(list))
	for _, entry := range list {
		if key, value, ok := strings.Cut(entry, "="); ok {
			env[key] = value
		}
	}
	return env
}

// PID returns the process id of a stdio server, 0 on other transports.
func (t Transport) PID() int {
	if t.Kind != Stdio {
		return 0
	}
	return os.Getpid()
}
