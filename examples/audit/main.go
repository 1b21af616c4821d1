// Command audit is a server that writes down each call of a tool before it runs, and
// how it ended, and runs none that could not be written down. Copy audit, and write
// to a place where the server itself cannot change what it has written: here it is
// standard error, as lines of JSON, of which a collector makes a trail.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"log"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// Entry is a line of the trail. The lines of a call have the same id and connection.
type Entry struct {
	Time      time.Time     `json:"time"`
	What      string        `json:"what"` // "begin" or "end"
	Method    string        `json:"method"`
	Name      string        `json:"name,omitempty"` // as the client has sent it: the tool may not exist
	ID        string        `json:"id,omitempty"`
	Principal string        `json:"principal,omitempty"` // better a pseudonym, whose table can be erased
	From      string        `json:"from,omitempty"`
	Outcome   string        `json:"outcome,omitempty"` // "ok", or the Status of mcp.Outcome
	Took      time.Duration `json:"took,omitempty"`
}

// audit returns an observer that writes two entries for each run of a tool. A call
// whose begin cannot be written does not run; an end that cannot be written is
// passed to lost. A task that runs again, at another replica, has entries for each
// run.
func audit(write func(Entry) error, lost func(Entry, error)) mcp.Observer {
	entry := func(what string, f *mcp.Frame) Entry {
		r := f.Request() // f.Labels would leave out names, so that they are few
		return Entry{
			Time: time.Now(), What: what, Method: r.Method, Name: r.Params.Name, ID: r.ID.String(),
			Principal: f.Principal(), From: f.RemoteAddr(),
		}
	}
	return mcp.Observer{
		Begin: func(f *mcp.Frame) (context.Context, error) {
			if f.Request().Method != protocol.MethodToolsCall {
				return f, nil
			}
			return f, write(entry("begin", f))
		},
		End: func(f *mcp.Frame, o mcp.Outcome) {
			if f.Request().Method != protocol.MethodToolsCall {
				return
			}
			e := entry("end", f)
			e.Outcome, e.Took = cmp.Or(o.Status, "ok"), o.Duration
			if err := write(e); err != nil {
				lost(e, err)
			}
		},
	}
}

type shoutIn struct {
	Text string `json:"text" validate:"required"`
}

func newServer() *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "audit", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("shout", func(_ *mcp.Frame, in shoutIn) (string, error) { return strings.ToUpper(in.Text), nil }))
	return s
}

func main() {
	s := newServer()
	var mu sync.Mutex
	trail := json.NewEncoder(os.Stderr)
	s.Observe(audit(func(e Entry) error {
		mu.Lock()
		defer mu.Unlock()
		return trail.Encode(e)
	}, func(e Entry, err error) { log.Printf("the end of %q %s is lost: %v", e.Name, e.ID, err) }))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
