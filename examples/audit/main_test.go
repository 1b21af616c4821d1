package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/scale"
)

// trail keeps entries, and takes none while it is full.
type trail struct {
	mu    sync.Mutex
	full  bool
	lines []string
	lost  int
}

func (r *trail) write(e Entry) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.full {
		return errors.New("disk full")
	}
	r.lines = append(r.lines, strings.TrimSpace(e.What+" "+e.Name+" "+e.Outcome))
	return nil
}

func (r *trail) observe(s *mcp.Server) {
	s.Observe(audit(r.write, func(Entry, error) { r.mu.Lock(); r.lost++; r.mu.Unlock() }))
}

func (r *trail) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.lines, ", ")
}

// A call that cannot be written down does not run.
func TestFailsClosed(t *testing.T) {
	mcptest.Each(t, newServer, func(t *testing.T, c *mcptest.Client) {
		if got := mcptest.Call[string](c, "shout", shoutIn{"hi"}); got != "HI" {
			t.Error(got)
		}
	})
	for _, full := range []bool{false, true} {
		ran := 0
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, nil)
		r := &trail{full: full}
		s.MustAdd(mcp.Tool("work", func(*mcp.Frame, struct{}) (string, error) { ran++; return "", errors.New("no") }))
		r.observe(s)
		_, err := mcptest.New(t, s).TryCall("work", nil)
		if want := "begin work, end work tool_error"; !full && (ran != 1 || err != nil || r.String() != want) {
			t.Errorf("%d runs, %v, %s", ran, err, r)
		}
		if full && (ran != 0 || err == nil || strings.Contains(err.Error(), "disk") || r.String() != "" || r.lost != 0) {
			t.Errorf("full: %d runs, %v, %q, %d lost", ran, err, r, r.lost)
		}
	}
}

// The trail has the name that the client has sent.
func TestUnknownTool(t *testing.T) {
	s, r := newServer(), &trail{}
	r.observe(s)
	if _, err := mcptest.New(t, s).TryCall("whisper", nil); err == nil {
		t.Error("there is no such tool")
	}
	if want := "begin whisper, end whisper invalid_params"; r.String() != want {
		t.Errorf("got %s, want %s", r, want)
	}
}

// What is called of a mounted server is in the trail of that, too.
func TestMounted(t *testing.T) {
	child, host := newServer(), mcp.NewServer(mcp.Info{Name: "host", Version: "1"}, nil)
	r := &trail{}
	r.observe(child)
	if err := host.Mount("loud", child); err != nil {
		t.Fatal(err)
	}
	if got := mcptest.Call[string](mcptest.New(t, host), "loud_shout", shoutIn{"hi"}); got != "HI" {
		t.Error(got)
	}
	if want := "begin shout, end shout ok"; r.String() != want {
		t.Errorf("got %s, want %s", r, want)
	}
}

// Each run of a task has its entries, at the replica that runs it.
func TestReplay(t *testing.T) { synctest.Test(t, replay) }

func replay(t *testing.T) {
	store := scale.NewLocal()
	var trails [2]trail
	var servers [2]*mcp.Server
	started, again := make(chan struct{}), make(chan struct{})
	for i := range servers {
		s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Store: store, StateKeys: [][]byte{[]byte("0123456789abcdef0123456789abcdef")}})
		trails[i].observe(s)
		s.MustAdd(mcp.Tool("work", func(f *mcp.Frame, _ struct{}) (string, error) {
			if i == 1 {
				close(again)
				return "done", nil
			}
			close(started)
			<-f.Done()
			return "", context.Cause(f)
		}, mcp.AsTask(&mcp.TaskOptions{Replay: true, Wait: -1})))
		servers[i] = s
	}
	c, err := client.Connect(t.Context(), client.Local(servers[0].ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(t.Context(), "work", nil, client.Detached()); err != nil {
		t.Fatal(err)
	}
	<-started
	if err := servers[0].Drain(t.Context()); err != nil {
		t.Fatal(err)
	}
	<-again
	for i, s := range servers {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if want := "begin work, end work task"; trails[i].String() != want {
			t.Errorf("replica %d: %s, want %s", i, &trails[i], want)
		}
	}
}
