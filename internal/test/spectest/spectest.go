// Package spectest checks the messages of tests against the official JSON
// Schemas of the protocol: each message against what its method has in the
// revision that it is sent in. Where the schemas are not at hand it checks
// nothing, and says so.
package spectest

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Check checks a message of a server, or a batch of them, that came back for
// asked: the message as such, a result as that of the method asked, and what
// the server asks or tells as what it is. asked may be "" or no JSON at all.
func Check(t testing.TB, rev protocol.Revision, asked, answer string) {
	t.Helper()
	if !present(t) {
		return
	}
	var batch, requests []json.RawMessage
	if json.Unmarshal([]byte(answer), &batch) == nil {
		if !strings.Contains(answer, `"id":null`) { // as in message
			validate(t, rev.String(), "JSONRPCMessage", []byte(answer))
		}
		_ = json.Unmarshal([]byte(asked), &requests)
		for _, one := range batch {
			Check(t, rev, requestOf(requests, one), string(one))
		}
		return
	}
	var request envelope
	_ = json.Unmarshal([]byte(asked), &request)
	message(t, rev, FromServer, request.Method, []byte(answer))
}

// requestOf finds the request of a batch that a response answers.
func requestOf(requests []json.RawMessage, response json.RawMessage) string {
	var answer envelope
	_ = json.Unmarshal(response, &answer)
	for _, request := range requests {
		var m envelope
		if _ = json.Unmarshal(request, &m); string(m.ID) == string(answer.ID) {
			return string(request)
		}
	}
	return ""
}

// envelope has the members that identify a message.
type envelope struct {
	ID     json.RawMessage
	Method string
	Params struct {
		ProtocolVersion string                     // of initialize
		Meta            map[string]json.RawMessage `json:"_meta"`
	}
	Result json.RawMessage
}

// message checks one message. sent names the schemas of what its side asks and
// tells; asked is the method that it answers, if it is an answer.
func message(t testing.TB, rev protocol.Revision, sent map[string]string, asked string, text []byte) {
	t.Helper()
	var m envelope
	if err := json.Unmarshal(text, &m); err != nil && !json.Valid(text) {
		t.Errorf("%s is no JSON: %v", text, err)
		return
	}
	if string(m.ID) == "null" {
		return // JSON-RPC demands it where no id could be read; older schemas forbid it
	}
	validate(t, rev.String(), "JSONRPCMessage", text)
	if m.Result != nil {
		result(t, rev, asked, m.Result)
	}
	if name := sent[m.Method]; name != "" {
		validate(t, folderOf(rev, m.Method), name, text)
	}
}

// result checks a result as that of the method asked.
func result(t testing.TB, rev protocol.Revision, asked string, text json.RawMessage) {
	t.Helper()
	var kind struct{ ResultType string }
	_ = json.Unmarshal(text, &kind)
	switch name := Results[asked]; {
	case kind.ResultType == "input_required":
		validate(t, rev.String(), "InputRequiredResult", text)
	case kind.ResultType == "task":
		validate(t, tasksFolder, "CreateTaskResult", text)
	case name != "":
		validate(t, folderOf(rev, asked), name, text)
	default: // a method of the test's own
		validate(t, rev.String(), "Result", text)
	}
}

// Watch checks the messages of one connection, both ways. It finds the revision
// from what is said.
type Watch struct {
	t       testing.TB
	hostile bool // the client says what it must not

	mu    sync.Mutex
	rev   protocol.Revision
	asked [2]map[string]asked // by the client and by the server, by id
}

// asked is a request in progress.
type asked struct {
	method string
	rev    protocol.Revision
}

// New returns a Watch for a connection that lasts no longer than the test.
func New(t testing.TB) *Watch {
	return &Watch{t: t, rev: protocol.LatestLegacy, asked: [2]map[string]asked{{}, {}}}
}

// NewHostile returns a Watch for a connection whose client says on purpose what
// it must not: only the server's messages are checked.
func NewHostile(t testing.TB) *Watch {
	w := New(t)
	w.hostile = true
	return w
}

// Hear checks a message. Any number of goroutines may call it.
func (w *Watch) Hear(fromServer bool, text []byte) {
	w.t.Helper()
	if !present(w.t) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	var batch []json.RawMessage
	if json.Unmarshal(text, &batch) != nil {
		batch = []json.RawMessage{text}
	}
	for _, one := range batch {
		w.one(fromServer, one)
	}
}

func (w *Watch) one(fromServer bool, text []byte) {
	w.t.Helper()
	var m envelope
	_ = json.Unmarshal(text, &m) // message says what is wrong
	mine, others, sent := w.asked[0], w.asked[1], FromClient
	if fromServer {
		mine, others, sent = w.asked[1], w.asked[0], FromServer
	}
	rev, method := w.rev, ""
	switch {
	case m.Method == "":
		if request, ok := others[string(m.ID)]; ok {
			delete(others, string(m.ID))
			rev, method = request.rev, request.method
		}
		if method == protocol.MethodInitialize {
			rev = w.settle(m.Result, rev)
		}
	case m.Method == protocol.MethodInitialize:
		if named, ok := protocol.ParseRevision(m.Params.ProtocolVersion); ok {
			rev = named
		}
		w.rev = rev
	case m.Params.Meta["io.modelcontextprotocol/protocolVersion"] != nil:
		rev = protocol.Latest
		w.rev = rev
	}
	if m.Method != "" && m.ID != nil {
		mine[string(m.ID)] = asked{m.Method, rev}
	}
	if fromServer || !w.hostile {
		message(w.t, rev, sent, method, text)
	}
}

// settle takes the revision from the answer to initialize.
func (w *Watch) settle(result json.RawMessage, otherwise protocol.Revision) protocol.Revision {
	var answer struct{ ProtocolVersion string }
	if json.Unmarshal(result, &answer) == nil {
		if rev, ok := protocol.ParseRevision(answer.ProtocolVersion); ok {
			w.rev = rev
			return rev
		}
	}
	return otherwise
}

// Conn returns conn, the client's end of a connection, with a Watch of what
// goes through it.
func Conn(t testing.TB, conn transport.Conn) transport.Conn {
	return &watched{conn, New(t)}
}

type watched struct {
	transport.Conn
	watch *Watch
}

func (c *watched) Read() ([]byte, error) {
	text, err := c.Conn.Read()
	if err == nil {
		c.watch.Hear(true, text)
	}
	return text, err
}

func (c *watched) Write(text []byte) error {
	c.watch.Hear(false, text)
	return c.Conn.Write(text)
}
