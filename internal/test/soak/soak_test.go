package soak_test

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/websocket"
)

var soak = flag.Duration("soak", 0, "how long TestSoak runs, with 200 clients; 0 means a few rounds of one client of each kind")

// TestSoak has clients of every revision, over HTTP, HTTP+SSE, WebSocket,
// sockets and pipes, call good tools, panicking tools and no tools, several at a
// time, send garbage, go away in the middle of calls and read nothing, while
// tools come and go: at the default limit of calls under way, and at one that
// they run into. Every call that is waited for must be answered right, once, and
// to who asked; the calls of who goes away must be cancelled, with -soak within
// a second; and nothing may be left behind.
func TestSoak(t *testing.T) {
	for _, limit := range []int{4, 256} {
		t.Run(fmt.Sprint("Concurrent ", limit), func(t *testing.T) { runSoak(t, limit) })
	}
}

func runSoak(t *testing.T, concurrent int) {
	s := harness.Fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true},
		Limits:   mcp.Limits{Concurrent: concurrent},
		Timeouts: mcp.Timeouts{Write: time.Second, Grace: 200 * time.Millisecond},
	})
	var begun, ended atomic.Int64
	var events harness.EventLog
	events.Observe(s)
	s.Observe(mcp.Observer{
		Begin: func(f *mcp.Frame) (context.Context, error) { begun.Add(1); return f, nil },
		End:   func(*mcp.Frame, mcp.Outcome) { ended.Add(1) },
	})
	mux := http.NewServeMux()
	mux.Handle("/", s.Handler())
	mux.Handle("/ws", websocket.Handler(s))
	server := httptest.NewServer(mux)
	defer server.Close()
	tr := &http.Transport{MaxIdleConnsPerHost: 200}
	so := &soaking{t: t, server: s, url: server.URL, addr: server.Listener.Addr().String(),
		socket: harness.ListenOn(t, s, "tcp"), http: &http.Client{Transport: tr}}
	s.MustAdd(so.tools()...)
	clients, rounds := len(soakKinds), 10
	if *soak > 0 {
		clients, rounds = 200, 1<<30
	}
	so.run(len(soakKinds), 3, time.Hour) // so that the baseline has what is made once
	goroutines, heap := harness.Settle(tr, 0, 20)
	so.counts = soakCounts{}
	limit := *soak
	if limit == 0 {
		limit = time.Hour
	}
	so.run(clients, rounds, limit)
	t.Logf("%d clients: %s", clients, &so.counts)
	longest, late := time.Duration(so.counts.noticed.Load()), time.Duration(so.counts.late.Load())
	if *soak > 0 && longest > time.Second+late {
		t.Errorf("a client that left was noticed after %v, and the machine was late by %v", longest, late)
	}
	afterGoroutines, afterHeap := harness.Settle(tr, goroutines, 500)
	t.Logf("goroutines %d before, %d after; heap %d KiB before, %d KiB after", goroutines, afterGoroutines, heap>>10, afterHeap>>10)
	if afterGoroutines > goroutines {
		buffer := make([]byte, 1<<20)
		t.Errorf("%d goroutines, %d before\n%s", afterGoroutines, goroutines, buffer[:runtime.Stack(buffer, true)])
	}
	if afterHeap > heap+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, afterHeap)
	}
	stats := s.Stats()
	t.Logf("%d messages, %d sessions, %d streams; %+v", begun.Load(), events.Of("session.opened", ""), events.Of("stream.opened", ""), stats)
	if begun.Load() != ended.Load() || stats.Requests.Now != 0 {
		t.Errorf("%d messages began, %d ended, %d go on", begun.Load(), ended.Load(), stats.Requests.Now)
	}
	for kind, now := range map[string]int{"session": stats.Sessions.Now, "stream": stats.Streams.Now} {
		if opened, ended := events.Of(kind+".opened", ""), events.Of(kind+".ended", ""); opened == 0 || opened != ended+now {
			t.Errorf("of %ss, %d were opened, %d ended, and %d are there", kind, opened, ended, now)
		}
	}
}

