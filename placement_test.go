package mcp_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// placed is a client each of whose steps goes to the replica that was chosen for it.
type placed struct {
	*testing.T
	rev     protocol.Revision
	servers []*mcp.Server
	next    []int // the replicas of the steps that are left
	last    int   // the replica of the step before
	session string
	ids     int
	ended   chan error // how calls of the tool wait have ended
}

// newPlaced starts replicas that share a store.
func newPlaced(t *testing.T, rev protocol.Revision, store scale.Store, placement []int) *placed {
	p := &placed{T: t, rev: rev, next: placement, ended: make(chan error, 1)}
	for range 4 {
		s := fixture(t, &mcp.Options{Store: store, StateKeys: sharedKeys})
		s.MustAdd(
			mcp.Tool("visit", func(f *mcp.Frame, _ empty) (string, error) {
				return fmt.Sprintf("visit %d", visits.Update(f, func(n int) int { return n + 1 })), nil
			}),
			mcp.Tool("ask", func(f *mcp.Frame, _ empty) (string, error) {
				roots, err := frame.Roots(f, "roots")
				return fmt.Sprintf("%d roots", len(roots)), err
			}),
			mcp.Tool("wait", func(f *mcp.Frame, _ empty) (string, error) {
				if err := f.Log(protocol.LevelInfo, "begun"); err != nil {
					return "", err
				}
				select {
				case <-f.Done():
					p.ended <- context.Cause(f)
				case <-p.Context().Done(): // the test has failed
				}
				return "", f.Err()
			}),
			mcp.Tool("log_info", func(f *mcp.Frame, _ empty) (string, error) {
				return "logged", f.Log(protocol.LevelInfo, "an info")
			}),
			mcp.Tool("confirm", func(f *mcp.Frame, _ empty) (string, error) {
				sure, err := mcp.Elicit[yesForm](f, "sure", "Sure?")
				return fmt.Sprintf("sure: %t", sure.Value.Yes), err
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
			mcp.Tool("choose", func(f *mcp.Frame, _ empty) (string, error) {
				yes, err := mcp.Elicit[yesForm](f, "yes", "Yes?")
				return fmt.Sprintf("chosen: %t", yes.Value.Yes), err
			}),
		)
		p.servers = append(p.servers, s)
	}
	return p
}

// placedAnswer is an answer on its way.
type placedAnswer struct {
	p     *placed
	leave func() // breaks the connection
	res   *http.Response
	lines *bufio.Reader
}

// server returns the replica of the next step.
func (p *placed) server() *mcp.Server {
	p.last, p.next = p.next[0], p.next[1:]
	return p.servers[p.last]
}

// send sends a request to the replica of the next step.
func (p *placed) send(method, body string, header http.Header) *placedAnswer {
	p.Helper()
	at := p.server()
	ctx, cancel := context.WithTimeout(p.Context(), time.Minute)
	p.Cleanup(cancel)
	req := httptest.NewRequestWithContext(ctx, method, "/", strings.NewReader(body))
	if req.Header = header; header == nil {
		req.Header = http.Header{}
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if method == http.MethodGet {
		req.Header.Set("Accept", "text/event-stream")
	}
	if p.session != "" {
		req.Header.Set("Mcp-Session-Id", p.session)
	}
	if p.rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("Mcp-Protocol-Version", p.rev.String())
	}
	res, err := (inProcess{at.Handler()}).RoundTrip(req)
	if err != nil {
		p.Fatal(err)
	}
	return &placedAnswer{p, cancel, res, bufio.NewReader(res.Body)}
}

// request sends a JSON-RPC request, whose members "_meta" and headers are those
// that the revision demands.
func (p *placed) request(method, params string) *placedAnswer {
	p.Helper()
	p.ids++
	header := http.Header{}
	if p.rev.Modern() {
		params = strings.TrimPrefix(params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+p.rev.String()+
			`","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, ",")
		header.Set("Mcp-Method", method)
		if name := regexp.MustCompile(`^"(?:name|taskId)":"([^"]*)"`).FindStringSubmatch(params); name != nil {
			header.Set("Mcp-Name", name[1])
		}
	}
	return p.send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, p.ids, method, params), header)
}

// say sends a notification or an answer, which has to be accepted.
func (p *placed) say(message string) {
	p.Helper()
	p.send(http.MethodPost, `{"jsonrpc":"2.0",`+message+`}`, nil).ends(http.StatusAccepted, "")
}

// initialize opens a session, in one step.
func (p *placed) initialize() {
	p.Helper()
	opened := p.request("initialize", `"protocolVersion":"`+p.rev.String()+`","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`)
	p.session = opened.res.Header.Get("Mcp-Session-Id")
	opened.ends(http.StatusOK, `"result"`)
	p.next = append([]int{p.last}, p.next...)
	p.say(`"method":"notifications/initialized"`)
}

