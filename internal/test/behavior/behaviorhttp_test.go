package behavior_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// httpBehaviours are the cases of the HTTP endpoint, as it is seen on the wire.
var httpBehaviours = []harness.Behavior{
	{What: "a session that is not used", Transport: "http", Revisions: harness.Legacy, Run: sessionExpires},
	{What: "a session that is kept by pings", Transport: "http", Revisions: harness.Legacy, Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		keptAlive(t, rev, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, http.StatusOK)
	}},
	{What: "a session that is kept by notifications", Transport: "http", Revisions: harness.Legacy, Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		keptAlive(t, rev, `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`, http.StatusAccepted)
	}},
	{What: "a session that moves to another process", Transport: "http", Revisions: harness.Legacy, Run: sessionMoves},
	{What: "an unknown session", Transport: "http", Revisions: harness.Legacy, Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		for _, store := range []scale.Store{nil, scale.NewLocal()} {
			d := &harness.BareClient{T: t, H: harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: store}).Handler(), Rev: rev, Session: "made-up"}
			for _, body := range []string{
				`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
				`{"jsonrpc":"2.0","id":1,"result":{}}`,
			} {
				d.Want(d.Do(http.MethodPost, body), http.StatusNotFound, "Session not found")
			}
			d.Want(d.Do(http.MethodGet, ""), http.StatusNotFound, "Session not found")
			d.Want(d.Do(http.MethodDelete, ""), http.StatusNotFound, "Session not found")
		}
	}},
	{What: "a body that is no JSON", Transport: "http", Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		d := harness.OpenBare(t, rev, nil)
		d.Want(d.Do(http.MethodPost, `invalid json`), http.StatusBadRequest, `{"jsonrpc":"2.0","error":{"code":-32700,`)
	}},
	{What: "a body that is no message", Transport: "http", Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		d := harness.OpenBare(t, rev, nil)
		d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"params":{}}`), http.StatusBadRequest, `{"jsonrpc":"2.0","id":1,"error":{"code":-32600,`)
	}},
	{What: "the status of unknown methods", Transport: "http", Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		d := harness.OpenBare(t, rev, nil)
		for _, method := range []string{"unknown/method", "tools/bogus"} {
			status := http.StatusOK
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q}`, method)
			if rev.Modern() {
				status = http.StatusNotFound
				body = harness.Expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{$META}}`, method), rev)
			}
			d.Want(d.Do(http.MethodPost, body, "Mcp-Method", method), status, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: `+method+`"}}`)
		}
	}},
	{What: "methods and headers of HTTP", Transport: "http", Revisions: harness.Legacy, Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		d := harness.OpenBare(t, rev, nil)
		const ping = `{"jsonrpc":"2.0","id":1,"method":"ping"}`
		d.Want(d.Do(http.MethodPost, ping, "Accept", ""), http.StatusOK, `{"jsonrpc":"2.0","id":1,"result":{}}`)
		d.Want(d.Do(http.MethodPost, ping, "Accept", "text/html"), http.StatusNotAcceptable, "application/json")
		d.Want(d.Do(http.MethodGet, "", "Accept", "application/json"), http.StatusNotAcceptable, "text/event-stream")
		d.Want(d.Do(http.MethodPost, strings.Repeat(" ", 5<<20)+ping), http.StatusRequestEntityTooLarge, "message of 5242920 bytes is longer than the limit of 4194304 bytes")
		put := d.Do(http.MethodPut, ping)
		d.Want(put, http.StatusMethodNotAllowed, "use POST")
		if allow := put.Header().Get("Allow"); allow != "POST, GET, DELETE" {
			t.Errorf("Allow: %s", allow)
		}
		d.Session = ""
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			res := d.Do(method, "")
			d.Want(res, http.StatusMethodNotAllowed, "needs Mcp-Session-Id")
			if allow := res.Header().Get("Allow"); allow != "POST" {
				t.Errorf("%s without a session: Allow: %s, want POST", method, allow)
			}
		}
	}},
	{What: "foreign origins and unknown versions", Transport: "http", Run: func(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
		server := harness.ServeHTTP(t, nil)
		status, answer := harness.PostJSON(t, server.URL, strings.NewReader(`{}`), 2) // on loopback
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
			d := harness.OpenBare(t, rev, nil)
			d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, "Mcp-Protocol-Version", "1999-01-01"), http.StatusBadRequest, "1999-01-01")
		}
	}},
	{What: "a stream that is taken up again", Transport: "http", Revisions: harness.Legacy, Run: streamGoesOn},
	{What: "a Last-Event-ID that is none", Transport: "http", Revisions: harness.Legacy, Run: badCursorIsFresh},
}

func TestHTTPBehaviours(t *testing.T) { harness.RunBehaviors(t, httpBehaviours) }

