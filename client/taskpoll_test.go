package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// taskScript says what a taskPeer answers.
type taskScript struct {
	created string             // JSON of createdAt and lastUpdatedAt; a time if empty
	more    string             // further members of the task's state
	handle  string             // result of a call; "" for a working task
	look    func(n int) string // members of a state, from 1; "!" for an error -32603, "?" for a busy server, "" for silence
	other   map[string]string  // results of other methods
	header  func(http.Header)  // gets those of tasks/cancel
}

// taskPeer is a server whose every call becomes the task t1. It records the
// times of the looks at it, and how often it was cancelled.
type taskPeer struct {
	taskScript
	mu      sync.Mutex
	begun   time.Time       // when the task was made
	looks   []time.Duration // since then
	cancels int
}

// state returns a state of the task with these members.
func (p taskScript) state(kind, members string) string {
	created := p.created
	if created == "" {
		created = `"2026-07-28T00:00:00Z"`
	}
	return `{"resultType":"` + kind + `","taskId":"t1","createdAt":` + created + `,"lastUpdatedAt":` + created + `,"ttlMs":null` + p.more + `,` + members + `}`
}

// answer returns the member result or error of the answer, "" for none.
func (p *taskPeer) answer(h *heard) string {
	switch h.Method {
	case "server/discover":
		return `"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{},"resources":{}},"ttlMs":0,"cacheScope":"private"}`
	case "tools/call":
		p.mu.Lock()
		p.begun = time.Now()
		p.mu.Unlock()
		if p.handle != "" {
			return `"result":` + p.handle
		}
		return `"result":` + p.state("task", `"status":"working"`)
	case "tasks/get":
		p.mu.Lock()
		p.looks = append(p.looks, time.Since(p.begun))
		n := len(p.looks)
		p.mu.Unlock()
		members := `"status":"working"`
		if p.look != nil {
			members = p.look(n)
		}
		switch members {
		case "":
			return ""
		case "!":
			return `"error":{"code":-32603,"message":"no"}`
		case "?":
			return fmt.Sprintf(`"error":{"code":%d,"message":"busy"}`, protocol.CodeBusy)
		}
		return `"result":` + p.state("complete", members)
	case "tasks/cancel":
		p.mu.Lock()
		defer p.mu.Unlock()
		if strings.Contains(string(h.Params), `"taskId":"t1"`) {
			p.cancels++
		}
		return `"result":{"resultType":"complete"}`
	}
	if result := p.other[h.Method]; result != "" {
		return `"result":` + result
	}
	return `"error":{"code":-32601,"message":"unknown method"}`
}

// seen returns what the peer has recorded.
func (p *taskPeer) seen() (looks []time.Duration, cancels int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.looks), p.cancels
}

// ServeHTTP answers over HTTP.
func (p *taskPeer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var h heard
	if text, err := io.ReadAll(r.Body); r.Method != http.MethodPost || err != nil || json.Unmarshal(text, &h) != nil {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	if h.Method == "tasks/cancel" && p.header != nil {
		p.header(r.Header)
	}
	text := p.answer(&h)
	switch {
	case h.ID == nil:
		w.WriteHeader(http.StatusAccepted)
	case text == "":
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, h.ID, text)
	}
}

// over runs a test over a byte stream and over HTTP, in a bubble each.
func (p taskScript) over(t *testing.T, test func(t *testing.T, p *taskPeer, tr Transport)) {
	for _, kind := range []string{"stream", "http"} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				own := &taskPeer{taskScript: p}
				if kind == "http" {
					test(t, own, HTTP("http://server.example/mcp", &HTTPOptions{Client: &http.Client{Transport: inProcess{own}}, NoStream: true}))
					return
				}
				test(t, own, scripted(t, func(s *script) {
					var answering sync.WaitGroup
					defer answering.Wait()
					for h := s.next(); h != nil; h = s.next() {
						answering.Go(func() {
							if text := own.answer(h); text != "" && h.ID != nil {
								s.say(`{"jsonrpc":"2.0","id":%s,%s}`, h.ID, text)
							}
						})
					}
				}))
			})
		})
	}
}

