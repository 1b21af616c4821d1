package http_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// resumeServer has a tool that tells its progress when it is let, and one that
// closes its stream.
func resumeServer(t *testing.T, opts mcp.HTTPOptions) (url string, let chan struct{}) {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "resume", Version: "1"}, &mcp.Options{Logger: &quiet, HTTP: opts})
	let = make(chan struct{})
	s.MustAdd(
		mcp.Tool("steps", func(f *mcp.Frame, _ struct{}) (string, error) {
			for i := 1; i <= 4; i++ {
				<-let
				if err := f.Progress(float64(i), 4); err != nil {
					return "", err
				}
			}
			<-let
			return "all done", nil
		}),
		mcp.Tool("poll", func(f *mcp.Frame, _ struct{}) (string, error) {
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
	web := httptest.NewServer(s.Handler().(*streamable.Handler).With(func(o *streamable.Options) { o.Retry = 40 * time.Millisecond }))
	t.Cleanup(func() {
		if err := s.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		web.Close()
	})
	return web.URL, let
}

func openOver(t *testing.T, url string, rev protocol.Revision) string {
	t.Helper()
	opened := harness.Fetch(t, t.Context(), "POST", url, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`, rev))
	return opened.Res.Header.Get("Mcp-Session-Id")
}

// A client that loses its connection in the middle of a call comes back for
// the rest, which has not stopped; the events have ids in the revisions that
// know them, and an empty one first where the client expects that.
func TestResume(t *testing.T) {
	for _, rev := range harness.LegacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			url, let := resumeServer(t, mcp.HTTPOptions{})
			id := openOver(t, url, rev)
			ctx, drop := context.WithCancel(t.Context())
			go func() { let <- struct{}{} }()
			first := harness.Fetch(t, ctx, "POST", url, harness.CallSteps, "Mcp-Session-Id", id)
			at := 1
			if rev.Has(protocol.FeaturePrimedStreams) {
				first.Want("id: 1-1|data: ")
				at++
			}
			event := func(n int) string {
				return fmt.Sprintf("id: 1-%d|event: message|data: …\"progress\":%d", at+n-1, n)
			}
			first.Want(event(1))
			drop()
			let <- struct{}{}
			let <- struct{}{}
			again := harness.Fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", fmt.Sprint("1-", at))
			again.Want(event(2), event(3))
			let <- struct{}{}
			again.Want(event(4))
			let <- struct{}{}
			answer := fmt.Sprintf("id: 1-%d|event: message|data: …all done", at+4)
			again.Want(answer, io.EOF.Error())
			late := harness.Fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", fmt.Sprint("1-", at+3))
			late.Want(answer, io.EOF.Error())
			if bad := harness.Fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", "9-1"); bad.Res.StatusCode != 400 {
				t.Errorf("an unknown stream: %s", bad.Res.Status)
			}
			other := openOver(t, url, rev)
			if bad := harness.Fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", other, "Last-Event-ID", "1-1"); bad.Res.StatusCode != 400 {
				t.Errorf("the stream of another session: %s", bad.Res.Status)
			}
		})
	}
}

// Revisions that cannot come back, and requests without sessions, have no ids.
func TestNoEventIDs(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20241105, protocol.V20260728} {
		url, let := resumeServer(t, mcp.HTTPOptions{Polling: true})
		close(let)
		body, headers := harness.CallSteps, []string{"Mcp-Session-Id", ""}
		if rev.Modern() {
			body = harness.Expand(strings.Replace(harness.CallSteps, `"_meta":{`, `$META+,`, 1), rev)
			body = strings.Replace(body, `}}}`, `}}}`, 1)
			headers = []string{"Mcp-Protocol-Version", rev.String(), "Mcp-Method", "tools/call", "Mcp-Name", "steps"}
		} else {
			headers[1] = openOver(t, url, rev)
		}
		got := harness.Fetch(t, t.Context(), "POST", url, body, headers...)
		got.Want(`event: message|data: …"progress":1`)
	}
}

// CloseStream ends the connection where the client knows to come back; the
// answer waits for it.
func TestCloseStream(t *testing.T) {
	const call = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"poll"}}`
	for _, polling := range []bool{true, false} {
		for _, rev := range harness.LegacyRevisions {
			url, let := resumeServer(t, mcp.HTTPOptions{Polling: polling})
			id := openOver(t, url, rev)
			got := harness.Fetch(t, t.Context(), "POST", url, call, "Mcp-Session-Id", id)
			if !polling || rev != protocol.V20251125 {
				if text, err := io.ReadAll(got.Res.Body); err != nil || !strings.Contains(string(text), "closed false") {
					t.Errorf("%v, polling %v: %s, %v", rev, polling, text, err)
				}
				continue
			}
			got.Want("id: 1-1|data: ", "retry: 40", io.EOF.Error())
			let <- struct{}{}
			again := harness.Fetch(t, t.Context(), "GET", url, "", "Mcp-Session-Id", id, "Last-Event-ID", "1-1")
			again.Want("id: 1-2|event: message|data: …after", "id: 1-3|event: message|data: …closed true", io.EOF.Error())
		}
	}
}

