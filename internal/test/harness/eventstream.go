package harness

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
)

// EventStream reads events as "id data retry".
type EventStream struct {
	t   *testing.T
	Res *http.Response
}

func (e EventStream) Next() string {
	e.t.Helper()
	var event strings.Builder
	one := make([]byte, 1)
	for !strings.HasSuffix(event.String(), "\n\n") {
		if _, err := io.ReadFull(e.Res.Body, one); err != nil {
			return err.Error()
		}
		if event.Write(one); event.String() == ":\n\n" {
			event.Reset() // a comment
		}
	}
	return strings.TrimSuffix(strings.ReplaceAll(event.String(), "\n", "|"), "||")
}

func (e EventStream) Want(events ...string) {
	e.t.Helper()
	for _, want := range events {
		if got := e.Next(); !strings.HasPrefix(got, strings.Split(want, "…")[0]) || strings.Contains(want, "…") && !strings.Contains(got, strings.Split(want, "…")[1]) {
			e.t.Errorf("event %q, want %q", got, want)
		}
	}
}

func Fetch(t *testing.T, ctx context.Context, method, url, body string, headers ...string) EventStream {
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
	return EventStream{t, res}
}

const CallSteps = `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"steps","_meta":{"progressToken":"p"}}}`
