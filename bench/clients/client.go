package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/talaria-go/mcp/bench/tools"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// caller is a connected client.
type caller interface {
	// call makes one call and returns the text of its result.
	call(ctx context.Context, tool string, args any) (string, error)
	close() error
}

// arguments are those of the calls, by tool.
var arguments = map[string]any{
	"add":    tools.AddIn{A: 2, B: 3},
	"search": tools.SearchIn{Query: "mcp", Limit: 20, Sort: "newest", Tags: []string{"go"}, Filter: tools.Filter{Lang: "en"}},
}

// run connects, warms up and measures.
func (j job) run() (*outcome, error) {
	ctx := context.Background()
	connect := map[string]func(context.Context, job) (caller, error){"talaria": connectTalaria, "sdk": connectSDK}[j.Client]
	args, ok := arguments[j.Tool]
	if connect == nil || !ok {
		return nil, fmt.Errorf("no client %q or no tool %q", j.Client, j.Tool)
	}
	c, err := connect(ctx, j)
	if err != nil {
		return nil, err
	}
	if _, err := j.calls(ctx, c, args); err != nil {
		return nil, errors.Join(err, c.close())
	}
	before, begin := usage(), time.Now()
	n, err := j.calls(ctx, c, args)
	after := usage()
	o := &outcome{
		Calls: n, Took: time.Since(begin), RSS: after.Maxrss << 10,
		CPU: time.Duration(after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()),
	}
	return o, errors.Join(err, c.close())
}

// usage is what this process has used, without its children.
func usage() (u syscall.Rusage) {
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for invalid arguments
	return u
}

// calls makes calls for as long as j says, and compares their results.
func (j job) calls(ctx context.Context, c caller, args any) (n int, err error) {
	want, err := c.call(ctx, j.Tool, args)
	if err != nil {
		return 0, err
	}
	var wg sync.WaitGroup
	var count atomic.Int64
	var failed atomic.Pointer[error]
	deadline := time.Now().Add(j.For)
	for range j.InFlight {
		wg.Go(func() {
			mine := 0
			defer func() { count.Add(int64(mine)) }()
			for time.Now().Before(deadline) && failed.Load() == nil {
				got, err := c.call(ctx, j.Tool, args)
				if err == nil && got != want {
					err = fmt.Errorf("got %.100q, want %.100q", got, want)
				}
				if err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
				mine++
			}
		})
	}
	wg.Wait()
	if fault := failed.Load(); fault != nil {
		err = *fault
	}
	return int(count.Load()), err
}

// httpClient keeps a connection for every call in flight. Both clients get the
// same, because net/http's own keeps two, and making new ones all the time would
// be most of what is measured.
func (j job) httpClient() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 2 * j.InFlight
	return &http.Client{Transport: t}
}

type talariaClient struct{ *client.Client }

func connectTalaria(ctx context.Context, j job) (caller, error) {
	rev, ok := protocol.ParseRevision(j.Revision)
	if !ok {
		return nil, fmt.Errorf("no revision %q", j.Revision)
	}
	var t client.Transport = client.Command(j.Server, "-stdio")
	if j.Address != "" {
		t = client.HTTP(j.Address, &client.HTTPOptions{Client: j.httpClient()})
	}
	c, err := client.Connect(ctx, t, &client.Options{Revisions: []protocol.Revision{rev}, NoCache: true})
	if err != nil {
		return nil, err
	}
	return talariaClient{c}, nil
}

func (c talariaClient) call(ctx context.Context, tool string, args any) (string, error) {
	r, err := c.Call(ctx, tool, args)
	if err != nil {
		return "", err
	}
	if r.IsError || r.Structured == nil {
		return "", fmt.Errorf("the tool failed: %s", r.Text())
	}
	return r.Text(), nil
}

func (c talariaClient) close() error { return c.Close() }

type sdkClient struct{ *sdk.ClientSession }

func connectSDK(ctx context.Context, j job) (caller, error) {
	var t sdk.Transport = &sdk.CommandTransport{Command: exec.Command(j.Server, "-stdio")}
	if j.Address != "" {
		t = &sdk.StreamableClientTransport{Endpoint: j.Address, HTTPClient: j.httpClient()}
	}
	c := sdk.NewClient(&sdk.Implementation{Name: "bench", Version: "1.0.0"}, nil)
	session, err := c.Connect(ctx, t, &sdk.ClientSessionOptions{ProtocolVersion: j.Revision})
	if err != nil {
		return nil, err
	}
	if got := session.InitializeResult().ProtocolVersion; got != j.Revision {
		return nil, errors.Join(fmt.Errorf("connected in revision %s, want %s", got, j.Revision), session.Close())
	}
	return sdkClient{session}, nil
}

func (c sdkClient) call(ctx context.Context, tool string, args any) (string, error) {
	r, err := c.CallTool(ctx, &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", err
	}
	if r.IsError || r.StructuredContent == nil {
		return "", errors.New("the tool failed")
	}
	text, ok := r.Content[0].(*sdk.TextContent)
	if !ok {
		return "", errors.New("the result is no text")
	}
	return text.Text, nil
}

func (c sdkClient) close() error { return c.Close() }