const (
	ms     = time.Millisecond
	done   = `"status":"completed","result":{"content":[{"type":"text","text":"done"}]}`
	minute = time.Minute
)

// doneAt ends a task at a look.
func doneAt(n int) func(int) string {
	return func(now int) string {
		if now == n {
			return done
		}
		return `"status":"working"`
	}
}

// The interval that a server names is the least time between two looks, after
// the first half second of a task.
func TestPollInterval(t *testing.T) {
	early := []time.Duration{50 * ms, 150 * ms, 350 * ms}
	every := func(d time.Duration) []time.Duration {
		return append(slices.Clone(early), 350*ms+d, 350*ms+2*d, 350*ms+3*d)
	}
	for interval, want := range map[string][]time.Duration{
		"10000":                every(10 * time.Second),
		"10000.0":              every(10 * time.Second),
		"1e4":                  every(10 * time.Second),
		`"10000"`:              every(10 * time.Second),
		"90000":                every(90 * time.Second), // more than a minute
		"86400000":             every(24 * time.Hour),
		"500":                  every(500 * ms),
		"450.5":                every(450*ms + 500*time.Microsecond),
		"5":                    {20 * ms, 40 * ms, 60 * ms, 80 * ms, 100 * ms, 120 * ms},
		"0.0001":               {20 * ms, 40 * ms, 60 * ms, 80 * ms, 100 * ms, 120 * ms},
		"60":                   {50 * ms, 110 * ms, 170 * ms, 230 * ms, 290 * ms, 350 * ms},
		"-5":                   every(time.Second),
		"0":                    every(time.Second),
		"-1e300":               every(time.Second),
		"null":                 every(time.Second),
		"9e15":                 early,
		"9223372036":           every(9223372036 * ms),
		"9223372036854775807":  early,
		"-9223372036854775808": every(time.Second),
		"99999999999999999999": early,
		"1e999":                early,
	} {
		t.Run(interval, func(t *testing.T) {
			taskScript{more: `,"pollIntervalMs":` + interval, look: doneAt(6)}.over(t, func(t *testing.T, p *taskPeer, tr Transport) {
				opts := modernOptions()
				opts.MaxTimeout = -1
				c := connect(t, tr, opts)
				ctx, stop := context.WithTimeout(t.Context(), 1000*24*time.Hour)
				defer stop()
				begin := time.Now()
				r, err := c.Call(ctx, "slow", nil)
				took := time.Since(begin)
				synctest.Wait()
				looks, cancels := p.seen()
				if !slices.Equal(looks, want) {
					t.Errorf("looks after %v, want %v", looks, want)
				}
				if len(want) == 6 && (err != nil || r.Text() != "done" || cancels != 0) {
					t.Errorf("got %+v, %v, cancelled %d times", r, err, cancels)
				}
				if len(want) < 6 && (!errors.Is(err, ErrTimeout) || took != 1000*24*time.Hour || cancels != 1) {
					t.Errorf("got %v after %v, cancelled %d times", err, took, cancels)
				}
			})
		})
	}
}

