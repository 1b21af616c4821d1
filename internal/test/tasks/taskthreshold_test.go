package tasks_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/protocol"
)

// A call that ends within TaskOptions.Wait is answered as any call, with its
// result or its error, and takes no task's place for longer.
func TestQuickCallIsNoTask(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s := harness.Fixture(t, &mcp.Options{})
			long := mcp.AsTask(&mcp.TaskOptions{Wait: time.Hour})
			s.MustAdd(
				mcp.Tool("quick", func(*mcp.Frame, struct{}) (string, error) { return "at once", nil }, long),
				mcp.Tool("broken", func(*mcp.Frame, struct{}) (string, error) { return "", &mcp.Error{Code: 4711} }, long),
			)
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			for range 70 { // more than may run at a time
				if got := c.Ask("tools/call", `"name":"quick"`).Result; got.ResultType != "complete" || got.Content[0].Text != "at once" {
					t.Fatalf("%+v", got)
				}
			}
			if got := c.Ask("tools/call", `"name":"broken"`); got.Error == nil || got.Error.Code != 4711 {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A call that goes on becomes a task without its handler noticing, and what it
// has told of its progress before is the task's from the start, with its numbers.
func TestCallBecomesTask(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s := harness.Fixture(t, nil)
			gate := make(chan struct{})
			s.MustAdd(mcp.Tool("steps", func(f *mcp.Frame, _ struct{}) (string, error) {
				for i := range 3 {
					if err := f.Progress(float64(i+1), 3, fmt.Sprint("step ", i+1)); err != nil {
						return "", err
					}
					<-gate
				}
				return "done", nil
			}, mcp.AsTask(&mcp.TaskOptions{Wait: time.Millisecond})))
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			task := c.Ask("tools/call", `"name":"steps"`).Result
			if task.ResultType != "task" {
				t.Fatalf("%+v", task)
			}
			for i := range 3 {
				want := fmt.Sprintf(`{"progress":%d,"total":3}`, i+1)
				for {
					got := c.Ask("tasks/get", fmt.Sprintf(`"taskId":%q`, task.TaskID)).Result
					if got.StatusMessage == fmt.Sprint("step ", i+1) {
						if string(got.Meta["io.github.talaria-go/progress"]) != want {
							t.Errorf("numbers %s, want %s", got.Meta, want)
						}
						break
					}
				}
				gate <- struct{}{}
			}
			if got := c.Until(task.TaskID, "completed").Result; got.Result.Content[0].Text != "done" {
				t.Errorf("%+v", got)
			}
		})
	}
}

// A handler that asks runs once, however soon it asks: the call is a task then.
func TestAskingCallIsTask(t *testing.T) {
	for _, transport := range harness.Transports {
		t.Run(transport.Name, func(t *testing.T) {
			s := harness.Fixture(t, nil)
			var runs atomic.Int64
			s.MustAdd(mcp.Tool("asks", func(f *mcp.Frame, _ struct{}) (string, error) {
				runs.Add(1)
				answer, err := mcp.Elicit[harness.YesForm](f, "sure", "Sure?")
				return fmt.Sprint(answer.Value.Yes), err
			}, mcp.AsTask(&mcp.TaskOptions{Wait: time.Hour})))
			c := &harness.TaskClient{T: t, C: transport.Open(t, s, protocol.Latest)}
			id := c.Ask("tools/call", `"name":"asks"`).Result.TaskID
			c.Until(id, "input_required")
			if got := c.Ask("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{"sure":{"action":"accept","content":{"yes":true}}}`, id)); got.Error != nil {
				t.Fatal(got.Error)
			}
			if got := c.Until(id, "completed").Result.Result.Content[0].Text; got != "true" || runs.Load() != 1 {
				t.Errorf("got %q after %d runs", got, runs.Load())
			}
		})
	}
}

// A request about a task may lose its Mcp-Name on the way, since its body names
// the task; one that names another is refused, and calls need theirs.
func TestTaskWithoutNameHeader(t *testing.T) {
	s, gate := harness.TaskServer(t)
	h := harness.OpenHTTP(t, s, protocol.Latest).(*harness.HTTPClient)
	c := &harness.TaskClient{T: t, C: h}
	id := c.Ask("tools/call", `"name":"gated"`).Result.TaskID
	post := func(method, params string, header ...string) string {
		t.Helper()
		body := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":%q,"params":{%s,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`, method, params)
		req, err := http.NewRequest(http.MethodPost, h.URL, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("MCP-Protocol-Version", "2026-07-28")
		req.Header.Set("Mcp-Method", method)
		for _, name := range header {
			req.Header.Set("Mcp-Name", name)
		}
		res, err := h.Client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		var answer struct {
			Result struct{ Status string }
			Error  *protocol.Error
		}
		if err := json.NewDecoder(res.Body).Decode(&answer); err != nil {
			t.Fatal(err)
		}
		if answer.Error != nil {
			return fmt.Sprint(int(answer.Error.Code))
		}
		return answer.Result.Status
	}
	named := fmt.Sprintf(`"taskId":%q`, id)
	if got := post("tasks/get", named); got != "working" {
		t.Errorf("without the header: %s", got)
	}
	if got, want := post("tasks/get", named, "another"), fmt.Sprint(int(protocol.CodeHeaderMismatch)); got != want {
		t.Errorf("with another's: %s", got)
	}
	if got, want := post("tools/call", `"name":"gated"`), fmt.Sprint(int(protocol.CodeHeaderMismatch)); got != want {
		t.Errorf("a call without it: %s", got)
	}
	gate <- struct{}{}
	c.Until(id, "completed")
}