// tools are what the fixture lacks: a tool that goes on until nobody waits, and
// says when, one that takes a little time, and one whose result fills every
// buffer on the way.
func (so *soaking) tools() []mcp.Component {
	big := strings.Repeat("0123456789abcdef", 64<<10)
	return []mcp.Component{
		mcp.Tool("hang", func(f *mcp.Frame, _ struct{}) (string, error) {
			_ = f.Progress(1, 0) // whoever reads this is in the middle of the call
			<-f.Done()
			if ended, ok := so.hanging.LoadAndDelete(strings.Trim(f.Request().ID.String(), `"`)); ok {
				ended.(chan time.Time) <- time.Now()
			}
			return "", f.Err()
		}),
		mcp.Tool("pause", func(*mcp.Frame, struct{}) (string, error) {
			<-time.After(5 * time.Millisecond)
			return "paused", nil
		}),
		mcp.Tool("big", func(*mcp.Frame, struct{}) (string, error) { return big, nil }),
	}
}

// soaking is what the clients share.
type soaking struct {
	t         *testing.T
	server    *mcp.Server
	url, addr string
	socket    net.Addr
	http      *http.Client
	hanging   sync.Map // from the ids of calls of hang to a chan time.Time for when they end
	counts    soakCounts
}

type soakCounts struct {
	calls, panics, told, garbage, left, stalled, opened, busy atomic.Int64

	noticed atomic.Int64 // the longest time until a client that left was noticed
	late    atomic.Int64 // the longest time by which a tick of the test itself was late
}

func (c *soakCounts) String() string {
	return fmt.Sprintf("%d calls answered, %d of them with a panic, %d messages ahead of answers, %d times garbage, left in the middle %d times and noticed within %v (the machine was late by up to %v), stalled %d times, %d calls refused as too many, %d connections and sessions opened",
		c.calls.Load(), c.panics.Load(), c.told.Load(), c.garbage.Load(), c.left.Load(),
		time.Duration(c.noticed.Load()).Round(time.Millisecond), time.Duration(c.late.Load()).Round(time.Millisecond), c.stalled.Load(), c.busy.Load(), c.opened.Load())
}

// soakKinds are the kinds of clients: how they connect and what they speak.
var soakKinds = func() (kinds []soakKind) {
	for _, rev := range testdep.Revisions() {
		kinds = append(kinds, soakKind{"http", rev, openSoakHTTP}, soakKind{"stdio", rev, openSoakPipes}, soakKind{"tcp", rev, openSoakTCP}, soakKind{"websocket", rev, openSoakWebSocket})
		if !rev.Modern() {
			kinds = append(kinds, soakKind{"sse", rev, openSoakSSE})
		}
	}
	return kinds
}()

type soakKind struct {
	name string
	rev  protocol.Revision
	open func(c *soakClient) soakLink
}

// soakLink is one connection, or one session, of a client.
type soakLink interface {
	// exchange sends messages and returns everything that is heard until each
	// request among them has an answer.
	exchange(lines []string) ([]string, error)
	// leave sends a call, waits until it is under way if it says so, and goes
	// away without a word. It returns when it went.
	leave(call string) time.Time
	// stall sends a call whose answer is large and does not read it, until it
	// is closed.
	stall(call string)
	// close ends the link in order and returns what was heard besides.
	close() []string
}

// run has n clients do so many rounds each, or stop at the limit.
func (so *soaking) run(n, rounds int, limit time.Duration) {
	begin := time.Now()
	stop := make(chan struct{})
	var all, changing sync.WaitGroup
	changing.Go(func() { so.change(stop) })
	for number := range n {
		all.Go(func() {
			c := &soakClient{soaking: so, number: number, kind: soakKinds[number%len(soakKinds)], random: rand.New(rand.NewPCG(1, uint64(number)))}
			for i := 0; i < rounds && time.Since(begin) < limit; i++ {
				c.round()
			}
			c.closeLink()
			c.closeStalled()
		})
	}
	all.Wait()
	close(stop)
	changing.Wait()
}