func sessionExpires(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
	synctest.Test(t, func(t *testing.T) {
		var reasons []error
		s := harness.Fixture(t, &mcp.Options{
			OnSessionEnd: func(_ *mcp.Frame, reason error) { reasons = append(reasons, reason) },
			Timeouts:     mcp.Timeouts{Session: 100 * time.Millisecond},
		})
		d := &harness.BareClient{T: t, H: s.Handler(), Rev: rev}
		d.Initialize()
		time.Sleep(150 * time.Millisecond)
		d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"ping"}`), http.StatusNotFound, "Session not found")
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
		d := harness.OpenBare(t, rev, &mcp.Options{Timeouts: mcp.Timeouts{Session: 200 * time.Millisecond}})
		for range 3 {
			time.Sleep(100 * time.Millisecond)
			d.Want(d.Do(http.MethodPost, message), status, "")
		}
		time.Sleep(250 * time.Millisecond)
		d.Want(d.Do(http.MethodPost, message), http.StatusNotFound, "Session not found")
	})
}

func sessionMoves(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
	store := scale.NewLocal()
	cart := mcp.NewStoredKey[[]string]("example.com/cart")
	process := func() (*harness.BareClient, *mcp.Server) {
		s := harness.Fixture(t, &mcp.Options{StateKeys: harness.SharedKeys, Store: store})
		s.MustAdd(mcp.Tool("fill", func(f *mcp.Frame, _ struct{}) (string, error) {
			cart.Set(f, []string{"apples"})
			return "filled", nil
		}), mcp.Tool("show", func(f *mcp.Frame, _ struct{}) (string, error) {
			items, _ := cart.Get(f)
			return fmt.Sprint(f.ClientInfo().Name, " ", f.Revision(), " ", items, " ", f.Initialized()), nil
		}))
		return &harness.BareClient{T: t, H: s.Handler(), Rev: rev}, s
	}
	first, old := process()
	first.Initialize()
	first.Want(first.Do(http.MethodPost, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"fill"}}`), http.StatusOK, "filled")
	first.Want(first.Do(http.MethodPost, `{"jsonrpc":"2.0","id":2,"method":"resources/subscribe","params":{"uri":"config://app"}}`), http.StatusOK, `"result":{}`)
	if err := old.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, s := process()
	second.Session = first.Session
	second.Want(second.Do(http.MethodPost, `{"jsonrpc":"2.0","id":3,"method":"tools/list"}`), http.StatusOK, `"tools":[`)
	second.Want(second.Do(http.MethodPost, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"show"}}`), http.StatusOK,
		fmt.Sprintf("c %s [apples] true", rev))
	s.ResourceUpdated("config://app")
	events := second.Listen("")
	data := events.Next()
	for strings.Contains(data, "list_changed") { // the second process added its tools after it had begun
		data = events.Next()
	}
	if !strings.Contains(data, "notifications/resources/updated") {
		t.Errorf("the subscription did not move: %s", data)
	}
}

// updated tells a session of changes to resources, and hears them.
type updated struct {
	*harness.BareClient
	s *mcp.Server
}

func openUpdated(t *testing.T, rev protocol.Revision, uris ...string) *updated {
	t.Helper()
	s := harness.Fixture(t, nil)
	u := &updated{&harness.BareClient{T: t, H: s.Handler(), Rev: rev}, s}
	u.Initialize()
	for _, uri := range uris {
		u.Want(u.Do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":%q}}`, uri)), http.StatusOK, `"result":{}`)
	}
	return u
}

func (u *updated) hears(e *harness.OwnStream, uris ...string) {
	u.T.Helper()
	for _, uri := range uris {
		data := e.Next()
		harness.CheckSpec(u.T, u.Rev, "", data)
		if !strings.Contains(data, fmt.Sprintf(`"params":{"uri":%q}`, uri)) {
			u.T.Fatalf("got %s, want the change of %s", data, uri)
		}
	}
}

func streamGoesOn(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
	u := openUpdated(t, rev, "r:a", "r:b", "r:c", "r:d")
	first := u.Listen("")
	u.s.ResourceUpdated("r:a")
	u.hears(first, "r:a")
	cursor := first.ID
	u.s.ResourceUpdated("r:b")
	u.hears(first, "r:b") // which got lost behind the last event that the client has noted
	first.HangUp()
	u.s.ResourceUpdated("r:c")
	second := u.Listen(cursor)
	if rev.Has(protocol.FeatureResumableStreams) {
		u.hears(second, "r:b")
	} else if cursor != "" {
		t.Errorf("revision %s has no ids of events, got %s", rev, cursor)
	}
	u.hears(second, "r:c")
	u.s.ResourceUpdated("r:d")
	u.hears(second, "r:d")
}

func badCursorIsFresh(t *testing.T, _ harness.TransportUnderTest, rev protocol.Revision) {
	for _, cursor := range []string{"42", "-1", "abc", "0-99", "-", "a-b-c", strings.Repeat("9", 400)} {
		u := openUpdated(t, rev, "r:1", "r:2")
		e := u.Listen(cursor)
		if e.Status != http.StatusOK {
			t.Errorf("Last-Event-ID %.20q: status %d", cursor, e.Status)
			continue
		}
		u.s.ResourceUpdated("r:1")
		u.hears(e, "r:1")
		u.s.ResourceUpdated("r:2")
		u.hears(e, "r:2")
	}
	// The client waits for the rest of an answer there, which will not come.
	d := harness.OpenBare(t, rev, nil)
	if rev.Has(protocol.FeatureResumableStreams) {
		d.Want(d.Do(http.MethodGet, "", "Last-Event-Id", "9-9"), http.StatusBadRequest, "names no stream of this session")
	}
}
