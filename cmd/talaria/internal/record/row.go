package record

import (
	"net/http"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// The statuses of rows that look like failures and are normal.
const (
	// Negotiation is that of a request with which a client finds out what the server
	// speaks, which older servers refuse.
	Negotiation = "version negotiation"
	// NotOffered is that of a GET or DELETE without a message that is answered with 405:
	// the server has no stream of a session, or does not let clients end one. It is that of a
	// list of templates, too, which servers with resources need not have.
	NotOffered = "not offered"
)

// ViewConn is how the name of a connection begins that is between a view and the page that
// shows it.
const ViewConn = "view "

// Row is one thing that happened, or a request with its answer.
type Row struct {
	Seq       int64     `json:"seq"`
	At        time.Time `json:"at"`
	Kind      string    `json:"kind"` // request, notification, stderr, log, note, broken, http
	From      string    `json:"from"` // client or server
	Method    string    `json:"method,omitempty"`
	Name      string    `json:"name,omitempty"`   // of the tool or the like; a line of standard error; what a notification says
	View      bool      `json:"view,omitempty"`   // it is between a view, which is the client, and the page
	Level     string    `json:"level,omitempty"`  // of a log notification
	Took      float64   `json:"took,omitempty"`   // milliseconds until the answer
	Status    string    `json:"status,omitempty"` // ok, error, failed (isError), Negotiation; "" while there is no answer
	Out       int       `json:"out"`              // bytes of the request, or of what else it is
	In        int       `json:"in,omitempty"`     // and of its answer
	HTTP      int       `json:"http,omitempty"`   // the status that its message was answered with
	conn      string
	texts     [2][]byte // the request and its answer
	exchanges []Exchange
	more      int // bytes of the exchanges
	missed    int // the search whose text it does not have
}

// expected reports whether what looks like a failure is a part of the protocol.
func (r *Row) expected() bool { return r.Status == Negotiation || r.Status == NotOffered }

// negotiates reports whether an error with this code, before a revision was agreed, is
// how a server says that it speaks another one.
func (r *Row) negotiates(code protocol.Code) bool {
	switch r.Method {
	case protocol.MethodDiscover:
		return code != protocol.CodeHeaderMismatch && code != protocol.CodeMissingCapability
	case protocol.MethodInitialize:
		return code == protocol.CodeUnsupportedVersion
	}
	return false
}

// refusesProbe reports whether a status of HTTP is one that a server has which does not
// know the probe of the revision. Those about credentials and load are not.
func refusesProbe(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired, http.StatusRequestTimeout, http.StatusTooManyRequests:
		return false
	}
	return status >= 400 && status < 500
}

// refusesTransport reports whether it is one after which a client tries HTTP with
// server-sent events.
func refusesTransport(status int) bool {
	return status == http.StatusBadRequest || status == http.StatusNotFound || status == http.StatusMethodNotAllowed
}
