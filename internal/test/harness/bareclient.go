package harness

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// BareClient is a client that calls the endpoint without a network, so that it can
// be used where time is made to pass.
type BareClient struct {
	T       *testing.T
	H       http.Handler
	Rev     protocol.Revision
	Session string
}

// OpenBare returns a client of a new server, with a session in a legacy
// revision.
func OpenBare(t *testing.T, rev protocol.Revision, opts *mcp.Options) *BareClient {
	t.Helper()
	d := &BareClient{T: t, H: Fixture(t, opts).Handler(), Rev: rev}
	d.Initialize()
	return d
}

func (d *BareClient) Initialize() {
	d.T.Helper()
	if d.Rev.Modern() {
		return
	}
	res := d.Do(http.MethodPost, fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{%s}}`, Hello(d.Rev.String())))
	d.Want(res, http.StatusOK, `"result":`)
	d.Session = res.Header().Get("Mcp-Session-Id")
	d.Want(d.Do(http.MethodPost, `{"jsonrpc":"2.0","method":"notifications/initialized"}`), http.StatusAccepted, "")
}

// Do sends a request, with headers after those that the revision demands; an
// empty value takes a header away.
func (d *BareClient) Do(method, body string, headers ...string) *httptest.ResponseRecorder {
	d.T.Helper()
	req := httptest.NewRequestWithContext(d.T.Context(), method, "/", strings.NewReader(body))
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if d.Session != "" {
		req.Header.Set("Mcp-Session-Id", d.Session)
	}
	if d.Rev.Has(protocol.FeatureVersionHeader) {
		req.Header.Set("Mcp-Protocol-Version", d.Rev.String())
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	res := httptest.NewRecorder()
	d.H.ServeHTTP(res, req)
	return res
}

func (d *BareClient) Want(res *httptest.ResponseRecorder, status int, part string) {
	d.T.Helper()
	if res.Code != status || !strings.Contains(res.Body.String(), part) {
		d.T.Errorf("got  %d %s\nwant %d %s", res.Code, res.Body, status, part)
	}
	// An error that belongs to no request has no id, as the prose of every
	// revision says; the schemas before 2025-11-25 leave that out.
	if strings.HasPrefix(res.Header().Get("Content-Type"), "application/json") &&
		(d.Rev.Has(protocol.FeatureOptionalErrorID) || strings.Contains(res.Body.String(), `"id":`)) {
		CheckSpec(d.T, d.Rev, "", res.Body.String())
	}
}

// OwnStream is a stream that was opened with GET.
type OwnStream struct {
	t      *testing.T
	lines  *bufio.Scanner
	HangUp func()
	ID     string // of the last event
	Status int
}

// Listen opens the stream of the session, over a network.
func (d *BareClient) Listen(last string) *OwnStream {
	d.T.Helper()
	var serving sync.WaitGroup // the server waits for no connection that was taken over
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		serving.Add(1)
		defer serving.Done()
		d.H.ServeHTTP(w, r)
	}))
	ctx, cancel := context.WithCancel(d.T.Context())
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
	if err != nil {
		d.T.Fatal(err)
	}
	req.Header = http.Header{"Accept": {"text/event-stream"}, "Mcp-Session-Id": {d.Session}}
	if last != "" {
		req.Header.Set("Last-Event-Id", last)
	}
	res, err := server.Client().Do(req)
	if err != nil {
		d.T.Fatal(err)
	}
	hangUp := func() {
		cancel()
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		server.Close()
		serving.Wait()
	}
	d.T.Cleanup(hangUp)
	return &OwnStream{t: d.T, lines: bufio.NewScanner(res.Body), HangUp: hangUp, Status: res.StatusCode}
}

// next returns the data of the next event that has any.
func (e *OwnStream) Next() string {
	e.t.Helper()
	for e.lines.Scan() {
		if id, ok := strings.CutPrefix(e.lines.Text(), "id: "); ok {
			e.ID = id
		}
		if data, ok := strings.CutPrefix(e.lines.Text(), "data: "); ok && data != "" {
			return data
		}
	}
	e.t.Fatalf("the stream ended: %v", e.lines.Err())
	return ""
}
