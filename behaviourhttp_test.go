package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// httpBehaviours are the cases of the HTTP endpoint, as it is seen on the wire.
var httpBehaviours = []behaviour{
	{what: "a session that is not used", transport: "http", revisions: legacy, run: sessionExpires},
	{what: "a session that is kept by pings", transport: "http", revisions: legacy, run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		keptAlive(t, rev, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK)
	}},
	{what: "a session that is kept by notifications", transport: "http", revisions: legacy, run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		keptAlive(t, rev, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, http.StatusAccepted)
	}},
	{what: "a session that moves to another process", transport: "http", revisions: legacy, run: sessionMoves},
	{what: "an unknown session", transport: "http", revisions: legacy, run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		for _, store := range []scale.Store{nil, scale.NewLocal()} {
			d := &bareClient{t: t, h: fixture(t, &mcp.Options{StateKeys: sharedKeys, Store: store}).Handler(), rev: rev, session: "made-up"}
			for _, body := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":1,"result":{}}`,
			} {
				d.want(d.do(http.MethodPost, body), http.StatusNotFound, "Session not found")
			}
			d.want(d.do(http.MethodGet, ""), http.StatusNotFound, "Session not found")
			d.want(d.do(http.MethodDelete, ""), http.StatusNotFound, "Session not found")
		}
	}},
	{what: "a body that is no JSON", transport: "http", run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		d := openBare(t, rev, nil)
		d.want(d.do(http.MethodPost, `invalid json`), http.StatusBadRequest, `{"jsonrpc":"2.0","error":{"code":-32700,`)
	}},
	{what: "a body that is no message", transport: "http", run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		d := openBare(t, rev, nil)
		d.want(d.do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"params":{}}`), http.StatusBadRequest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`)
	}},
	{what: "the status of unknown methods", transport: "http", run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		d := openBare(t, rev, nil)
		for _, method := range []string{"unknown/method", "tools/bogus"} {
			status := http.StatusOK
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method)
			if rev.Modern() {
				status = http.StatusNotFound
				body = expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{$META}}`, method), rev)
			}
			d.want(d.do(http.MethodPost, body, "Mcp-Method", method), status, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: `+method+`"}}`)
		}
	}},
	{what: "methods and headers of HTTP", transport: "http", revisions: legacy, run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		d := openBare(t, rev, nil)
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		d.want(d.do(http.MethodPost, ping, "Accept", ""), http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		d.want(d.do(http.MethodPost, ping, "Accept", "text/html"), http.StatusNotAcceptable, "application/json")
		d.want(d.do(http.MethodGet, "", "Accept", "application/json"), http.StatusNotAcceptable, "text/event-stream")
		d.want(d.do(http.MethodPost, strings.Repeat(" ", 5<<20)+ping), http.StatusRequestEntityTooLarge, "message of 5242920 bytes is longer than the limit of 4194304 bytes")
		put := d.do(http.MethodPut, ping)
		d.want(put, http.StatusMethodNotAllowed, "use POST")
		if allow := put.Header().Get("Allow"); allow != "POST, GET, DELETE" {
			t.Errorf("Allow: %s", allow)
		}
		d.session = ""
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			res := d.do(method, "")
			d.want(res, http.StatusMethodNotAllowed, "needs Mcp-Session-Id")
			if allow := res.Header().Get("Allow"); allow != "POST" {
				t.Errorf("%s without a session: Allow: %s, want POST", method, allow)
			}
		}
	}},
	{what: "foreign origins and unknown versions", transport: "http", run: func(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
		server := serveHTTP(t, nil)
		status, answer := postJSON(t, server.URL, strings.NewReader(`{}`), 2) // on loopback
		if status != http.StatusBadRequest {
			t.Errorf("without Origin: %d %s", status, answer)
		}
		req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, server.URL, strings.NewReader(`{}`))
		req.RequestURI = ""
		req.Header.Set("Origin", "https://evil.example")
		res, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if res.StatusCode != http.StatusForbidden {
			t.Errorf("with a foreign Origin: %s", res.Status)
		}
		if !rev.Modern() { // in modern revisions, header and body have to agree first
			d := openBare(t, rev, nil)
			d.want(d.do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Protocol-Version", "1999-01-01"), http.StatusBadRequest, "1999-01-01")
		}
	}},
	{what: "a stream that is taken up again", transport: "http", revisions: legacy, run: streamGoesOn},
	{what: "a Last-Event-ID that is none", transport: "http", revisions: legacy, run: badCursorIsFresh},
}

