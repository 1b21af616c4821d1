package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// resumeServer has a tool that tells its progress when it is let, and one that
// closes its stream.
func resumeServer(t *testing.T, opts mcp.HTTPOptions) (url string, let chan struct{}) {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "resume", Version: "1"}, &mcp.Options{Logger: &quiet, HTTP: opts})
	let = make(chan struct{})
	s.MustAdd(
		mcp.Tool("steps", func(f *mcp.Frame, _ empty) (string, error) {
			for i := 1; i <= 4; i++ {
				<-let
				if err := f.Progress(float64(i), 4); err != nil {
					return "", err
				}
			}
			<-let
			return "all done", nil
		}),
		mcp.Tool("poll", func(f *mcp.Frame, _ empty) (string, error) {
			closed := f.CloseStream()
			if again := f.CloseStream(); again {
				return "", errors.New("CloseStream worked twice for one connection")
			}
			if closed {
				<-let
			}
			return fmt.Sprint("closed ", closed), f.Log(protocol.LevelWarning, "after")
		}),
	)
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL, let
}

// eventStream reads events as "id data retry".
type eventStream struct {
	t   *testing.T
	res *http.Response
}

func (e eventStream) next() string {
	e.t.Helper()
	var event strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(event.String(), "\n\n") {
		if _, err := io.ReadFull(e.res.Body, one); err != nil {
			return err.Error()
		}
		if event.Write(one); event.String() == ":\n\n" {
			event.Reset() // a comment
		}
	}
	return strings.TrimSuffix(strings.ReplaceAll(event.String(), "\n", "|"), "||")
}

func (e eventStream) want(events ...string) {
	e.t.Helper()
	for _, want := range events {
		if got := e.next(); !strings.HasPrefix(got, strings.Split(want, "…")[0]) || strings.Contains(want, "…") && !strings.Contains(got, strings.Split(want, "…")[1]) {
			e.t.Errorf("event %q, want %q", got, want)
		}
	}
}

func fetch(t *testing.T, ctx context.Context, method, url, body string, headers ...string) eventStream {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return eventStream{t, res}
}

func openOver(t *testing.T, url string, rev protocol.Revision) string {
	t.Helper()
	opened := fetch(t, t.Context(), "POST", url, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, rev))
	return opened.res.Header.Get("Mcp-Session-Id")
}

const callSteps = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"p"}}}`

// A client that loses its connection in the middle of a call comes back for
// the rest, which has not stopped; the events have ids in the revisions that
// know them, and an empty one first where the client expects that.
func TestResume(t *testing.T) {
	for _, rev := range legacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			url, let := resumeServer(t, mcp.HTTPOptions{})
			id := openOver(t, url, rev)
			ctx, drop := context.WithCancel(t.Context())
			go func() { let <- struct{}{} }()
			first := fetch(t, ctx, "POST", url, callSteps, "Mcp-Session-Id", id)
			at := 1
			if rev.Has(protocol.FeaturePrimedStreams) {
				first.want("id: 1-1|data: ")
				at++
			}
			event := func(n int) string {
				return fmt.Sprintf("id: 1-%d|event: message|data: …\"progress\":%d", at+n-1, n)
			}
			first.want(event(1))
			drop()
			let <- struct{}{}
			let <- struct{}{}
			again := fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", fmt.Sprint("1-", at))
			again.want(event(2), event(3))
			let <- struct{}{}
			again.want(event(4))
			let <- struct{}{}
			answer := fmt.Sprintf("id: 1-%d|event: message|data: …all done", at+4)
			again.want(answer, io.EOF.Error())
			late := fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", fmt.Sprint("1-", at+3))
			late.want(answer, io.EOF.Error())
			if bad := fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", "9-1"); bad.res.StatusCode != 400 {
				t.Errorf("an unknown stream: %s", bad.res.Status)
			}
			other := openOver(t, url, rev)
			if bad := fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", other, "Last-Event-ID", "1-1"); bad.res.StatusCode != 400 {
				t.Errorf("the stream of another session: %s", bad.res.Status)
			}
		})
	}
}

// Revisions that cannot come back, and requests without sessions, have no ids.
func TestNoEventIDs(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20260728} {
		url, let := resumeServer(t, mcp.HTTPOptions{Polling: true})
		close(let)
		body, headers := callSteps, []string{"Mcp-Session-Id", ""}
		if rev.Modern() {
			body = expand(strings.Replace(callSteps, `"_meta":{`, `$META+,`, 1), rev)
			body = strings.Replace(body, `}}}`, `}}}`, 1)
			headers = []string{"Mcp-Protocol-Version", rev.String(), "Mcp-Method", "tools/call", "Mcp-Name", "steps"}
		} else {
			headers[1] = openOver(t, url, rev)
		}
		got := fetch(t, t.Context(), "POST", url, body, headers...)
		got.want(`event: message|data: …"progress":1`)
	}
}

// CloseStream ends the connection where the client knows to come back; the
// answer waits for it.
func TestCloseStream(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"poll"}}`
	for _, polling := range []bool{true, false} {
		for _, rev := range legacyRevisions {
			url, let := resumeServer(t, mcp.HTTPOptions{Polling: polling}.WithRetry(40*time.Millisecond))
			id := openOver(t, url, rev)
			got := fetch(t, t.Context(), "POST", url, call, "Mcp-Session-Id", id)
			if !polling || rev != protocol.V20251125 {
				if text, err := io.ReadAll(got.res.Body); err != nil || !strings.Contains(string(text), "closed false") {
					t.Errorf("%v, polling %v: %s, %v", rev, polling, text, err)
				}
				continue
			}
			got.want("id: 1-1|data: ", "retry: 40", io.EOF.Error())
			let <- struct{}{}
			again := fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", "1-1")
			again.want("id: 1-2|event: message|data: …after", "id: 1-3|event: message|data: …closed true", io.EOF.Error())
		}
	}
}