// Looks that a client makes later, or that a busy server refuses, count for the
// interval, too.
func TestPollIntervalLater(t *testing.T) {
	handle := func(ctx context.Context, c *Client) (*Task, error) {
		r, err := c.Call(ctx, "slow", nil, Detached())
		if err != nil {
			return nil, err
		}
		return r.Task, nil
	}
	for name, test := range map[string]struct {
		look func(n int) string
		wait func(ctx context.Context, c *Client) (*CallToolResult, error)
		want []time.Duration
	}{
		"at once": {doneAt(4), func(ctx context.Context, c *Client) (*CallToolResult, error) {
			task, err := handle(ctx, c)
			if err != nil {
				return nil, err
			}
			return c.WaitTask(ctx, task)
		}, []time.Duration{50 * ms, 150 * ms, 350 * ms, 10350 * ms}},
		"after a while": {doneAt(2), func(ctx context.Context, c *Client) (*CallToolResult, error) {
			task, err := handle(ctx, c)
			if err != nil {
				return nil, err
			}
			time.Sleep(2 * time.Second)
			return c.WaitTask(ctx, task)
		}, []time.Duration{10 * time.Second, 20 * time.Second}},
		"after a long while": {doneAt(2), func(ctx context.Context, c *Client) (*CallToolResult, error) {
			task, err := handle(ctx, c)
			if err != nil {
				return nil, err
			}
			time.Sleep(minute)
			return c.WaitTask(ctx, task)
		}, []time.Duration{minute + 50*ms, minute + 10050*ms}},
		"after a look": {doneAt(3), func(ctx context.Context, c *Client) (*CallToolResult, error) {
			task, err := handle(ctx, c)
			if err != nil {
				return nil, err
			}
			time.Sleep(time.Second)
			if task, err = c.Task(ctx, task.ID); err != nil {
				return nil, err
			}
			return c.WaitTask(ctx, task)
		}, []time.Duration{time.Second, 11 * time.Second, 21 * time.Second}},
		"by its id alone": {doneAt(3), func(ctx context.Context, c *Client) (*CallToolResult, error) {
			task, err := handle(ctx, c)
			if err != nil {
				return nil, err
			}
			return c.WaitTask(ctx, &Task{ID: task.ID})
		}, []time.Duration{50 * ms, 10050 * ms, 20050 * ms}},
		"a busy server": {func(n int) string {
			if n == 2 {
				return "?"
			}
			return doneAt(3)(n)
		}, func(ctx context.Context, c *Client) (*CallToolResult, error) { return c.Call(ctx, "slow", nil) },
			[]time.Duration{50 * ms, 150 * ms, 10150 * ms}},
	} {
		t.Run(name, func(t *testing.T) {
			taskScript{more: `,"pollIntervalMs":10000`, look: test.look}.over(t, func(t *testing.T, p *taskPeer, tr Transport) {
				r, err := test.wait(t.Context(), connect(t, tr, modernOptions()))
				if looks, cancels := p.seen(); err != nil || r.Text() != "done" || cancels != 0 || !slices.Equal(looks, test.want) {
					t.Errorf("got %+v, %v; cancelled %d times; looks after %v, want %v", r, err, cancels, looks, test.want)
				}
			})
		})
	}
}

// Times of a task without a zone are in UTC.
func TestTaskTimes(t *testing.T) {
	want := time.Date(2026, 11, 27, 2, 0, 0, 123456000, time.UTC)
	for _, text := range []string{"2026-11-27T02:00:00.123456", "2026-11-27 02:00:00.123456", "2026-11-27T02:00:00.123456Z", "2026-11-27T04:00:00.123456+02:00"} {
		taskScript{created: `"` + text + `"`, look: doneAt(1)}.over(t, func(t *testing.T, p *taskPeer, tr Transport) {
			c := connect(t, tr, modernOptions())
			states := 0
			r, err := c.Call(t.Context(), "slow", nil, OnTask(func(task *Task) {
				if states++; !task.Created.Equal(want) || !task.Updated.Equal(want) {
					t.Errorf("%s: made at %v, changed at %v", text, task.Created, task.Updated)
				}
			}))
			if err != nil || r.Text() != "done" || states != 2 {
				t.Errorf("%s: got %+v, %v after %d states", text, r, err, states)
			}
		})
	}
}

