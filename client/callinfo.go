package client

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// CallInfo describes a call of the API to Options.Around. The fields from Sent on are
// complete when next has returned, and zero before.
type CallInfo struct {
	Server string // what the server calls itself; "" if it has not said so yet
	URL    string // of the server; a command line, which may hold secrets, or another name if it has none
	Method string // of the request
	Name   string // of the tool or prompt, the URI of the resource, or the id of the task; "" if there is none

	Sent       int               // messages with a request of the call: its rounds, what was sent again, and looks at its task
	Waited     time.Duration     // for answers to what results have asked for, those of a task too; not to what a legacy server asks in the meantime
	ID         protocol.ID       // of the last of the requests; zero if none was sent
	Revision   protocol.Revision // in which it was sent; 0 if none was
	ToolFailed bool              // the result says that the tool failed, which is not an error of Client.Call
}

// ServerRequest is a request of the server, as Options.AroundServerRequest gets it.
// Nothing in Params and Result may be changed.
type ServerRequest struct {
	Method string
	Params json.RawMessage // as they came
	Result json.RawMessage // the answer, once next has returned nil; nil before
}

// around is a call within Options.Around. Everything that is done for the call has
// it in its context.
type around struct {
	client *Client
	mu     sync.Mutex // a task is watched by a goroutine of its own
	info   CallInfo
}

// aroundKey is the context key of the around that a request is a part of.
type aroundKey struct{}
