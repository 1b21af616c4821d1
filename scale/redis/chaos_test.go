//go:build unix

package redis

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

var chaos = flag.Duration("chaos", 0, "how long TestChaos lasts; 0 leaves it out")

// What happens in it, and how often.
const (
	chaosSessions = 16               // clients with sessions
	chaosTasks    = 8                // clients with tasks
	killReplica   = 5 * time.Second  // kill -9, and a new one at once
	killEngine    = 23 * time.Second // kill -9, and a new one a second later
	pauseReplica  = 7 * time.Second  // SIGSTOP for two seconds
	pauseEngine   = 11 * time.Second // SIGSTOP for a second and a half
	breakLink     = 8 * time.Second  // between a replica and the engine: one of three ways, for a second and a half
	rest          = 25 * time.Second // at the end of each minute, in which engine and links are left alone: who has no store for a lease takes no task
	unanswered    = 30 * time.Second // no request may take so long
	settling      = 60 * time.Second // for tasks to end when all is quiet again
)

// fate is what became of a request, as far as its client knows.
type fate int

const (
	done    fate = iota // it was answered
	refused             // it was refused with 503, and so was not begun
	unknown             // the connection broke, or the error says that it may have run
	gone                // what it is about is not there
)

// operation is what a client does: with the session or the task of a number.
type operation struct {
	about int
	name  string
}

// answer is what it gets.
type answer struct {
	fate
	count int    // of a session
	final string // of a task
}

// counter is the state of a session: its number, below 0 if it has ended, and how many
// increments may still happen.
type counter struct{ n, open int }

// counters is a session: whoever increments it gets the next number. One that may not have
// happened is open from its call on, and takes place when a later number needs it: to try each
// of them at each place would take exponential time.
var counters = porcupine.Model{
	Partition: byWhatItIsAbout,
	Init:      func() any { return counter{} },
	Step: func(state, input, output any) (bool, any) {
		c, a := state.(counter), output.(answer)
		switch {
		case input.(operation).name == "end":
			return c.n >= 0, counter{n: -1}
		case a.fate == refused:
			return true, c
		case a.fate == gone:
			return c.n < 0, c
		case a.fate == unknown:
			return true, counter{c.n, c.open + 1}
		}
		between := a.count - 1 - c.n
		return c.n >= 0 && between >= 0 && between <= c.open, counter{a.count, c.open - between}
	},
	DescribeOperation: func(input, output any) string { return fmt.Sprint(input, output) },
}

// endings is a task: how it has ended once, it has ended for ever.
var endings = porcupine.Model{
	Partition: byWhatItIsAbout,
	Init:      func() any { return "" },
	Step: func(state, _, output any) (bool, any) {
		ended, a := state.(string), output.(answer)
		if a.fate != done {
			return a.fate != gone, ended
		}
		return ended == "" || a.final == ended, a.final
	},
}

func byWhatItIsAbout(history []porcupine.Operation) [][]porcupine.Operation {
	parts := map[int][]porcupine.Operation{}
	for _, o := range history {
		about := o.Input.(operation).about
		parts[about] = append(parts[about], o)
	}
	var all [][]porcupine.Operation
	for _, part := range parts {
		all = append(all, part)
	}
	return all
}

// disturbed is a server of four replicas, to which things happen.
type disturbed struct {
	t     *testing.T
	url   string // where each request goes to the next replica
	ids   atomic.Int64
	began time.Time

	replicas []string // the URL of each

	mu       sync.Mutex
	troubles []trouble
	sessions []porcupine.Operation
	tasks    []porcupine.Operation
	count    map[string]int
}

// note adds to a history. What is unknown may happen from its call on, without an end.
func (d *disturbed) note(history *[]porcupine.Operation, client int, o operation, called time.Time, a answer) {
	d.mu.Lock()
	defer d.mu.Unlock()
	returned := time.Since(d.began)
	if a.fate == unknown {
		returned = called.Sub(d.began)
	}
	*history = append(*history, porcupine.Operation{ClientId: client, Input: o, Output: a, Call: int64(called.Sub(d.began)), Return: int64(returned)})
	d.count[o.name+": "+[]string{"done", "refused", "unknown", "gone"}[a.fate]]++
}

