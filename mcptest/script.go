package mcptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// Script is a server that answers what a test says, for tests of programs that
// are clients: with errors, with garbage, or in an old revision. It is a
// [client.Transport] by Transport, and an http.Handler. Its methods are safe for
// concurrent use.
type Script struct {
	t       testing.TB
	rev     protocol.Revision
	answers map[string]func(params json.RawMessage) (any, error)
	serving sync.WaitGroup
	ended   context.Context // by the end of the test

	mu       sync.Mutex
	received []protocol.Message
}

// Raw is the text that a Script sends in place of a response; "$id" in it becomes
// the id of the request. It need not be JSON. Over Transport several lines are
// several messages, and an empty text leaves the request without an answer.
type Raw string

// NewScript returns a server that speaks rev and answers requests by their method:
// with a value that encodes as the result, in which resultType is filled in, with
// a [Raw], or with an error, which goes out as it is if it is a *protocol.Error;
// io.EOF ends the connection. initialize, server/discover and ping are answered
// without it, with the capabilities that the methods in answers need; all others
// get -32601.
//
//	s := mcptest.NewScript(t, protocol.V20250618, map[string]func(json.RawMessage) (any, error){
//		"tools/call": func(json.RawMessage) (any, error) { return nil, io.EOF },
//	})
//	c, err := client.Connect(ctx, s.Transport(), nil)
//
// The end of the test closes the connections. An answer that panics fails the
// test, and the request gets -32603.
func NewScript(t testing.TB, rev protocol.Revision, answers map[string]func(params json.RawMessage) (any, error)) *Script {
	ctx, cancel := context.WithCancel(context.Background())
	s := &Script{t: t, rev: rev, answers: answers, ended: ctx}
	t.Cleanup(func() {
		cancel()
		s.serving.Wait()
	})
	return s
}

// Transport returns what connects a client to s, each time by a connection of its
// own. The requests of a connection are answered one after the other.
func (s *Script) Transport() client.Transport {
	return client.Conn(func(context.Context) (transport.Conn, error) {
		inR, inW := io.Pipe()
		outR, outW := io.Pipe()
		s.serving.Go(func() {
			hangUp := func() { _, _ = outW.Close(), inR.Close() } // pipes have no error
			defer hangUp()
			defer context.AfterFunc(s.ended, hangUp)()
			in := transport.NewStream(inR, io.Discard, nil)
			for text, err := in.Read(); err == nil; text, err = in.Read() {
				reply, end := s.reply(bytes.Clone(text))
				if end {
					return
				}
				if len(reply) == 0 {
					continue
				}
				if _, err := outW.Write(append(reply, '\n')); err != nil {
					return // the client is gone
				}
			}
		})
		return transport.NewStream(outR, inW, nil), nil
	})
}

// ServeHTTP serves the streamable HTTP transport: a POST is answered with JSON, and
// a GET with the status 405, as there are no streams.
func (s *Script) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	reply, end := s.reply(text)
	if end {
		panic(http.ErrAbortHandler)
	}
	var m protocol.Message
	switch fault := wire.Scan(text, &m); {
	case fault == nil && m.Kind() != protocol.KindRequest:
		w.WriteHeader(http.StatusAccepted)
	case len(reply) == 0:
		<-r.Context().Done()
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(reply) // the client may be gone
	}
}

// Received returns what clients have sent so far: requests, notifications and
// responses.
func (s *Script) Received() []protocol.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.received)
}

// reply returns the answer to a message, nil for none. end is set if the
// connection is to end.
func (s *Script) reply(text []byte) (reply []byte, end bool) {
	var m protocol.Message
	if fault := wire.Scan(text, &m); fault != nil {
		s.t.Errorf("mcptest: the client sent %q: %v", text, fault)
		return wire.AppendErrorResponse(nil, m.ID, fault, s.rev), false
	}
	s.mu.Lock()
	s.received = append(s.received, m)
	s.mu.Unlock()
	if m.Kind() != protocol.KindRequest {
		return nil, false
	}
	result, err := s.answer(&m)
	if err == nil {
		if raw, ok := result.(Raw); ok {
			return []byte(strings.ReplaceAll(string(raw), "$id", m.ID.String())), false
		}
		reply, err = s.response(&m, result)
	}
	switch fault, ok := errors.AsType[*protocol.Error](err); {
	case err == nil:
		return reply, false
	case errors.Is(err, io.EOF):
		return nil, true
	case ok:
		return wire.AppendErrorResponse(nil, m.ID, fault, s.rev), false
	}
	return wire.AppendErrorResponse(nil, m.ID, protocol.Errorf(protocol.CodeInternal, "%w", err), s.rev), false
}

// answer returns what the test says to a request, or what every server says.
func (s *Script) answer(m *protocol.Message) (result any, err error) {
	if fn := s.answers[m.Method]; fn != nil {
		failed := safely.Apart(func() { result, err = fn(m.Params) })
		if failed != nil {
			s.t.Errorf("mcptest: the answer to %s: %v", m.Method, failed)
			return nil, failed
		}
		return result, err
	}
	info := protocol.Implementation{Name: "script", Version: "1"}
	switch {
	case m.Method == protocol.MethodInitialize && !s.rev.Modern():
		return wire.InitializeResult{ProtocolVersion: s.rev.String(), Capabilities: s.capabilities(), ServerInfo: info}, nil
	case m.Method == protocol.MethodDiscover && s.rev.Modern():
		return wire.DiscoverResult{SupportedVersions: []string{s.rev.String()}, Capabilities: s.capabilities(), CacheScope: wire.CachePublic}, nil
	case m.Method == protocol.MethodPing && !s.rev.Modern():
		return struct{}{}, nil
	}
	return nil, wire.MethodNotFound(m.Method)
}

// response returns the response with a result.
func (s *Script) response(m *protocol.Message, result any) ([]byte, error) {
	text, err := jsonx.Append(nil, result)
	if err != nil {
		return nil, err
	}
	var typed protocol.Result = protocol.JSONResult{Value: json.RawMessage(text)}
	if jsonx.Lookup(text, []string{"resultType"}) != nil {
		typed = protocol.RawResult(text)
	}
	dst := append(wire.AppendID([]byte(`{"jsonrpc":"2.0","id":`), m.ID), `,"result":`...)
	dst, err = wire.AppendResult(dst, typed, wire.To{Revision: s.rev})
	return append(dst, '}'), err
}

// capabilities returns those that the methods of the answers need.
func (s *Script) capabilities() (can protocol.ServerCapabilities) {
	for method := range s.answers {
		switch group, _, _ := strings.Cut(method, "/"); group {
		case "tools":
			can.Tools = &protocol.ListCapability{}
		case "prompts":
			can.Prompts = &protocol.ListCapability{}
		case "resources":
			can.Resources = &protocol.ResourcesCapability{Subscribe: s.answers[protocol.MethodSubscribe] != nil}
		case "completion":
			can.Completions = &struct{}{}
		case "logging":
			can.Logging = &struct{}{}
		}
	}
	return can
}