// A call that gives up on a running task cancels it, once.
func TestGivenUpTask(t *testing.T) {
	call := func(ctx context.Context, c *Client) error {
		return callError(c.Call(ctx, "slow", nil, Timeout(5*time.Second)))
	}
	detached := func(ctx context.Context, c *Client) error { return callError(c.Call(ctx, "slow", nil, Detached())) }
	working := taskScript{}.state("task", `"status":"working"`)
	limited := modernOptions()
	asks := `"status":"input_required","inputRequests":{"q":{"method":"roots/list","params":{}}}`
	for name, test := range map[string]struct {
		peer taskScript
		opts *Options
		do   func(ctx context.Context, c *Client) error
		want error // nil: any
		none bool  // there is nothing to cancel
	}{
		"a time that is none":          {peer: taskScript{created: `"yesterday"`}, want: ErrInvalidResult},
		"a detached one":               {peer: taskScript{created: `"yesterday"`}, do: detached, want: ErrInvalidResult},
		"a number for a time":          {peer: taskScript{created: `5`}, want: ErrInvalidResult},
		"an unknown status":            {peer: taskScript{handle: strings.Replace(working, "working", "paused", 1)}, want: ErrInvalidResult},
		"no status":                    {peer: taskScript{handle: `{"resultType":"task","taskId":"t1"}`}, want: ErrInvalidResult},
		"a message that is none":       {peer: taskScript{more: `,"statusMessage":5`}, want: ErrInvalidResult},
		"an interval that is none":     {peer: taskScript{more: `,"pollIntervalMs":"soon"`}, want: ErrInvalidResult},
		"no id":                        {peer: taskScript{handle: `{"resultType":"task","status":"working"}`}, want: ErrInvalidResult, none: true},
		"a look that is refused":       {peer: taskScript{look: func(int) string { return "!" }}},
		"a look without an answer":     {peer: taskScript{look: func(int) string { return "" }}, want: ErrTimeout},
		"a busy server":                {peer: taskScript{look: func(int) string { return "?" }}, want: ErrBusy},
		"a state that does not decode": {peer: taskScript{look: func(int) string { return `"status":5` }}, want: ErrInvalidResult},
		"a state of unknown status":    {peer: taskScript{look: func(int) string { return `"status":"paused"` }}, want: ErrInvalidResult},
		"questions that are none":      {peer: taskScript{look: func(int) string { return `"status":"input_required","inputRequests":5` }}, want: ErrInvalidResult},
		"an update that is refused":    {peer: taskScript{look: func(int) string { return asks }}, opts: &Options{Revisions: limited.Revisions, Roots: []protocol.Root{}}},
		"a question without a handler": {peer: taskScript{look: func(int) string {
			return strings.Replace(asks, "roots/list", "sampling/createMessage", 1)
		}}},
		"a handler that fails": {peer: taskScript{look: func(int) string {
			return `"status":"input_required","inputRequests":{"q":{"method":"elicitation/create","params":{"message":"?","requestedSchema":{"type":"object","properties":{}}}}}`
		}}, opts: &Options{Revisions: limited.Revisions, Elicit: func(context.Context, *ElicitParams) (*ElicitResult, error) { return nil, errors.New("no") }}},
		"the end of the time": {do: func(ctx context.Context, c *Client) error {
			ctx, stop := context.WithTimeout(ctx, 400*ms)
			defer stop()
			return call(ctx, c)
		}, want: ErrTimeout},
		"a context that is cancelled": {do: func(ctx context.Context, c *Client) error {
			ctx, stop := context.WithCancel(ctx)
			time.AfterFunc(400*ms, stop)
			return call(ctx, c)
		}, want: ErrCancelled},
		"a call that takes too long": {opts: &Options{Revisions: limited.Revisions, MaxTimeout: minute}, want: ErrTimeout},
		"Close": {peer: taskScript{more: `,"pollIntervalMs":86400000`}, do: func(ctx context.Context, c *Client) error {
			time.AfterFunc(400*ms, func() { _ = c.Close() })
			return call(ctx, c)
		}, want: ErrClosed},
		"Close during a look": {peer: taskScript{look: func(int) string { return "" }}, do: func(ctx context.Context, c *Client) error {
			time.AfterFunc(400*ms, func() { _ = c.Close() })
			return call(ctx, c)
		}, want: ErrClosed},
		"Close of the client that waits for another's": {peer: taskScript{more: `,"pollIntervalMs":86400000`}, do: func(ctx context.Context, c *Client) error {
			time.AfterFunc(400*ms, func() { _ = c.Close() })
			return callError(c.WaitTask(ctx, &Task{ID: "t1"}))
		}, want: ErrClosed, none: true},
		"another's that does not decode": {peer: taskScript{look: func(int) string { return `"status":5` }}, do: func(ctx context.Context, c *Client) error {
			return callError(c.WaitTask(ctx, &Task{ID: "t1"}))
		}, want: ErrInvalidResult, none: true},
		"a client that takes no tasks": {opts: &Options{Revisions: limited.Revisions, Tasks: TasksOff}, want: ErrInvalidResult},
		"a method that makes none": {peer: taskScript{other: map[string]string{"resources/read": working}}, do: func(ctx context.Context, c *Client) error {
			_, err := c.Read(ctx, "test://a")
			return err
		}, want: ErrInvalidResult},
		"a task that has failed":    {peer: taskScript{look: func(int) string { return `"status":"failed","error":{"code":1,"message":"no"}` }}, none: true},
		"a task without a result":   {peer: taskScript{look: func(int) string { return `"status":"completed"` }}, none: true},
		"a result that is none":     {peer: taskScript{look: func(int) string { return `"status":"completed","result":{"content":5}` }}, want: ErrInvalidResult, none: true},
		"a task that was cancelled": {peer: taskScript{look: func(int) string { return `"status":"cancelled"` }}, want: ErrCancelled, none: true},
	} {
		t.Run(name, func(t *testing.T) {
			test.peer.over(t, func(t *testing.T, p *taskPeer, tr Transport) {
				if test.opts == nil {
					test.opts = modernOptions()
				}
				c, do := connect(t, tr, test.opts), test.do
				if do == nil {
					do = call
				}
				err := do(t.Context(), c)
				if err == nil || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("got %v, want %v", err, test.want)
				}
				time.Sleep(10 * time.Second)
				if _, cancels := p.seen(); cancels != 1 && !test.none || cancels != 0 && test.none {
					t.Errorf("cancelled %d times, after %v", cancels, err)
				}
			})
		})
	}
}

