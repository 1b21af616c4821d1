package deploy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/transport/websocket"
)

// timeLimit is the longest wait of a test, on a machine with much else
// to do.
const timeLimit = time.Minute

const (
	steps      = 8 // events of a call
	pace       = 200 * time.Millisecond
	maxMessage = 10 << 20
	watched    = "deploy://watched"
)

// visits counts in a session.
var visits = mcp.NewStoredKey[int]("example.com/visits")

type keyIn struct {
	Key string `json:"key"`
}

type textIn struct {
	Text string `json:"text"`
}

// fleet is servers behind a proxy, in this process, so that a test sees both ends.
type fleet struct {
	addresses []string
	web       []*http.Server
	runs      atomic.Int64 // of wait and length

	mu    sync.Mutex
	calls map[string]*call
}

// call is what a test knows of a call under way at one of the servers.
type call struct {
	begun chan int      // at which server
	seen  chan int      // which event has reached the client
	sent  atomic.Int64  // how many events were sent
	ended chan error    // why the context of the call ended
	done  chan struct{} // closed by the test, to let the call end
}

func (f *fleet) call(key string) *call {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.calls[key]
	if c == nil {
		c = &call{begun: make(chan int, 1), seen: make(chan int, steps), ended: make(chan error, 1), done: make(chan struct{})}
		f.calls[key] = c
	}
	return c
}

// newFleet starts as many servers as there are addresses in the shipped
// configurations, with a common store, or each alone.
func newFleet(t *testing.T, alone bool) *fleet {
	t.Helper()
	f := &fleet{calls: map[string]*call{}}
	store := scale.NewLocal()
	for n := range shippedReplicas {
		nobody := zerolog.Nop()
		opts := mcp.Options{
			Logger: &nobody, AllowedHosts: []string{host}, Limits: mcp.Limits{Message: maxMessage},
			StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")},
		}
		if !alone {
			opts.Store = store
		}
		s := f.server(n, opts)
		mux := http.NewServeMux()
		mux.Handle("/mcp", s.Handler())
		mux.Handle("/mcp/ws", websocket.Handler(s))
		mux.HandleFunc("GET /readyz", func(http.ResponseWriter, *http.Request) {})
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
		served := make(chan error, 1)
		go func() { served <- web.Serve(listener) }()
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.Background(), timeLimit)
			defer cancel()
			_ = s.Shutdown(ctx) // the proxy has gone, and took the calls with it
			_ = web.Close()
			<-served
		})
		f.addresses, f.web = append(f.addresses, listener.Addr().String()), append(f.web, web)
	}
	return f
}

func (f *fleet) server(n int, opts mcp.Options) *mcp.Server {
	s := mcp.NewServer(mcp.Info{Name: "deploy", Version: "1.0.0"}, &opts)
	s.MustAdd(
		mcp.Tool("hello", func(*mcp.Frame, struct{}) (string, error) { return "hello", nil }),
		mcp.Tool("visit", func(f *mcp.Frame, _ struct{}) (int, error) {
			return visits.Update(f, func(n int) int { return n + 1 }), nil
		}),
		mcp.Tool("echo", func(_ *mcp.Frame, in textIn) (string, error) { return in.Text, nil }),
		mcp.Tool("length", func(_ *mcp.Frame, in textIn) (int, error) {
			f.runs.Add(1)
			return len(in.Text), nil
		}),
		mcp.Tool("touch", func(*mcp.Frame, struct{}) (string, error) {
			s.ResourceUpdated(watched)
			return "touched", nil
		}),
		mcp.Tool("acknowledged", f.acknowledged, mcp.Doc("Sends an event when the one before has arrived")),
		mcp.Tool("paced", f.paced, mcp.Doc("Sends an event every 200 ms")),
		mcp.Tool("wait", func(frame *mcp.Frame, in keyIn) (string, error) { return f.wait(frame, n, in) }),
		mcp.Resource(watched, func(*mcp.Frame) (string, error) { return "watched", nil }),
	)
	return s
}

func (f *fleet) acknowledged(frame *mcp.Frame, in keyIn) (string, error) {
	c := f.call(in.Key)
	for n := range steps {
		if err := frame.Progress(float64(n+1), steps); err != nil {
			return "", err
		}
		select {
		case seen := <-c.seen:
			if seen != n+1 {
				return "", fmt.Errorf("event %d arrived after %d", seen, n)
			}
		case <-frame.Done():
			return "", frame.Err()
		case <-time.After(timeLimit):
			return "", fmt.Errorf("event %d did not arrive before the next one was sent", n+1)
		}
	}
	return "all arrived", nil
}

func (f *fleet) paced(frame *mcp.Frame, in keyIn) (string, error) {
	c := f.call(in.Key)
	tick := time.NewTicker(pace)
	defer tick.Stop()
	for n := range steps {
		c.sent.Store(int64(n + 1))
		if err := frame.Progress(float64(n+1), steps); err != nil {
			return "", err
		}
		<-tick.C
	}
	return "all sent", nil
}

// wait runs until the test lets it end, or its client leaves.
func (f *fleet) wait(frame *mcp.Frame, n int, in keyIn) (string, error) {
	f.runs.Add(1)
	c := f.call(in.Key)
	c.begun <- n
	select {
	case <-frame.Done():
		c.ended <- context.Cause(frame)
		return "", frame.Err()
	case <-c.done:
		return "done", nil
	case <-time.After(2 * timeLimit):
		return "", errors.New("nobody has ended this call")
	}
}
