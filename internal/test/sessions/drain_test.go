package sessions_test

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
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	mcpws "github.com/talaria-go/mcp/transport/websocket"
)

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
	res, err := harness.OwnHTTP(t).Do(req)
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
	s := harness.Fixture(t, &mcp.Options{HTTP: mcp.HTTPOptions{SSE: true}})
	g := harness.NewGate()
	s.MustAdd(g.Tool("gate"))
	var events harness.EventLog
	events.Observe(s)
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.Handle("/ws", mcpws.Handler(s))
	web := httptest.NewServer(mux)
	defer web.Close()
	modern := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "subscriptions/listen"}
	listen := harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},$META}}`, protocol.Latest)

	client := &harness.HTTPClient{T: t, URL: web.URL + "/mcp", Client: web.Client(), Rev: protocol.LatestLegacy, Spec: harness.SpecWatch{T: t, Rev: protocol.LatestLegacy}}
	legacyParty := &harness.Party{T: t, Rev: protocol.LatestLegacy, C: client}
	legacyParty.Want(legacyParty.Ask("initialize", harness.Hello(protocol.LatestLegacy.String())), `"result":`)
	all := map[string]chan string{
		"subscription": streamOf(t, "POST", web.URL+"/mcp", modern, listen),
		"GET":          streamOf(t, "GET", web.URL+"/mcp", map[string]string{"Mcp-Session-Id": client.Session}, ""),
		"HTTP+SSE":     streamOf(t, "GET", web.URL+"/mcp", nil, ""),
	}
	socket, _, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "http", "ws", 1)+"/ws", &websocket.DialOptions{Subprotocols: []string{"mcp"}})
	if err != nil {
		t.Fatal(err)
	}
	line := harness.Dial(t, harness.ListenOn(t, s, "tcp"))
	busy := harness.Join(t, harness.Transports[1], protocol.Latest, s).Hear() // a call that goes on
	busy.Send(`"busy"`, "tools/call", `"name":"gate"`)
	harness.Await(t, g.Running, "the call")
	for wait := time.Now(); s.Stats().Streams.Now < 5 && time.Since(wait) < harness.Patience; {
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
	for name, header := range map[string]map[string]string{"GET": {"Mcp-Session-Id": client.Session}, "HTTP+SSE": {}} {
		res := get(t, web.URL+"/mcp", header)
		if res.StatusCode != http.StatusServiceUnavailable || res.Header.Get("Retry-After") == "" {
			t.Errorf("a new %s: %s, Retry-After %q", name, res.Status, res.Header.Get("Retry-After"))
		}
	}
	if status, _ := harness.PostTo(t, web.URL+"/mcp", listen, http.Header{"Accept": {"application/json, text/event-stream"}, "Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {"subscriptions/listen"}}); status != http.StatusServiceUnavailable {
		t.Errorf("a new subscription: %d", status)
	}
	if _, res, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "http", "ws", 1)+"/ws", nil); err == nil || res.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a new WebSocket: %v", err)
	}
	legacyParty.Want(legacyParty.AskAs("7", "tools/call", `"name":"greet","arguments":{"name":"Ada"}`), "Hello, Ada!")
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
	close(g.Open)
	if got := busy.Next(); !strings.Contains(got, "through") {
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
	if opened, ended := events.Of("stream.opened", ""), events.Of("stream.ended", ""); opened != 5 || ended != 5 || events.Of("stream.opened", "connection") != 3 || events.Of("draining", "") != 1 {
		t.Errorf("%d streams opened, %d ended: %+v", opened, ended, events.Count)
	}
	if opened, ended := events.Of("session.opened", ""), events.Of("session.ended", "down"); opened != 1 || ended != 1 {
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
	res, err := harness.OwnHTTP(t).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res
}

// Connections are closed after their answers.
func TestDrainClosesConnections(t *testing.T) {
	s := harness.Fixture(t, nil)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	post := func() *http.Response {
		req, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, web.URL, strings.NewReader(harness.Expand(`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{$META}}`, protocol.Latest)))
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
	harness.TaskReplicas(t, 2, &mcp.TaskOptions{Replay: true, Wait: -1}, func(r *harness.TaskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(time.Minute):
			return "worked", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, func(t *testing.T, all []*harness.TaskReplica) {
		one, two := all[0], all[1]
		id := one.Ask("tools/call", `"name":"work"`).Result.TaskID
		time.Sleep(time.Second)
		if one.Ran.Load() != 1 || one.Stats().Tasks.Now != 1 {
			t.Fatalf("%d run", one.Ran.Load())
		}
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		drained := make(chan error, 1)
		go func() { drained <- one.Drain(ctx) }()
		time.Sleep(2500 * time.Millisecond)
		if two.Ran.Load() != 1 || two.Stats().Tasks.Now != 1 || one.Stats().Tasks.Now != 0 {
			t.Errorf("the other one has run it %d times; %+v", two.Ran.Load(), one.Stats())
		}
		if err := <-drained; err != nil {
			t.Error(err)
		}
		if err := one.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		time.Sleep(2 * time.Minute)
		if got := two.State(id).Result; got.Status != "completed" || one.Ran.Load() != 1 || two.Ran.Load() != 1 {
			t.Errorf("%+v, %d and %d runs", got, one.Ran.Load(), two.Ran.Load())
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
					say(strings.TrimSpace(e.Kind + " " + e.Name + " " + e.Reason))
				}
			},
		}
	}
	harness.TaskReplicas(t, 2, &mcp.TaskOptions{Replay: true, Wait: -1}, func(_ *harness.TaskReplica, f *mcp.Frame) (string, error) {
		select {
		case <-time.After(time.Minute):
			return "worked", nil
		case <-f.Done():
			return "", context.Cause(f)
		}
	}, func(t *testing.T, all []*harness.TaskReplica) {
		for i, r := range all {
			r.Observe(observers(i))
		}
		all[0].Ask("tools/call", `"name":"work"`)
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
	for want, end := range map[string]func(r *harness.TaskReplica, id string){
		"completed": func(*harness.TaskReplica, string) {},
		"cancelled": func(r *harness.TaskReplica, id string) { r.Ask("tasks/cancel", fmt.Sprintf(`"taskId":%q`, id)) },
		"failed":    func(*harness.TaskReplica, string) { time.Sleep(3 * time.Minute) }, // it expires
	} {
		for _, replay := range []bool{false, true} {
			o := &mcp.TaskOptions{Wait: -1, TTL: 2 * time.Minute, Replay: replay}
			var over chan struct{}
			harness.TaskReplicas(t, 1, o, func(*harness.TaskReplica, *mcp.Frame) (string, error) {
				<-over
				return "worked", nil
			}, func(t *testing.T, all []*harness.TaskReplica) {
				over = make(chan struct{})
				var events harness.EventLog
				events.Observe(all[0].Server)
				end(all[0], all[0].Ask("tools/call", `"name":"work"`).Result.TaskID)
				close(over)
				synctest.Wait()
				if events.Of("task.ended", "") != 1 || events.Of("task.ended", want) != 1 {
					t.Errorf("replay %v: %v, want %s", replay, events.Count, want)
				}
			})
		}
	}
}

// A handler that ignores the end of its time is still there.
func TestStatsOfAbandoned(t *testing.T) {
	s := harness.Fixture(t, nil)
	release := make(chan struct{})
	s.MustAdd(mcp.Tool("deaf", func(*mcp.Frame, struct{}) (string, error) { <-release; return "", nil }, mcp.Timeout(time.Millisecond)))
	p := harness.Join(t, harness.Transports[1], protocol.Latest, s)
	for i, id := range []string{"1", "2", "3"} {
		p.Want(p.AskAs(id, "tools/call", `"name":"deaf"`), "timed out")
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