func TestHTTPBehaviours(t *testing.T) { runBehaviours(t, httpBehaviours) }

// bareClient is a client that calls the endpoint without a network, so that it can
// be used where time is made to pass.
type bareClient struct {
	t       *testing.T
	h       http.Handler
	rev     protocol.Revision
	session string
}

// openBare returns a client of a new server, with a session in a legacy
// revision.
func openBare(t *testing.T, rev protocol.Revision, opts *mcp.Options) *bareClient {
	t.Helper()
	d := &bareClient{t: t, h: fixture(t, opts).Handler(), rev: rev}
	d.initialize()
	return d
}

func (d *bareClient) initialize() {
	d.t.Helper()
	if d.rev.Modern() {
		return
	}
	res := d.do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, hello(d.rev.String())))
	d.want(res, http.StatusOK, `"result":`)
	d.session = res.Header().Get("Mcp-Session-Id")
	d.want(d.do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted, "")
}

// do sends a request, with headers after those that the revision demands; an
// empty value takes a header away.
func (d *bareClient) do(method, body string, headers ...string) *httptest.ResponseRecorder {
	d.t.Helper()
	req := httptest.NewRequestWithContext(d.t.Context(), method, "/", strings.NewReader(body))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if d.session != "" {
		req.Header.Set("Mcp-Session-Id", d.session)
	}
	if d.rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("Mcp-Protocol-Version", d.rev.String())
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res := httptest.NewRecorder()
	d.h.ServeHTTP(res, req)
	return res
}

func (d *bareClient) want(res *httptest.ResponseRecorder, status int, part string) {
	d.t.Helper()
	if res.Code != status || !strings.Contains(res.Body.String(), part) {
		d.t.Errorf("got  %d %s\nwant %d %s", res.Code, res.Body, status, part)
	}
	// An error that belongs to no request has no id, as the prose of every
	// revision says; the schemas before 2025-11-25 leave that out.
	if strings.HasPrefix(res.Header().Get("Content-Type"), "application/json") &&
		(d.rev.Has(protocol.FeatureOptionalErrorID) || strings.Contains(res.Body.String(), `"id":`)) {
		checkSpec(d.t, d.rev, "", res.Body.String())
	}
}

func sessionExpires(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
	synctest.Test(t, func(t *testing.T) {
		var reasons []error
		s := fixture(t, &mcp.Options{
			OnSessionEnd: func(_ *mcp.Frame, reason error) { reasons = append(reasons, reason) },
			Timeouts:     mcp.Timeouts{Session: 100 * time.Millisecond},
		})
		d := &bareClient{t: t, h: s.Handler(), rev: rev}
		d.initialize()
		time.Sleep(150 * time.Millisecond)
		d.want(d.do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusNotFound, "Session not found")
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if len(reasons) != 1 || !errors.Is(reasons[0], mcp.ErrSessionIdle) {
			t.Errorf("OnSessionEnd with %v", reasons)
		}
	})
}

func keptAlive(t *testing.T, rev protocol.Revision, message string, status int) {
	synctest.Test(t, func(t *testing.T) {
		d := openBare(t, rev, &mcp.Options{Timeouts: mcp.Timeouts{Session: 200 * time.Millisecond}})
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			d.want(d.do(http.MethodPost, message), status, "")
		}
		time.Sleep(250 * time.Millisecond)
		d.want(d.do(http.MethodPost, message), http.StatusNotFound, "Session not found")
	})
}

