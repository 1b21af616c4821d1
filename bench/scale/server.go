package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/bench/tools"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/scale/redis"
)

// counted is a Store that counts the commands that its calls are.
type counted struct {
	scale.Store
	commands atomic.Int64
	size     atomic.Int64 // of the value that was written last to a session
	asked    [len(mix{})]atomic.Int64
	deaf     bool // to hints
}

// HasTimeout implements scale.Bounded, as the Store does.
func (c *counted) HasTimeout() {}

func (c *counted) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	c.commands.Add(int64(len(looks)))
	for _, l := range looks {
		if kind := kindOf(l); kind >= 0 {
			c.asked[kind].Add(1)
		}
	}
	return c.Store.Get(ctx, looks...)
}

func (c *counted) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	c.commands.Add(int64(len(writes)))
	if w := writes[0]; strings.HasPrefix(w.Key.Partition, "session-") && w.Index != "" {
		c.size.Store(int64(len(w.Value)))
	}
	return c.Store.Put(ctx, writes...)
}

func (c *counted) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	c.commands.Add(1)
	return c.Store.ClaimDue(ctx, part, index, owner, max, lease)
}

func (c *counted) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	c.commands.Add(1)
	return c.Store.Append(ctx, p)
}

func (c *counted) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	c.commands.Add(1)
	return c.Store.Read(ctx, box, after, reader)
}

func (c *counted) Take(ctx context.Context, t scale.Take) (scale.Box, error) {
	c.commands.Add(1)
	return c.Store.Take(ctx, t)
}

func (c *counted) Watch(fn func(subject string, m scale.Message), gap func()) scale.Watcher {
	if c.deaf {
		fn, gap = func(string, scale.Message) {}, func() {}
	}
	return c.Store.Watch(fn, gap)
}

// stats are what a server tells of itself.
type stats struct {
	CPU      int64 // µs of this process
	Commands int64 // of the store
	Resident int64 // bytes of memory
	Size     int   // of the value of a session
	Asked    mix
}

// visits counts in the session.
var visits = mcp.NewStoredKey[int]("example.com/visits")

// grace is how long a server takes to end its streams, and then lets running calls
// finish.
const grace = 20 * time.Second

// runServer is a replica until its standard input ends, or a request asks it
// to shut down.
func runServer(url string, idle time.Duration, deaf bool) error {
	opts := mcp.Options{
		Limits:   mcp.Limits{Sessions: 1 << 21, SessionsPerPrincipal: 1 << 21, MessageMemory: 4 << 30, URIMemory: 4 << 30, ClientMemory: 4 << 30, AnswerMemory: 4 << 30, Subscriptions: 1 << 20, Connections: 1 << 20},
		Timeouts: mcp.Timeouts{Session: idle},
	}
	store := &counted{deaf: deaf}
	if url != "" {
		engine, err := redis.Open(context.Background(), redis.Options{URL: url, Prefix: "bench"})
		if err != nil {
			return err
		}
		defer engine.Close()
		store.Store = engine
		opts.Store, opts.StateKeys = store, [][]byte{[]byte("a secret of 16 bytes or more")}
	}
	s := mcp.NewServer(mcp.Info{Name: "scale", Version: "1.0.0"}, &opts)
	s.MustAdd(
		mcp.Tool("add", func(_ *mcp.Frame, in tools.AddIn) (tools.AddOut, error) { return tools.Add(in), nil }),
		mcp.Tool("visit", func(f *mcp.Frame, _ struct{}) (int, error) {
			return visits.Update(f, func(n int) int { return n + 1 }), nil
		}),
		mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (int, error) {
			roots, err := frame.Roots(f, "roots")
			return len(roots), err
		}),
		mcp.Template("bench://{n}", func(*mcp.Frame, struct {
			N int `json:"n"`
		}) (string, error) {
			return "", nil
		}, mcp.Name("numbers")),
	)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	web := &http.Server{}
	end, drain := make(chan struct{}, 1), make(chan struct{}, 1)
	web.Handler = endpoints(s, store, drain)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end <- struct{}{}
	}()
	ended := make(chan error, 1)
	go func() {
		select {
		case <-end:
		case <-drain:
			ctx, cancel := context.WithTimeout(context.Background(), grace)
			defer cancel()
			_ = s.Drain(ctx)
		}
		ctx, cancel := context.WithTimeout(context.Background(), grace)
		defer cancel()
		ended <- errors.Join(s.Shutdown(ctx), web.Shutdown(ctx))
	}()
	fmt.Println(l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// endpoints are the server, and what the measurement asks it to do: to say what it
// has used, to change a resource or the list of tools, in which case it answers
// when that was, to notify sessions, and to drain and shut down.
func endpoints(s *mcp.Server, store *counted, drain chan<- struct{}) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for other arguments only
		var size, resident int64
		text, _ := os.ReadFile("/proc/self/statm")
		_, _ = fmt.Sscan(string(text), &size, &resident)
		s := stats{
			CPU: (u.Utime.Nano() + u.Stime.Nano()) / 1000, Commands: store.commands.Load(), Resident: resident * int64(os.Getpagesize()), Size: int(store.size.Load()),
		}
		for kind := range s.Asked {
			s.Asked[kind] = float64(store.asked[kind].Load())
		}
		_ = json.NewEncoder(w).Encode(s)
	})
	mux.HandleFunc("/touch", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		now := time.Now()
		for _, uri := range r.Form["uri"] {
			s.ResourceUpdated(uri)
		}
		fmt.Fprint(w, now.UnixNano())
	})
	mux.HandleFunc("/grow", func(w http.ResponseWriter, _ *http.Request) {
		now := time.Now()
		if s.Remove(mcp.KindTool, "new") == 0 {
			s.MustAdd(mcp.Tool("new", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
		}
		fmt.Fprint(w, now.UnixNano())
	})
	mux.HandleFunc("/notify", func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm()
		for _, id := range r.Form["session"] {
			if err := s.Notify(id, string(noted), nil); err != nil {
				fmt.Fprintln(w, err)
			}
		}
	})
	mux.HandleFunc("/end", func(http.ResponseWriter, *http.Request) { drain <- struct{}{} })
	return mux
}