// change adds a tool and takes it away, which every legacy session is told of.
func (so *soaking) change(stop <-chan struct{}) {
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		select {
		case due := <-ticker.C:
			raise(&so.counts.late, time.Since(due))
			so.server.MustAdd(harness.Tool("passing"))
			so.server.Remove(mcp.KindTool, "passing")
		case <-stop:
			return
		}
	}
}

// soakClient is one client. Its ids have its number in them, so that an answer
// for somebody else shows.
type soakClient struct {
	*soaking
	number  int
	kind    soakKind
	random  *rand.Rand
	link    soakLink
	stalled soakLink
	serial  int
	counted int // calls of count in the session
}

// soakCall is a call and what its answer must have.
type soakCall struct {
	id, line, want string
	told           int // messages ahead of the answer
}

func (c *soakClient) open() soakLink {
	c.counts.opened.Add(1)
	link := c.kind.open(c)
	if c.kind.rev.Modern() {
		return link
	}
	heard, err := link.exchange([]string{fmt.Sprintf(`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{%s}}`, harness.Hello(c.kind.rev.String()))})
	for _, message := range heard {
		harness.CheckSpec(c.t, c.kind.rev, `{"method":"initialize"}`, message)
	}
	if err != nil || len(heard) != 1 || !strings.Contains(heard[0], fmt.Sprintf(`"protocolVersion":%q`, c.kind.rev)) {
		c.t.Errorf("%s %s: initialize: %q %v", c.kind.name, c.kind.rev, heard, err)
	}
	if _, err := link.exchange([]string{`{"jsonrpc":"2.0","method":"notifications/initialized"}`}); err != nil {
		c.t.Errorf("%s %s: initialized: %v", c.kind.name, c.kind.rev, err)
	}
	return link
}

func (c *soakClient) closeLink() {
	if c.link != nil {
		for _, message := range c.link.close() {
			c.stray(message)
		}
		c.link, c.counted = nil, 0
	}
}

func (c *soakClient) closeStalled() {
	if c.stalled != nil {
		c.stalled.close()
		c.stalled = nil
	}
}

func (c *soakClient) round() {
	if c.link == nil {
		c.link = c.open()
	}
	switch c.random.IntN(12) {
	case 0:
		c.leave()
		c.link, c.counted = nil, 0
	case 1:
		c.closeStalled()
		c.stalled = c.open()
		c.stalled.stall(c.call("big", `{}`, "", 0).line)
		c.counts.stalled.Add(1)
	case 2:
		c.closeLink()
	case 3:
		c.garbage()
	default:
		c.calls(1 + c.random.IntN(8)) // more than the small limit
	}
}

// leave goes away in the middle of a call, which must end.
func (c *soakClient) leave() {
	call := c.call("hang", `{}`, "", 1)
	ended := make(chan time.Time, 1)
	c.hanging.Store(call.id, ended)
	gone := c.link.leave(call.line)
	select {
	case at := <-ended:
		raise(&c.counts.noticed, at.Sub(gone))
	case <-time.After(harness.Patience):
		c.t.Errorf("%s %s: the call of a client that left goes on", c.kind.name, c.kind.rev)
	}
	c.counts.left.Add(1)
}

// raise makes d the value of longest if it is more.
func raise(longest *atomic.Int64, d time.Duration) {
	for last := longest.Load(); int64(d) > last && !longest.CompareAndSwap(last, int64(d)); last = longest.Load() {
	}
}