// The stream of a session goes on where it broke, too.
func TestResumeUnasked(t *testing.T) {
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "n", Version: "1"}, &mcp.Options{Logger: &quiet})
	tool := func(name string) mcp.Component {
		return mcp.Tool(name, func(*mcp.Frame, struct{}) (string, error) { return "", nil })
	}
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	id := openOver(t, web.URL, protocol.V20250618)
	ctx, drop := context.WithCancel(t.Context())
	first := harness.Fetch(t, ctx, "GET", web.URL, "", "Mcp-Session-Id", id)
	s.MustAdd(tool("a"))
	first.Want("id: 0-1|event: message|data: …tools/list_changed")
	s.MustAdd(tool("b"))
	first.Want("id: 0-2|event: message|data: …tools/list_changed")
	drop()
	again := harness.Fetch(t, t.Context(), "GET", web.URL, "", "Mcp-Session-Id", id, "Last-Event-ID", "0-1")
	again.Want("id: 0-2|event: message|data: …tools/list_changed")
	s.MustAdd(tool("c"))
	again.Want("id: 0-3|event: message|data: …tools/list_changed")
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
	again.Want(io.EOF.Error())
}

// A client may have several streams of its session open. The newest gets each
// message, and no other; the others stay open, so that a client which opens a
// stream again whenever one ends need not, and are heard when those after them
// have ended. A client that comes back for one gets what it missed on that one.
func TestStreamsOfOneSession(t *testing.T) {
	for _, rev := range harness.LegacyRevisions[1:] {
		t.Run(rev.String(), func(t *testing.T) {
			s := harness.Fixture(t, nil)
			web := httptest.NewServer(s.Handler())
			defer web.Close()
			id := openOver(t, web.URL, rev)
			for n := range 10 {
				harness.Fetch(t, t.Context(), "POST", web.URL, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"resources/subscribe","params":{"uri":"r:%[1]d"}}`, n), "Mcp-Session-Id", id)
			}
			listen := func(headers ...string) (stream harness.EventStream, leave func()) {
				ctx, leave := context.WithCancel(t.Context())
				return harness.Fetch(t, ctx, "GET", web.URL, "", append(headers, "Mcp-Session-Id", id)...), leave
			}
			update := func(n int) { s.ResourceUpdated(fmt.Sprint("r:", n)) }
			event := func(id string, n int) string {
				return fmt.Sprintf(`id: %s|event: message|data: …"r:%d"`, id, n)
			}
			ids := []string{"0-1", "01-2", "01-3"}
			first, leaveFirst := listen()
			if rev.Has(protocol.FeaturePrimedStreams) {
				ids = []string{"0-2", "01-4", "01-5"}
				first.Want("id: 0-1|data: ")
			}
			update(1)
			first.Want(event(ids[0], 1))
			second, leaveSecond := listen()
			if rev.Has(protocol.FeaturePrimedStreams) {
				second.Want("id: 01-3|data: ")
			}
			update(2)
			update(3)
			second.Want(event(ids[1], 2), event(ids[2], 3))
			leaveSecond()
			heard := make(chan string)
			go func() { heard <- first.Next() }()
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
			again.Want(event(ids[2], 3))
			update(5)
			for next := again.Next(); !strings.Contains(next, `"r:5"`); next = again.Next() {
				if !strings.HasPrefix(next, "id: 01-") || !strings.Contains(next, `"r:4"`) {
					t.Fatalf("heard %q", next)
				}
			}
			for range 8 {
				_, leave := listen()
				defer leave()
			}
			again.Want(io.EOF.Error())
			if err := s.Shutdown(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