// The stream of a session goes on where it broke, too.
func TestResumeUnasked(t *testing.T) {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "n", Version: "1"}, &mcp.Options{Logger: &quiet})
	tool := func(name string) mcp.Component {
		return mcp.Tool(name, func(*mcp.Frame, empty) (string, error) { return "", nil })
	}
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	id := openOver(t, web.URL, protocol.V20250618)
	ctx, drop := context.WithCancel(t.Context())
	first := fetch(t, ctx, "GET", web.URL, "", "Mcp-Session-Id", id)
	s.MustAdd(tool("a"))
	first.want("id: 0-1|event: message|data: …tools/list_changed")
	s.MustAdd(tool("b"))
	first.want("id: 0-2|event: message|data: …tools/list_changed")
	drop()
	again := fetch(t, t.Context(), "GET", web.URL, "", "Mcp-Session-Id", id, "Last-Event-ID", "0-1")
	again.want("id: 0-2|event: message|data: …tools/list_changed")
	s.MustAdd(tool("c"))
	again.want("id: 0-3|event: message|data: …tools/list_changed")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	again.want(io.EOF.Error())
}

// A client may have several streams of its session open. The newest gets each
// message, and no other; the others stay open, so that a client which opens a
// stream again whenever one ends need not, and are heard when those after them
// have ended. A client that comes back for one gets what it missed on that one.
func TestStreamsOfOneSession(t *testing.T) {
	for _, rev := range legacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			s := fixture(t, nil)
			web := httptest.NewServer(s.Handler())
			defer web.Close()
			id := openOver(t, web.URL, rev)
			for n := range 10 {
				fetch(t, t.Context(), "POST", web.URL, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"r:%[1]d"}}`, n), "Mcp-Session-Id", id)
			}
			listen := func(headers ...string) (stream eventStream, leave func()) {
				ctx, leave := context.WithCancel(t.Context())
				return fetch(t, ctx, "GET", web.URL, "", append(headers, "Mcp-Session-Id", id)...), leave
			}
			update := func(n int) { s.ResourceUpdated(fmt.Sprint("r:", n)) }
			event := func(id string, n int) string {
				return fmt.Sprintf(`id: %s|event: message|data: …"r:%d"`, id, n)
			}
			ids := []string{"0-1", "01-2", "01-3"}
			first, leaveFirst := listen()
			if rev.Has(protocol.FeaturePrimedStreams) {
				ids = []string{"0-2", "01-4", "01-5"}
				first.want("id: 0-1|data: ")
			}
			update(1)
			first.want(event(ids[0], 1))
			second, leaveSecond := listen()
			if rev.Has(protocol.FeaturePrimedStreams) {
				second.want("id: 01-3|data: ")
			}
			update(2)
			update(3)
			second.want(event(ids[1], 2), event(ids[2], 3))
			leaveSecond()
			heard := make(chan string)
			go func() { heard <- first.next() }()
			got := ""
			for got == "" { // until the server knows that the second has gone
				update(4)
				select {
				case got = <-heard:
				case <-time.After(5 * time.Millisecond):
				}
			}
			// Nothing of what the second has got is between this and the first event.
			if !strings.HasPrefix(got, "id: 0-") || !strings.Contains(got, `"r:4"`) {
				t.Fatalf("the first stream went on with %q", got)
			}
			leaveFirst()
			again, leave := listen("Last-Event-ID", ids[1])
			defer leave()
			again.want(event(ids[2], 3))
			update(5)
			for next := again.next(); !strings.Contains(next, `"r:5"`); next = again.next() {
				if !strings.HasPrefix(next, "id: 01-") || !strings.Contains(next, `"r:4"`) {
					t.Fatalf("heard %q", next)
				}
			}
			for range 8 {
				_, leave := listen()
				defer leave()
			}
			again.want(io.EOF.Error())
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
