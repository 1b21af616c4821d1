package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	mcpws "github.com/talaria-go/mcp/transport/websocket"
)

// eventLog counts what an observer is told.
type eventLog struct {
	mu    sync.Mutex
	count map[[2]string]int // by Kind and Why
}

func (l *eventLog) observe(s *mcp.Server) {
	l.count = map[[2]string]int{}
	s.Observe(mcp.Observer{Event: func(e mcp.Event) {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.count[[2]string{e.Kind, e.Why}]++
	}})
}

// of returns how many there were of a kind; why "" is any.
func (l *eventLog) of(kind, why string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for what, times := range l.count {
		if what[0] == kind && (why == "" || what[1] == why) {
			n += times
		}
	}
	return n
}

// streamOf opens a stream of HTTP and tells its lines, until it ends.
func streamOf(t *testing.T, method, url string, header map[string]string, body string) (lines chan string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "application/json, text/event-stream")
	req.Header.Set("Content-Type", "application/json")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := ownHTTP(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s", method, url, res.Status)
	}
	lines = make(chan string, 100)
	go func() {
		defer close(lines)
		defer res.Body.Close()
		for scan := bufio.NewScanner(res.Body); scan.Scan(); {
			lines <- scan.Text()
		}
	}()
	return lines
}

// Drain ends streams of every kind and opens none, while calls are served.
func TestDrain(t *testing.T) {
	s := fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	g := newGate()
	s.MustAdd(g.tool("gate"))
	var events eventLog
	events.observe(s)
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", mcpws.Handler(s))
	web := httptest.NewServer(mux)
	defer web.Close()
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
	listen := expand(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},$META}}`, protocol.Latest)

	client := &httpClient{t: t, url: web.URL + "/mcp", client: web.Client(), rev: protocol.LatestLegacy, spec: specWatch{t, protocol.LatestLegacy}}
	legacyParty := &party{t, protocol.LatestLegacy, client}
	legacyParty.want(legacyParty.ask("initialize", hello(protocol.LatestLegacy.String())), `"result":`)
	all := map[string]chan string{
		"subscription": streamOf(t, "POST", web.URL+"/mcp", modern, listen),
		"GET":          streamOf(t, "GET", web.URL+"/mcp", map[string]string{"Mcp-Session-Id": client.session}, ""),
		"HTTP+SSE":     streamOf(t, "GET", web.URL+"/mcp", nil, ""),
	}
	socket, _, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	line := dial(t, listenOn(t, s, "tcp"))
	busy := join(t, transports[1], protocol.Latest, s).hear() // a call that goes on
	busy.send(`"busy"`, "tools/call", `"name":"gate"`)
	await(t, g.running, "the call")
	for wait := time.Now(); s.Stats().Streams.Now < 5 && time.Since(wait) < patience; {
		time.Sleep(time.Millisecond)
	}
	if stats := s.Stats(); stats.Draining || stats.Streams.Now != 5 || stats.Connections.Now != 3 || stats.Sessions.Now != 1 || stats.Requests.Now != 1 {
		t.Errorf("before: %+v", stats)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	drained := make(chan error, 1)
	go func() { drained <- s.Drain(ctx) }()
	for !s.Stats().Draining {
		time.Sleep(time.Millisecond)
	}
	for name, header := range map[string]map[string]string{"GET": {"Mcp-Session-Id": client.session}, "HTTP+SSE": {}} {
		res := get(t, web.URL+"/mcp", header)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("a new %s: %s, Retry-After %q", name, res.Status, res.Header.Get("Retry-After"))
		}
	}
	if status, _ := postTo(t, web.URL+"/mcp", listen, http.Header{"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}); status != http.StatusServiceUnavailable {
		t.Errorf("a new subscription: %d", status)
	}
	if _, res, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "http", "ws", 1)+"/ws", nil); err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new WebSocket: %v", err)
	}
	legacyParty.want(legacyParty.askAs("7", "tools/call", `"name":"greet","arguments":{"name":"Ada"}`), "Hello, Ada!")
	for name, lines := range all {
		retry := false
		for line := range lines {
			retry = retry || strings.HasPrefix(line, "retry: ")
		}
		if !retry {
			t.Errorf("%s: no hint when to come back", name)
		}
	}
	if _, _, err := socket.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the WebSocket ended with %v", err)
	}
	if _, err := line.Read(); err == nil {
		t.Error("the socket is open")
	}
	close(g.open)
	if got := busy.next(); !strings.Contains(got, "through") {
		t.Errorf("the call that went on: %s", got)
	}
	if err := <-drained; err != nil {
		t.Errorf("Drain: %v", err)
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Errorf("Shutdown: %v", err)
	}
	if stats := s.Stats(); stats.Streams.Now+stats.Connections.Now+stats.Sessions.Now+stats.Requests.Now != 0 || !stats.Draining {
		t.Errorf("after: %+v", stats)
	}
	if opened, ended := events.of("stream.opened", ""), events.of("stream.ended", ""); opened != 5 || ended != 5 || events.of("stream.opened", "connection") != 3 || events.of("draining", "") != 1 {
		t.Errorf("%d streams opened, %d ended: %+v", opened, ended, events.count)
	}
	if opened, ended := events.of("session.opened", ""), events.of("session.ended", "down"); opened != 1 || ended != 1 {
		t.Errorf("%d sessions opened, %d ended by the shutdown", opened, ended)
	}
}

// get makes a GET for a stream and returns the answer, without what follows.
func get(t *testing.T, url string, header map[string]string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	for name, value := range header {
		req.Header.Set(name, value)
	}
	res, err := ownHTTP(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// Connections are closed after their answers.
func TestDrainClosesConnections(t *testing.T) {
	s := fixture(t, nil)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	post := func() *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(expand(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}`, protocol.Latest)))
		req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"tools/list"}}
		res, err := web.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res
	}
	if res := post(); res.Close || res.StatusCode != http.StatusOK {
		t.Errorf("before: %s, closed: %v", res.Status, res.Close)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if res := post(); !res.Close || res.StatusCode != http.StatusOK {
		t.Errorf("after: %s, closed: %v", res.Status, res.Close)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	if err := s.Drain(ctx); err != why {
		t.Errorf("Drain with a context that was cancelled: %v", err)
	}
}

// A task that another replica may run goes there at once.
func TestDrainHandsTasksOver(t *testing.T) {
	taskReplicas(t, 2, &mcp.TaskOptions{Replay: true, Wait: -1}, func(r *taskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(time.Minute):
			return "worked", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, func(t *testing.T, all []*taskReplica) {
		one, two := all[0], all[1]
		id := one.ask("tools/call", `"name":"work"`).Result.TaskID
		time.Sleep(time.Second)
		if one.ran.Load() != 1 || one.Stats().Tasks.Now != 1 {
			t.Fatalf("%d run", one.ran.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		drained := make(chan error, 1)
		go func() { drained <- one.Drain(ctx) }()
		time.Sleep(2500 * time.Millisecond)
		if two.ran.Load() != 1 || two.Stats().Tasks.Now != 1 || one.Stats().Tasks.Now != 0 {
			t.Errorf("the other one has run it %d times; %+v", two.ran.Load(), one.Stats())
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := one.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if got := two.state(id).Result; got.Status != "completed" || one.ran.Load() != 1 || two.ran.Load() != 1 {
			t.Errorf("%+v, %d and %d runs", got, one.ran.Load(), two.ran.Load())
		}
	})
}

// Each run of a task is a message of its own, at the replica that runs it, and what
// becomes of the task is told.
func TestObserversOfReplays(t *testing.T) {
	var mu sync.Mutex
	var told [2][]string
	observers := func(i int) mcp.Observer {
		say := func(line string) {
			mu.Lock()
			defer mu.Unlock()
			told[i] = append(told[i], line)
		}
		return mcp.Observer{
			End: func(f *mcp.Frame, o mcp.Outcome) {
				if f.Request().Method == protocol.MethodToolsCall {
					method, target := f.Labels()
					say(method + " " + target + " " + o.Status + " of " + f.Principal())
				}
			},
			Event: func(e mcp.Event) {
				if strings.HasPrefix(e.Kind, "task") {
					say(strings.TrimSpace(e.Kind + " " + e.Name + " " + e.Why))
				}
			},
		}
	}
	taskReplicas(t, 2, &mcp.TaskOptions{Replay: true, Wait: -1}, func(_ *taskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(time.Minute):
			return "worked", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, func(t *testing.T, all []*taskReplica) {
		for i, r := range all {
			r.Observe(observers(i))
		}
		all[0].ask("tools/call", `"name":"work"`)
		time.Sleep(time.Second)
		if err := all[0].Drain(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		for i, want := range []string{
			"task.ended work released, task.started work, tools/call work task of ann",
			"task.ended work completed, task.started work replay, tools/call work task of ann",
		} {
			slices.Sort(told[i]) // the first two are told by two goroutines
			if got := strings.Join(told[i], ", "); got != want {
				t.Errorf("replica %d: %s, want %s", i, got, want)
			}
		}
	})
}

// The event that a task has ended has the word that its client is told, whatever its
// handler returned.
func TestEventOfEndedTask(t *testing.T) {
	for want, end := range map[string]func(r *taskReplica, id string){
		"completed": func(*taskReplica, string) {},
		"cancelled": func(r *taskReplica, id string) { r.ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id)) },
		"failed":    func(*taskReplica, string) { time.Sleep(3 * time.Minute) }, // it expires
	} {
		for _, replay := range []bool{false, true} {
			o := &mcp.TaskOptions{Wait: -1, TTL: 2 * time.Minute, Replay: replay}
			var over chan struct{}
			taskReplicas(t, 1, o, func(*taskReplica, *mcp.Frame) (string, error) {
				<-over
				return "worked", nil
			}, func(t *testing.T, all []*taskReplica) {
				over = make(chan struct{})
				var events eventLog
				events.observe(all[0].Server)
				end(all[0], all[0].ask("tools/call", `"name":"work"`).Result.TaskID)
				close(over)
				synctest.Wait()
				if events.of("task.ended", "") != 1 || events.of("task.ended", want) != 1 {
					t.Errorf("replay %v: %v, want %s", replay, events.count, want)
				}
			})
		}
	}
}

// A handler that ignores the end of its time is still there.
func TestStatsOfAbandoned(t *testing.T) {
	s := fixture(t, nil)
	release := make(chan struct{})
	s.MustAdd(mcp.Tool("deaf", func(*mcp.Frame, empty) (string, error) { <-release; return "", nil }, mcp.Timeout(time.Millisecond)))
	p := join(t, transports[1], protocol.Latest, s)
	for i, id := range []string{"1", "2", "3"} {
		p.want(p.askAs(id, "tools/call", `"name":"deaf"`), "timed out")
		if got := s.Stats().Requests.Now; got != i+1 {
			t.Errorf("%d requests, want %d", got, i+1)
		}
	}
	close(release)
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	if got := s.Stats().Requests.Now; got != 0 {
		t.Errorf("%d requests at the end", got)
	}
}