// A call may become a task when its caller has given it up.
func TestLateTask(t *testing.T) {
	for name, give := range map[string]func(ctx context.Context, c *Client) error{
		"timeout": func(ctx context.Context, c *Client) error {
			return callError(c.Call(ctx, "slow", nil, Timeout(time.Second)))
		},
		"context": func(ctx context.Context, c *Client) error {
			ctx, stop := context.WithTimeout(ctx, time.Second)
			defer stop()
			return callError(c.Call(ctx, "slow", nil))
		},
		"CancelAll": func(ctx context.Context, c *Client) error {
			time.AfterFunc(time.Second, func() { c.CancelAll("no") })
			return callError(c.Call(ctx, "slow", nil))
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := &taskPeer{}
				c := connect(t, scripted(t, func(s *script) {
					for h := s.next(); h != nil; h = s.next() {
						if h.Method == "tools/call" {
							time.Sleep(2 * time.Second)
							s.say(`{"jsonrpc":"2.0","id":%s,%s}`, h.ID, p.answer(h)) // and again, which counts once
						}
						if text := p.answer(h); h.ID != nil {
							s.say(`{"jsonrpc":"2.0","id":%s,%s}`, h.ID, text)
						}
					}
				}), modernOptions())
				err := give(t.Context(), c)
				time.Sleep(10 * time.Second)
				if _, cancels := p.seen(); err == nil || cancels != 1 {
					t.Errorf("got %v, cancelled %d times", err, cancels)
				}
				// An answer that comes twice says nothing about a task that is waited for.
				r, err := c.Call(t.Context(), "slow", nil, Detached(), Timeout(time.Minute))
				time.Sleep(10 * time.Second)
				if _, cancels := p.seen(); err != nil || r.Task == nil || cancels != 1 {
					t.Errorf("got %+v, %v, cancelled %d times", r, err, cancels)
				}
			})
		})
	}
}

// The request that cancels a task has the headers of the call.
func TestGivenUpTaskHeaders(t *testing.T) {
	got := make(chan string, 9)
	taskScript{look: func(int) string { return "!" }, header: func(h http.Header) { got <- h.Get("X-Tenant") }}.over(t, func(t *testing.T, p *taskPeer, tr Transport) {
		_, err := connect(t, tr, modernOptions()).Call(t.Context(), "slow", nil, Header("X-Tenant", "a"))
		time.Sleep(time.Second)
		if _, cancels := p.seen(); err == nil || cancels != 1 {
			t.Errorf("got %v, cancelled %d times", err, cancels)
		}
	})
	if len(got) != 1 || <-got != "a" {
		t.Error("the request to cancel has other headers")
	}
}
