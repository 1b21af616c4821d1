package limits_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport"
)

// A client that does not answer is not waited for longer than Timeouts.Question:
// the call gets the error, and the client is told that the question is over.
func TestQuestionExpires(t *testing.T) {
	harness.Holds(t, mcp.Options{Timeouts: mcp.Timeouts{Question: 200 * time.Millisecond}}, harness.LegacyRevisions, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		w.Say(w.Call("asks", "ask"))
		for _, want := range []string{`"roots/list"`, `"notifications/cancelled","params":{"requestId":1,`, "the client has not answered for 200ms"} {
			if got := w.Hear(); !strings.Contains(got, want) {
				t.Fatalf("heard %s, want %s", got, want)
			}
		}
		w.Say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`) // too late, for nobody
		w.Say(w.Call("after", "nothing"))
		w.Answer("after", `"content"`)
	})
}

// That is a quarter of an hour if Options do not say.
func TestQuestionTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := harness.Hold(t, mcp.Options{})
		client, server := transport.Pipe()
		served := make(chan error, 1)
		go func() { served <- h.ServeConn(context.Background(), server) }()
		read := func() string {
			message, err := client.Read()
			if err != nil {
				t.Fatal(err)
			}
			return string(message)
		}
		begin := time.Now()
		for _, line := range []string{
			`{"jsonrpc":"2.0","id":"init","method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`,
			`{"jsonrpc":"2.0","id":"asks","method":"tools/call","params":{"name":"ask"}}`,
		} {
			if err := client.Write([]byte(line)); err != nil {
				t.Fatal(err)
			}
		}
		for got := read(); !strings.Contains(got, "has not answered for 15m0s"); got = read() {
		}
		if took := time.Since(begin); took != 15*time.Minute {
			t.Errorf("the call was answered after %v", took)
		}
		_ = client.Close()
		<-served
	})
}

// Nor can a client leave more than Limits.Questions questions unanswered.
func TestQuestionLimit(t *testing.T) {
	harness.Holds(t, mcp.Options{Limits: mcp.Limits{Questions: 2}, Timeouts: mcp.Timeouts{Grace: time.Millisecond}}, harness.LegacyRevisions, func(t *testing.T, h *harness.Holding, w *harness.LineClient) {
		for i := range 2 {
			w.Say(w.Call(fmt.Sprint("ask", i), "ask"))
			if got := w.Hear(); !strings.Contains(got, `"roots/list"`) {
				t.Fatalf("heard %s", got)
			}
		}
		w.Say(w.Call("third", "ask"))
		w.Answer("third", "as many unanswered questions as it may, which is 2")
		w.Say(`{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}`)
		w.Answer("ask0", "0 roots")
		w.Say(w.Call("fourth", "ask"))
		if got := w.Hear(); !strings.Contains(got, `"roots/list"`) {
			t.Fatalf("heard %s", got)
		}
	})
}

// Over streamable HTTP a client that hangs up, keeps the stream of its session
// open and does not answer is waited for no longer.
func TestQuestionExpiresInSession(t *testing.T) {
	for _, rev := range []protocol.Revision{protocol.V20250326, protocol.V20250618, protocol.V20251125} {
		t.Run(rev.String(), func(t *testing.T) {
			s := harness.Fixture(t, &mcp.Options{Timeouts: mcp.Timeouts{Question: 50 * time.Millisecond}})
			failed := make(chan string, 1)
			s.MustAdd(mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				_, err := frame.Roots(f, "roots")
				failed <- fmt.Sprint(err)
				return "", err
			}))
			c := harness.OpenHTTP(t, s, rev).(*harness.HTTPClient)
			c.Say(fmt.Sprintf(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":%q,"capabilities":{"roots":{}},"clientInfo":{"name":"c","version":"1"}}}`, rev))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			open := func(ctx context.Context, method, body string) *http.Response {
				req, err := http.NewRequestWithContext(ctx, method, c.URL, strings.NewReader(body))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Content-Type", "application/json")
				req.Header.Set("Accept", "application/json, text/event-stream")
				c.SetHeaders(req, body)
				res, err := c.Client.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				return res
			}
			stream := open(ctx, http.MethodGet, "")
			defer stream.Body.Close()
			call, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": map[string]any{"name": "ask"}})
			if err != nil {
				t.Fatal(err)
			}
			calling, hangUp := context.WithCancel(ctx)
			answer := open(calling, http.MethodPost, string(call)) // its stream begins with the question
			hangUp()
			_ = answer.Body.Close()
			got := harness.Await(t, failed, "the end of the question")
			if rev.Has(protocol.FeatureResumableStreams) && !strings.Contains(got, "has not answered for 50ms") {
				t.Errorf("the question ended with %s", got)
			}
		})
	}
}
