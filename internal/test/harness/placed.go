package harness

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
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Placed is a client each of whose steps goes to the replica that was chosen for it.
type Placed struct {
	*testing.T
	rev     protocol.Revision
	Servers []*mcp.Server
	Next    []int // the replicas of the steps that are left
	Last    int   // the replica of the step before
	Session string
	Ids     int
	ended   chan error // how calls of the tool wait have ended
}

// NewPlaced starts replicas that share a store.
func NewPlaced(t *testing.T, rev protocol.Revision, store scale.Store, placement []int) *Placed {
	p := &Placed{T: t, rev: rev, Next: placement, ended: make(chan error, 1)}
	for range 4 {
		s := Fixture(t, &mcp.Options{Store: store, StateKeys: SharedKeys})
		s.MustAdd(
			mcp.Tool("visit", func(f *mcp.Frame, _ struct{}) (string, error) {
				return fmt.Sprintf("visit %d", Visits.Update(f, func(n int) int { return n + 1 })), nil
			}),
			mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				roots, err := frame.Roots(f, "roots")
				return fmt.Sprintf("%d roots", len(roots)), err
			}),
			mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
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
			mcp.Tool("log_info", func(f *mcp.Frame, _ struct{}) (string, error) {
				return "logged", f.Log(protocol.LevelInfo, "an info")
			}),
			mcp.Tool("confirm", func(f *mcp.Frame, _ struct{}) (string, error) {
				sure, err := mcp.Elicit[YesForm](f, "sure", "Sure?")
				return fmt.Sprintf("sure: %t", sure.Value.Yes), err
			}, mcp.AsTask(&mcp.TaskOptions{Wait: -1})),
			mcp.Tool("choose", func(f *mcp.Frame, _ struct{}) (string, error) {
				yes, err := mcp.Elicit[YesForm](f, "yes", "Yes?")
				return fmt.Sprintf("chosen: %t", yes.Value.Yes), err
			}),
		)
		p.Servers = append(p.Servers, s)
	}
	return p
}

// placedAnswer is an answer on its way.
type placedAnswer struct {
	p     *Placed
	Leave func() // breaks the connection
	res   *http.Response
	lines *bufio.Reader
}

// server returns the replica of the next step.
func (p *Placed) Server() *mcp.Server {
	p.Last, p.Next = p.Next[0], p.Next[1:]
	return p.Servers[p.Last]
}

// send sends a request to the replica of the next step.
func (p *Placed) Send(method, body string, header http.Header) *placedAnswer {
	p.Helper()
	at := p.Server()
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
	if p.Session != "" {
		req.Header.Set("Mcp-Session-Id", p.Session)
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
func (p *Placed) Request(method, params string) *placedAnswer {
	p.Helper()
	p.Ids++
	header := http.Header{}
	if p.rev.Modern() {
		params = strings.TrimPrefix(params+`,"_meta":{"io.modelcontextprotocol/protocolVersion":"`+p.rev.String()+
			`","io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`, ",")
		header.Set("Mcp-Method", method)
		if name := regexp.MustCompile(`^"(?:name|taskId)":"([^"]*)"`).FindStringSubmatch(params); name != nil {
			header.Set("Mcp-Name", name[1])
		}
	}
	return p.Send(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s}}`, p.Ids, method, params), header)
}

// say sends a notification or an answer, which has to be accepted.
func (p *Placed) Say(message string) {
	p.Helper()
	p.Send(http.MethodPost, `{"jsonrpc":"2.0",`+message+`}`, nil).Ends(http.StatusAccepted, "")
}

// initialize opens a session, in one step.
func (p *Placed) Initialize() {
	p.Helper()
	opened := p.Request("initialize", `"protocolVersion":"`+p.rev.String()+`","capabilities":{"roots":{},"elicitation":{}},"clientInfo":{"name":"c","version":"1"}`)
	p.Session = opened.res.Header.Get("Mcp-Session-Id")
	opened.Ends(http.StatusOK, `"result"`)
	p.Next = append([]int{p.Last}, p.Next...)
	p.Say(`"method":"notifications/initialized"`)
}

func (p *Placed) Call(tool string) *placedAnswer {
	p.Helper()
	return p.Request("tools/call", `"name":"`+tool+`"`)
}

// hasEnded waits until a call of the tool wait has ended.
func (p *Placed) HasEnded() {
	p.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Minute):
		p.Fatal("the call goes on")
	}
}

// ends wants a part in what is left of an answer, and returns that.
func (s *placedAnswer) Ends(status int, part string) string {
	s.p.Helper()
	text, err := io.ReadAll(s.lines)
	if s.res.StatusCode != status || err != nil || !strings.Contains(string(text), part) {
		s.p.Fatalf("got %d %s, %v, want %d %s", s.res.StatusCode, text, err, status, part)
	}
	return string(text)
}

// has reads a stream up to a line that matches, and returns the groups.
func (s *placedAnswer) Has(pattern string) []string {
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