// reply is a message of the server.
type reply struct {
	Result struct {
		Content []struct{ Text string }
		IsError bool
		TaskID  string
		Status  string
		Result  json.RawMessage
		Error   json.RawMessage
	}
	Error *struct {
		Code    int
		Message string
		Data    struct{ Executed any }
	}
}

// send sends a request to whichever replica, and says what became of it.
func (d *disturbed) send(ctx context.Context, method, session, rpc, params string) (r reply, header http.Header, o fate) {
	return d.sendTo(ctx, d.url, method, session, rpc, params)
}

// sendTo is send for one replica.
func (d *disturbed) sendTo(ctx context.Context, to, method, session, rpc, params string) (r reply, header http.Header, o fate) {
	modern := strings.Contains(params, "2026-07-28")
	body := ""
	if method == http.MethodPost {
		body = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":%s}`, d.ids.Add(1), rpc, params)
	}
	ctx, cancel := context.WithTimeout(ctx, unanswered)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, to, strings.NewReader(body))
	if err != nil {
		d.t.Error(err)
		return r, nil, unknown
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if session != "" {
		req.Header.Set("Mcp-Session-Id", session)
	}
	if modern {
		req.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", rpc)
		_, name, _ := strings.Cut(params, `:"`)
		name, _, _ = strings.Cut(name, `"`)
		req.Header.Set("Mcp-Name", name)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			d.t.Errorf("%s %s has no answer after %v", method, rpc, unanswered)
		}
		return r, nil, unknown
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	switch {
	case res.StatusCode == http.StatusServiceUnavailable:
		return r, nil, refused
	case res.StatusCode == http.StatusNotFound:
		return r, nil, gone
	case err != nil || res.StatusCode == http.StatusBadGateway:
		return r, nil, unknown
	case res.StatusCode == http.StatusNoContent:
		return r, nil, done
	}
	for line := range bytes.Lines(text) { // of an event stream, or JSON
		line = bytes.TrimPrefix(line, []byte("data: "))
		if bytes.Contains(line, []byte(`"result"`)) || bytes.Contains(line, []byte(`"error"`)) {
			text = line
		}
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return r, nil, unknown // the stream broke
	}
	if r.Error != nil {
		switch {
		case r.Error.Code == 503 || r.Error.Code == 429:
			return r, nil, refused
		case r.Error.Data.Executed != nil:
			return r, nil, unknown
		case strings.HasPrefix(r.Error.Message, "Task not found"):
			return r, nil, gone
		}
		d.t.Errorf("%s: %d %s", rpc, res.StatusCode, text)
		return r, nil, unknown
	}
	return r, res.Header, done
}