func sessionMoves(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
	store := scale.NewLocal()
	cart := mcp.NewStoredKey[[]string]("example.com/cart")
	process := func() (*bareClient, *mcp.Server) {
		s := fixture(t, &mcp.Options{StateKeys: sharedKeys, Store: store})
		s.MustAdd(mcp.Tool("fill", func(f *mcp.Frame, _ empty) (string, error) {
			cart.Set(f, []string{"apples"})
			return "filled", nil
		}), mcp.Tool("show", func(f *mcp.Frame, _ empty) (string, error) {
			items, _ := cart.Get(f)
			return fmt.Sprint(f.ClientInfo().Name, " ", f.Revision(), " ", items, " ", f.Initialized()), nil
		}))
		return &bareClient{t: t, h: s.Handler(), rev: rev}, s
	}
	first, old := process()
	first.initialize()
	first.want(first.do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fill"}}`), http.StatusOK, "filled")
	first.want(first.do(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"config://app"}}`), http.StatusOK, `"result":{}`)
	if err := old.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, s := process()
	second.session = first.session
	second.want(second.do(http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`), http.StatusOK, `"tools":[`)
	second.want(second.do(http.MethodPost, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"show"}}`), http.StatusOK,
		fmt.Sprintf("c %s [apples] true", rev))
	s.ResourceUpdated("config://app")
	events := second.listen("")
	data := events.next()
	for strings.Contains(data, "list_changed") { // the second process added its tools after it had begun
		data = events.next()
	}
	if !strings.Contains(data, "notifications/resources/updated") {
		t.Errorf("the subscription did not move: %s", data)
	}
}

// ownStream is a stream that was opened with GET.
type ownStream struct {
	t      *testing.T
	lines  *bufio.Scanner
	hangUp func()
	id     string // of the last event
	status int
}

// listen opens the stream of the session, over a network.
func (d *bareClient) listen(last string) *ownStream {
	d.t.Helper()
	var serving sync.WaitGroup // the server waits for no connection that was taken over
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		d.h.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(d.t.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	req.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {d.session}}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	hangUp := func() {
		cancel()
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		server.Close()
		serving.Wait()
	}
	d.t.Cleanup(hangUp)
	return &ownStream{t: d.t, lines: bufio.NewScanner(res.Body), hangUp: hangUp, status: res.StatusCode}
}

// next returns the data of the next event that has any.
func (e *ownStream) next() string {
	e.t.Helper()
	for e.lines.Scan() {
		if id, ok := strings.CutPrefix(e.lines.Text(), "id: "); ok {
			e.id = id
		}
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok && data != "" {
			return data
		}
	}
	e.t.Fatalf("the stream ended: %v", e.lines.Err())
	return ""
}

// updated tells a session of changes to resources, and hears them.
type updated struct {
	*bareClient
	s *mcp.Server
}

func openUpdated(t *testing.T, rev protocol.Revision, uris ...string) *updated {
	t.Helper()
	s := fixture(t, nil)
	u := &updated{&bareClient{t: t, h: s.Handler(), rev: rev}, s}
	u.initialize()
	for _, uri := range uris {
		u.want(u.do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":%q}}`, uri)), http.StatusOK, `"result":{}`)
	}
	return u
}

func (u *updated) hears(e *ownStream, uris ...string) {
	u.t.Helper()
	for _, uri := range uris {
		data := e.next()
		checkSpec(u.t, u.rev, "", data)
		if !strings.Contains(data, fmt.Sprintf(`"params":{"uri":%q}`, uri)) {
			u.t.Fatalf("got %s, want the change of %s", data, uri)
		}
	}
}

func streamGoesOn(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
	u := openUpdated(t, rev, "r:a", "r:b", "r:c", "r:d")
	first := u.listen("")
	u.s.ResourceUpdated("r:a")
	u.hears(first, "r:a")
	cursor := first.id
	u.s.ResourceUpdated("r:b")
	u.hears(first, "r:b") // which got lost behind the last event that the client has noted
	first.hangUp()
	u.s.ResourceUpdated("r:c")
	second := u.listen(cursor)
	if rev.Has(protocol.FeatureResumableStreams) {
		u.hears(second, "r:b")
	} else if cursor != "" {
		t.Errorf("revision %s has no ids of events, got %s", rev, cursor)
	}
	u.hears(second, "r:c")
	u.s.ResourceUpdated("r:d")
	u.hears(second, "r:d")
}

func badCursorIsFresh(t *testing.T, _ transportUnderTest, rev protocol.Revision) {
	for _, cursor := range []string{"42", "-1", "abc", "0-99", "-", "a-b-c", strings.Repeat("9", 400)} {
		u := openUpdated(t, rev, "r:1", "r:2")
		e := u.listen(cursor)
		if e.status != http.StatusOK {
			t.Errorf("Last-Event-ID %.20q: status %d", cursor, e.status)
			continue
		}
		u.s.ResourceUpdated("r:1")
		u.hears(e, "r:1")
		u.s.ResourceUpdated("r:2")
		u.hears(e, "r:2")
	}
	// The client waits for the rest of an answer there, which will not come.
	d := openBare(t, rev, nil)
	if rev.Has(protocol.FeatureResumableStreams) {
		d.want(d.do(http.MethodGet, "", "Last-Event-Id", "9-9"), http.StatusBadRequest, "names no stream of this session")
	}
}