func (p *placed) call(tool string) *placedAnswer {
	p.Helper()
	return p.request("tools/call", `"name":"`+tool+`"`)
}

// hasEnded waits until a call of the tool wait has ended.
func (p *placed) hasEnded() {
	p.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.Fatal("the call goes on")
	}
}

// ends wants a part in what is left of an answer, and returns that.
func (s *placedAnswer) ends(status int, part string) string {
	s.p.Helper()
	text, err := io.ReadAll(s.lines)
	if s.res.StatusCode != status || err != nil || !strings.Contains(string(text), part) {
		s.p.Fatalf("got %d %s, %v, want %d %s", s.res.StatusCode, text, err, status, part)
	}
	return string(text)
}

// has reads a stream up to a line that matches, and returns the groups.
func (s *placedAnswer) has(pattern string) []string {
	s.p.Helper()
	for read := ""; ; {
		line, err := s.lines.ReadString('\n')
		if found := regexp.MustCompile(pattern).FindStringSubmatch(line); found != nil {
			return found
		}
		if read += line; err != nil {
			s.p.Fatalf("%d %s, %v, want %s", s.res.StatusCode, read, err, pattern)
		}
	}
}

// inProcess serves requests without a network, so that time can be faked.
type inProcess struct{ http.Handler }

func (h inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	body, out := io.Pipe()
	w := &pipeWriter{header: http.Header{}, out: out, status: make(chan int, 1)}
	go func() {
		h.ServeHTTP(w, r)
		w.Flush()
		_ = out.Close()
	}()
	context.AfterFunc(r.Context(), func() { _ = body.CloseWithError(r.Context().Err()) })
	select {
	case status := <-w.status:
		return &http.Response{StatusCode: status, Header: w.sent, Body: body, Request: r}, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// pipeWriter is an http.ResponseWriter whose client reads from a pipe.
type pipeWriter struct {
	header, sent http.Header
	out          *io.PipeWriter
	status       chan int
}

func (w *pipeWriter) Header() http.Header { return w.header }

func (w *pipeWriter) WriteHeader(status int) {
	if w.sent == nil {
		w.sent = w.header.Clone()
		w.status <- status
	}
}

func (w *pipeWriter) Write(b []byte) (int, error) {
	w.Flush()
	return w.out.Write(b)
}

func (w *pipeWriter) Flush() { w.WriteHeader(http.StatusOK) }

func hasSessions(rev protocol.Revision) bool { return !rev.Modern() }

// scenario is what a client does in some steps, of which any may reach any replica.
type scenario struct {
	name  string
	in    func(rev protocol.Revision) bool
	steps int
	run   func(p *placed)
}

// scenarios are all of them.
var scenarios = []scenario{
	{"state", hasSessions, 4, func(p *placed) {
		p.initialize()
		p.call("visit").ends(http.StatusOK, "visit 1")
		p.call("visit").ends(http.StatusOK, "visit 2")
		p.call("visit").ends(http.StatusOK, "visit 3")
	}},
	{"answer", hasSessions, 3, func(p *placed) {
		p.initialize()
		call := p.call("ask")
		id := call.has(`"id":("[^"]+"),"method":"roots/list"`)[1]
		p.say(`"id":` + id + `,"result":{"roots":[{"uri":"file:///a"}]}`)
		call.ends(http.StatusOK, "1 roots")
	}},
	{"cancel", hasSessions, 3, func(p *placed) {
		p.initialize()
		p.call("wait").has("begun")
		p.say(fmt.Sprintf(`"method":"notifications/cancelled","params":{"requestId":%d}`, p.ids))
		p.hasEnded()
	}},
	{"delete", hasSessions, 4, func(p *placed) {
		p.initialize()
		p.call("wait").has("begun")
		p.send(http.MethodDelete, "", nil).ends(http.StatusNoContent, "")
		p.hasEnded()
		p.request("ping", "").ends(http.StatusNotFound, "Session not found")
	}},
	{"level", hasSessions, 4, func(p *placed) {
		p.initialize()
		p.call("log_info").ends(http.StatusOK, "an info")
		p.request("logging/setLevel", `"level":"error"`).ends(http.StatusOK, `"result"`)
		if text := p.call("log_info").ends(http.StatusOK, "logged"); strings.Contains(text, "an info") {
			p.Errorf("below the level: %s", text)
		}
	}},
	{"resource", hasSessions, 4, func(p *placed) {
		p.initialize()
		p.request("resources/subscribe", `"uri":"config://app"`).ends(http.StatusOK, `"result"`)
		listening := p.send(http.MethodGet, "", nil)
		p.server().ResourceUpdated("config://app")
		listening.has("resources/updated")
	}},
	{"list", hasSessions, 3, func(p *placed) {
		p.initialize()
		listening := p.send(http.MethodGet, "", nil)
		p.request("ping", "").ends(http.StatusOK, `"result"`) // the replica begins to serve, if it has not yet
		p.servers[p.last].Remove(mcp.KindTool, "choose")
		listening.has("tools/list_changed")
	}},
	{"message", hasSessions, 3, func(p *placed) {
		p.initialize()
		listening := p.send(http.MethodGet, "", nil)
		if err := p.server().Notify(p.session, "notifications/message", map[string]any{"level": "info", "data": "a notice"}); err != nil {
			p.Error(err)
		}
		listening.has("a notice")
	}},
	{"stream taken over", hasSessions, 4, func(p *placed) {
		p.initialize()
		p.send(http.MethodGet, "", nil)
		listening := p.send(http.MethodGet, "", nil)
		if err := p.server().Notify(p.session, "notifications/message", map[string]any{"level": "info", "data": "a notice"}); err != nil {
			p.Error(err)
		}
		listening.has("a notice")
	}},
	{"resumption", func(rev protocol.Revision) bool { return rev.Has(protocol.FeatureResumableStreams) }, 4, func(p *placed) {
		p.initialize()
		call := p.call("ask")
		event := call.has(`^id: (.*)\n`)[1]
		id := call.has(`"id":("[^"]+"),"method":"roots/list"`)[1]
		call.leave()
		p.say(`"id":` + id + `,"result":{"roots":[{"uri":"file:///a"}]}`)
		p.send(http.MethodGet, "", http.Header{"Last-Event-Id": {event}}).has("1 roots")
	}},
	{"question", protocol.Revision.Modern, 2, func(p *placed) {
		state := p.call("choose").has(`"requestState":"([^"]*)"`)[1]
		p.request("tools/call", `"name":"choose","requestState":"`+state+`","inputResponses":{"yes":{"action":"accept","content":{"yes":true}}}`).ends(http.StatusOK, "chosen: true")
	}},
	{"task", protocol.Revision.Modern, 4, func(p *placed) {
		task := `"taskId":"` + p.call("confirm").has(`"taskId":"([^"]*)"`)[1] + `"`
		synctest.Wait()
		p.request("tasks/get", task).ends(http.StatusOK, `"input_required"`)
		p.request("tasks/update", task+`,"inputResponses":{"sure":{"action":"accept","content":{"yes":true}}}`).ends(http.StatusOK, `"complete"`)
		synctest.Wait()
		p.request("tasks/get", task).ends(http.StatusOK, "sure: true")
	}},
	{"cancelled task", protocol.Revision.Modern, 3, func(p *placed) {
		task := `"taskId":"` + p.call("confirm").has(`"taskId":"([^"]*)"`)[1] + `"`
		p.request("tasks/cancel", task).ends(http.StatusOK, `"complete"`)
		p.request("tasks/get", task).ends(http.StatusOK, `"cancelled"`)
	}},
}

// Wherever the steps of a client go, it meets one server.
func TestPlacements(t *testing.T) {
	for _, scenario := range scenarios {
		runPlaced(t, scenario, func() scale.Store { return scale.NewLocal() }, time.Second)
	}
}

// deafStore is a Store whose hints are lost.
type deafStore struct{ scale.Store }

func (s deafStore) Watch(func(string, scale.Message), func()) scale.Watcher {
	return s.Store.Watch(func(string, scale.Message) {}, func() {})
}

// Answers and cancellations whose hints are lost reach the replica of their call all
// the same.
func TestPlacementsWithoutHints(t *testing.T) {
	for _, scenario := range scenarios {
		if scenario.name == "answer" || scenario.name == "cancel" {
			runPlaced(t, scenario, func() scale.Store { return deafStore{scale.NewLocal()} }, 5500*time.Millisecond)
		}
	}
}

// runPlaced runs a scenario at all placements in all its revisions, each of which may
// take so long.
func runPlaced(t *testing.T, s scenario, store func() scale.Store, most time.Duration) {
	for _, rev := range testdep.Revisions() {
		if !s.in(rev) {
			continue
		}
		for _, placement := range placements(s.steps) {
			t.Run(fmt.Sprintf("%s/%s/%v", s.name, rev, placement), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					p := newPlaced(t, rev, store(), placement)
					s.run(p)
					if len(p.next) > 0 {
						t.Errorf("%d steps are left", len(p.next))
					}
					if took := time.Since(began); took > most {
						t.Errorf("it took %v: a message was lost, or looked for too late", took)
					}
				})
			})
		}
	}
}

// placements returns all ways to place steps on replicas, of which those that
// differ by the names of the replicas alone are one.
func placements(steps int) [][]int {
	all := [][]int{{}}
	for range steps {
		var longer [][]int
		for _, placement := range all {
			used := 0
			for _, replica := range placement {
				used = max(used, replica+1)
			}
			for replica := range min(used+1, 4) {
				longer = append(longer, append(placement[:len(placement):len(placement)], replica))
			}
		}
		all = longer
	}
	return all
}