// call makes a call of a tool.
func (c *soakClient) call(tool, args, want string, told int) soakCall {
	c.serial++
	id := fmt.Sprintf("c%d-%d", c.number, c.serial)
	meta := fmt.Sprintf(`"_meta":{"progressToken":%q}`, id)
	if c.kind.rev.Modern() {
		meta = harness.Expand(fmt.Sprintf(`$META+,"progressToken":%q}`, id), c.kind.rev)
	}
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%q,"method":"tools/call","params":{"name":%q,"arguments":%s,%s}}`, id, tool, args, meta)
	return soakCall{id, line, want, told}
}

// calls has n calls under way at once and checks what comes back.
func (c *soakClient) calls(n int) {
	open := map[string]soakCall{}
	var lines []string
	for range n {
		var call soakCall
		switch c.random.IntN(8) {
		case 0:
			call = c.call("panic", `{}`, "the handler panicked", 0)
			c.counts.panics.Add(1)
		case 1:
			call = c.call("progress", `{}`, `"text":"done"`, 2)
		case 2:
			call = c.call("no such tool", `{}`, "Unknown tool", 0)
		case 3, 4:
			call = c.call("pause", `{}`, `"text":"paused"`, 0)
		default:
			a := c.random.IntN(1000)
			call = c.call("add", fmt.Sprintf(`{"a":%d,"b":%d}`, a, c.serial), fmt.Sprintf(`\"sum\":%d}`, a+c.serial), 0)
		}
		open[call.id] = call
		lines = append(lines, call.line)
	}
	count := !c.kind.rev.Modern() && c.random.IntN(3) == 0
	if count { // the session's own counter
		c.counted++
		call := c.call("count", `{}`, fmt.Sprintf(`"text":"%d"`, c.counted), 0)
		open[call.id] = call
		lines = append(lines, call.line)
	}
	heard, err := c.link.exchange(lines)
	if err != nil {
		c.t.Errorf("%s %s: %v", c.kind.name, c.kind.rev, err)
		c.closeLink()
		return
	}
	for _, message := range heard {
		if c.serial%4 == 0 { // all of them would take most of the time
			harness.CheckSpec(c.t, c.kind.rev, `{"method":"tools/call"}`, message)
		}
		c.check(open, message)
	}
	for id, call := range open {
		c.t.Errorf("%s %s: no answer to %s, or not all that comes ahead of it: %+v", c.kind.name, c.kind.rev, id, call)
	}
}

// check takes a message for one of the open calls.
func (c *soakClient) check(open map[string]soakCall, message string) {
	var m struct {
		ID     string
		Method string
		Params struct{ ProgressToken string }
	}
	if err := json.Unmarshal([]byte(message), &m); err != nil {
		c.t.Errorf("%s %s: %v in %s", c.kind.name, c.kind.rev, err, message)
		return
	}
	switch m.Method {
	case "":
		call, ok := open[m.ID]
		delete(open, m.ID)
		if !ok || call.told != 0 || !strings.Contains(message, call.want) {
			c.t.Errorf("%s %s, client %d: %d messages to come before this, want %q, known %t\ngot %.500s", c.kind.name, c.kind.rev, c.number, call.told, call.want, ok, message)
		}
		c.counts.calls.Add(1)
	case protocol.MethodProgress:
		call, ok := open[m.Params.ProgressToken]
		call.told--
		open[m.Params.ProgressToken] = call
		if !ok || call.told < 0 {
			c.t.Errorf("%s %s, client %d: progress of no call: %s", c.kind.name, c.kind.rev, c.number, message)
		}
		c.counts.told.Add(1)
	default:
		c.stray(message)
	}
}

// stray checks a message that no call asked for.
func (c *soakClient) stray(message string) {
	if c.kind.rev.Modern() || !strings.Contains(message, `"method":"notifications/tools/list_changed"`) {
		c.t.Errorf("%s %s, client %d: not asked for: %.500s", c.kind.name, c.kind.rev, c.number, message)
	}
}

func (c *soakClient) garbage() {
	c.counts.garbage.Add(1)
	heard, err := c.link.exchange([]string{`{"jsonrpc":"2.0","id":"bad","method":`})
	answers := 0
	for _, message := range heard {
		if strings.Contains(message, `"code":-32700`) {
			answers++
		} else {
			c.stray(message)
		}
	}
	if err != nil || answers != 1 {
		c.t.Errorf("%s %s: garbage: %q %v", c.kind.name, c.kind.rev, heard, err)
	}
}