// session is a client that counts in one session after the other.
func (d *disturbed) session(ctx context.Context, client int) {
	for n := 0; ctx.Err() == nil; n++ {
		about := client<<16 + n
		_, header, o := d.send(context.Background(), http.MethodPost, "", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chaos","version":"1"}}`)
		if o != done {
			pauseFor(ctx)
			continue
		}
		id := header.Get("Mcp-Session-Id")
		for range 40 {
			called := time.Now()
			r, _, o := d.send(context.Background(), http.MethodPost, id, "tools/call", `{"name":"test_count"}`)
			a := answer{fate: o}
			if o == done {
				_, _ = fmt.Sscan(r.Result.Content[0].Text, &a.count)
			}
			d.note(&d.sessions, client, operation{about, "count"}, called, a)
			pauseFor(ctx)
		}
		called := time.Now()
		tries := 0
		for o = refused; o == unknown || o == refused; pauseFor(ctx) { // one that is refused may have ended it: it does no harm to try again
			_, _, o = d.send(context.Background(), http.MethodDelete, id, "", "")
			tries++
		}
		if o == gone && tries == 1 {
			d.t.Errorf("session %d was gone before anybody ended it", about)
		}
		// It ended somewhen between the first try and the last, which the client may
		// have been told by a later one only.
		d.note(&d.sessions, client, operation{about, "end"}, called, answer{fate: done})
		called = time.Now()
		_, _, o = d.send(context.Background(), http.MethodPost, id, "tools/call", `{"name":"test_count"}`)
		d.note(&d.sessions, client, operation{about, "count"}, called, answer{fate: o})
	}
}

const taskMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`

// task is a client that begins tasks, answers what they ask or cancels them, and
// looks at them until they have ended, and once more.
func (d *disturbed) task(ctx context.Context, client int) {
	for n := 0; ctx.Err() == nil; n++ {
		about := client<<16 + n
		begun, _, o := d.send(context.Background(), http.MethodPost, "", "tools/call", `{"name":"confirm_delete","arguments":{"filename":"f"}`+taskMeta)
		if o != done || begun.Result.TaskID == "" {
			pauseFor(ctx)
			continue
		}
		named := `{"taskId":"` + begun.Result.TaskID + `"`
		more, born := 3, time.Now() // looks after the end
		for last := time.Now(); more > 0; pauseFor(context.Background()) {
			called := time.Now()
			r, _, o := d.send(context.Background(), http.MethodPost, "", "tasks/get", named+taskMeta)
			a := answer{fate: o}
			if o == done {
				switch r.Result.Status {
				case "input_required":
					method, rest := "tasks/update", `,"inputResponses":{"confirm":{"action":"accept","content":{"confirm":true}}}`
					if rand.IntN(4) == 0 {
						method, rest = "tasks/cancel", ""
					}
					_, _, _ = d.send(context.Background(), http.MethodPost, "", method, named+rest+taskMeta)
				case "working":
				default:
					a.final = r.Result.Status + string(r.Result.Result) + string(r.Result.Error)
					more--
				}
			}
			d.note(&d.tasks, client, operation{about, "tasks/get"}, called, a)
			if ctx.Err() == nil {
				last = time.Now()
			} else if time.Since(last) > settling {
				d.t.Errorf("a task has not ended after %v: %s, %+v", settling, r.Result.Status, r.Error)
				break
			}
			if o == gone {
				d.t.Errorf("task %d is gone %v after it began, at %v", about, time.Since(born), d.now())
				break
			}
		}
	}
}

// The models accept what can happen, and nothing else.
func TestChaosModels(t *testing.T) {
	type seen struct {
		name string
		answer
	}
	one := func(n int) seen { return seen{"count", answer{count: n}} }
	maybe := seen{"count", answer{fate: unknown}}
	for _, test := range []struct {
		model porcupine.Model
		seen  []seen
		want  bool
	}{
		{counters, []seen{{"count", answer{count: 1}}, {"count", answer{fate: refused}}, {"count", answer{count: 2}}, {"end", answer{}}, {"count", answer{fate: gone}}}, true},
		{counters, []seen{{"count", answer{count: 1}}, {"count", answer{fate: unknown}}, {"count", answer{count: 3}}}, true},
		{counters, []seen{{"count", answer{count: 1}}, {"count", answer{fate: unknown}}, {"count", answer{count: 2}}}, true},
		{counters, slices.Concat(slices.Repeat([]seen{maybe}, 24), []seen{one(1), one(2), one(3), one(14), maybe, one(29), {"end", answer{}}}), true},
		{counters, []seen{maybe, one(1), one(2), one(3)}, true},
		{counters, []seen{maybe, one(1), one(3), one(5)}, false},
		{counters, []seen{maybe, maybe, one(2), {"end", answer{}}, maybe, one(3)}, false},
		{counters, []seen{one(1), one(3), maybe}, false},
		{counters, []seen{{"count", answer{count: 1}}, {"count", answer{count: 1}}}, false},
		{counters, []seen{{"count", answer{count: 1}}, {"count", answer{fate: refused}}, {"count", answer{count: 3}}}, false},
		{counters, []seen{{"count", answer{fate: gone}}}, false},
		{counters, []seen{{"end", answer{}}, {"count", answer{count: 1}}}, false},
		{endings, []seen{{"", answer{}}, {"", answer{fate: refused}}, {"", answer{final: "completed"}}, {"", answer{final: "completed"}}}, true},
		{endings, []seen{{"", answer{final: "completed"}}, {"", answer{final: "failed"}}}, false},
		{endings, []seen{{"", answer{final: "completed"}}, {"", answer{}}}, false},
		{endings, []seen{{"", answer{fate: gone}}}, false},
	} {
		d := &disturbed{t: t, began: time.Now(), count: map[string]int{}}
		var history []porcupine.Operation
		for _, s := range test.seen {
			d.note(&history, 0, operation{0, s.name}, time.Now(), s.answer)
		}
		if got := porcupine.CheckOperations(test.model, history); got != test.want {
			t.Errorf("%+v: %t, want %t", test.seen, got, test.want)
		}
	}
}

func pauseFor(ctx context.Context) {
	select {
	case <-time.After(time.Duration(rand.IntN(40)) * time.Millisecond):
	case <-ctx.Done():
	}
}

// fleet is what TestChaos disturbs: four replicas, the engine, and the links
// between them.
type fleet struct {
	*disturbed
	engine   *server
	links    [4]*link
	replicas [4]*process
	run      [4]func() // starts a replica
}

// startFleet starts it all, and a balancer before it.
func startFleet(t *testing.T) *fleet {
	f := &fleet{disturbed: &disturbed{t: t, count: map[string]int{}}, engine: start(t, "--appendonly", "yes", "--appendfsync", "always")} // with everysec it loses what it acknowledges while it syncs
	program := build(t, "./cmd/replica")
	var handlers []http.Handler
	for i := range f.replicas {
		address := testexec.FreeAddr(t)
		f.links[i] = newLink(t, f.engine.address())
		f.run[i] = func() {
			f.replicas[i] = launch(t, false, []string{"GOMAXPROCS=1"}, program, "-http", address, "-redis", "redis://"+f.links[i].Addr().String())
		}
		f.run[i]()
		f.disturbed.replicas = append(f.disturbed.replicas, "http://"+address+"/mcp")
		handlers = append(handlers, testcmd.Proxy(&url.URL{Scheme: "http", Host: address}))
		eventually(t, "a replica serves", func() bool {
			res, err := http.Get("http://" + address + "/healthz")
			return err == nil && res.Body.Close() == nil
		})
	}
	web := httptest.NewServer(testcmd.RoundRobin(handlers...))
	t.Cleanup(web.Close)
	f.url, f.began = web.URL+"/mcp", time.Now()
	return f
}

// disturb does something to a replica, to the engine, or to what is between them.
func (f *fleet) disturb(what string, i int) {
	switch what {
	case "kill a replica":
		defer f.trouble(i, true)()
		f.replicas[i].kill()
		f.run[i]()
	case "kill the engine":
		defer f.trouble(nobody, false)()
		f.engine.kill()
		time.Sleep(time.Second)
		f.engine.run()
	case "stop a replica":
		defer f.trouble(i, false)() // what the engine answers then comes too late
		_ = f.replicas[i].Process.Signal(syscall.SIGSTOP)
		time.Sleep(2 * time.Second)
		_ = f.replicas[i].Process.Signal(syscall.SIGCONT)
	case "stop the engine":
		defer f.trouble(nobody, false)()
		goOn := f.engine.stop()
		time.Sleep(1500 * time.Millisecond)
		goOn()
	case "cut a link":
		defer f.trouble(i, false)()
		defer f.links[i].refuse()()
		time.Sleep(1500 * time.Millisecond)
	case "stall a link":
		defer f.trouble(i, false)()
		defer f.links[i].stall()()
		time.Sleep(1500 * time.Millisecond)
	case "leave a link half open":
		defer f.trouble(i, false)()
		f.links[i].freeze()
		time.Sleep(1500 * time.Millisecond)
	}
}

// supervise starts replicas again that have ended by themselves: where the engine
// is away they do not begin to serve.
func (f *fleet) supervise() {
	for i, r := range f.replicas {
		select {
		case err := <-r.ended:
			r.ended <- err
			f.run[i]()
		default:
		}
	}
}

// TestChaos kills and stops replicas and the engine, and breaks what is between
// them, while clients use sessions, tasks and streams. It asks whether what the
// clients of sessions and tasks saw could have happened at one server that does
// one thing after another, and of streams what chaosstreams_test.go says.
func TestChaos(t *testing.T) {
	if *chaos == 0 {
		t.Skip("without -chaos 60s")
	}
	f := startFleet(t)
	d := f.disturbed
	ctx, cancel := context.WithTimeout(t.Context(), *chaos)
	defer cancel()
	hears, deaf := context.WithCancel(t.Context())
	defer deaf()
	var clients, streams sync.WaitGroup
	for i := range chaosSessions {
		clients.Go(func() { d.session(ctx, i) })
	}
	for i := range chaosTasks {
		clients.Go(func() { d.task(ctx, i) })
	}
	var hearers []*hearer
	for i := range 2 * chaosHearers {
		h := &hearer{d: d, subscribes: i >= chaosHearers}
		hearers = append(hearers, h)
		streams.Go(func() { h.run(ctx, hears) })
	}
	clients.Go(func() { d.touch(ctx, hearers) })
	every := map[string]time.Duration{
		"kill a replica": killReplica, "kill the engine": killEngine, "stop a replica": pauseReplica, "stop the engine": pauseEngine,
		"cut a link": 3 * breakLink, "stall a link": 3 * breakLink, "leave a link half open": 3 * breakLink,
	}
	next := map[string]time.Time{}
	for what, pause := range every {
		next[what] = d.began.Add(pause)
	}
	next["stall a link"] = next["stall a link"].Add(-breakLink)
	next["leave a link half open"] = next["leave a link half open"].Add(-2 * breakLink)
	for ctx.Err() == nil {
		for what, at := range next {
			if time.Now().Before(at) {
				continue
			}
			next[what] = at.Add(every[what])
			if d.now()%time.Minute >= time.Minute-rest && !strings.HasSuffix(what, "replica") {
				continue
			}
			i := rand.IntN(len(f.replicas))
			t.Logf("%.1f s: %s %d", d.now().Seconds(), what, i)
			f.disturb(what, i)
			f.supervise()
		}
		time.Sleep(50 * time.Millisecond)
	}
	time.Sleep(time.Second)
	f.supervise()
	clients.Wait()
	last := d.now() + settled
	time.Sleep(settled) // for what is still to be told
	deaf()
	streams.Wait()
	t.Logf("%v", d.count)
	for i, h := range hearers {
		v := h.judge(!h.subscribes, d.troubles, last)
		t.Logf("hearer %d: %d messages, %d changes; %d judged, %d excused", i, len(h.messages), len(h.changes), v.judged, v.excused)
		for _, fault := range v.faults {
			t.Errorf("hearer %d: %s", i, fault)
		}
	}
	d.check(counters, d.sessions)
	d.check(endings, d.tasks)
}

// check asks whether a history is one of the model.
func (d *disturbed) check(model porcupine.Model, history []porcupine.Operation) {
	for _, part := range model.Partition(history) {
		if result := porcupine.CheckOperationsTimeout(model, part, time.Minute); result != porcupine.Ok {
			d.t.Errorf("%v: %s", part[0].Input, result)
			for _, o := range part {
				d.t.Logf("    %d to %d: %v %+v", o.Call/1e6, o.Return/1e6, o.Input, o.Output)
			}
		}
	}
}
