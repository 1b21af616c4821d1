package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	mcpclient "github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/spectest"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

// revisions are one with sessions and one without.
var revisions = []protocol.Revision{protocol.V20251125, protocol.V20260728}

func addNote(c *mcptest.Client, text string) Note {
	var note Note
	c.Call("add_note", AddNoteIn{Text: text}).Structured(&note)
	return note
}

// The user is asked before a note goes, by the same code in both revisions.
func TestDeleteAsks(t *testing.T) {
	for _, rev := range revisions {
		for _, test := range []struct {
			answer func() (*mcpclient.ElicitResult, error)
			gone   bool
		}{
			{func() (*mcpclient.ElicitResult, error) { return mcpclient.Accept(Confirmation{Delete: true}) }, true},
			{func() (*mcpclient.ElicitResult, error) { return mcpclient.Accept(Confirmation{Delete: false}) }, false},
			{mcpclient.Decline, false},
			{mcpclient.Cancel, false},
		} {
			var asked []string
			c := mcptest.New(t, newServer(newBench(t, t.TempDir())), mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear), mcptest.OnElicit(func(_ context.Context, q *mcpclient.ElicitParams) (*mcpclient.ElicitResult, error) {
				asked = append(asked, q.Message)
				return test.answer()
			}))
			id := addNote(c, "Buy milk").ID
			got := c.Call("delete_note", RecordIn{ID: id})
			if len(asked) != 1 || asked[0] != "Delete note 1 for good? It says: Buy milk" {
				t.Errorf("%s: asked %q", rev, asked)
			}
			if got.IsError == test.gone || !test.gone && !strings.Contains(got.Text(), "the user did not agree; note 1 is kept") {
				t.Errorf("%s, to go %v: got %q", rev, test.gone, got.Text())
			}
			var left SearchNotesOut
			if c.Call("search_notes", nil).Structured(&left); (left.Total == 0) != test.gone {
				t.Errorf("%s, to go %v: %d notes are left", rev, test.gone, left.Total)
			}
			if missing := c.Call("delete_note", RecordIn{ID: 7}); !missing.IsError || len(asked) != 1 {
				t.Errorf("%s: a note that is not there: got %q, asked %q", rev, missing.Text(), asked)
			}
		}
	}
}

// Whoever watches the notes hears of each change.
func TestNotesAreWatched(t *testing.T) {
	w := newBench(t, t.TempDir())
	s := newServer(w)
	for _, rev := range revisions {
		c := mcptest.New(t, s, mcptest.Revision(rev), mcptest.Trace(spectest.New(t).Hear))
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		if rev.Has(protocol.FeaturePerRequestMeta) {
			go func() {
				defer close(ended)
				_, _ = c.RequestContext(ctx, "subscriptions/listen", map[string]any{"notifications": map[string]any{"resourceSubscriptions": []string{"notes://all"}}})
			}()
			c.WaitFor("notifications/subscriptions/acknowledged")
		} else {
			close(ended)
			c.Request("resources/subscribe", map[string]string{"uri": "notes://all"})
		}
		note := addNote(c, "Buy milk")
		for range 2 {
			var changed struct{ URI string }
			if err := json.Unmarshal(c.WaitFor("notifications/resources/updated"), &changed); err != nil || changed.URI != "notes://all" {
				t.Errorf("%s: got %+v, %v", rev, changed, err)
			}
			if note.ID > 0 {
				c.Call("delete_note", RecordIn{ID: note.ID})
				note.ID = 0
			}
		}
		stop()
		<-ended
	}
}

// taskState is the answer to a call that became a task, and to tasks/get.
type taskState struct {
	ResultType, TaskID, Status, StatusMessage string
	Result                                    struct{ StructuredContent ImportOut }
}

func decoded[T any](t *testing.T, raw json.RawMessage) (v T) {
	t.Helper()
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("%v in %s", err, raw)
	}
	return v
}

// An import is a task for clients that take tasks: they ask how far it is, get
// its result later, or cancel it.
func TestImportAsTask(t *testing.T) {
	dir := t.TempDir()
	brief := "title,date,start\nLunch,2030-03-02,12:00\nDinner,2030-03-02,19:00\n"
	for name, text := range map[string]string{"brief.csv": brief, "long.csv": brief + strings.Repeat("Tea,2030-03-02,16:00\n", 1000)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c := mcptest.New(t, newServer(newBench(t, dir)), mcptest.Trace(spectest.New(t).Hear),
		mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{wire.TasksExtension: json.RawMessage(`{}`)}}))
	start := func(path string) string {
		state := decoded[taskState](t, c.Request("tools/call", map[string]any{
			"name": "import_events", "arguments": map[string]any{"path": path, "pace": "200ms"},
		}))
		if state.ResultType != "task" || state.Status != "working" {
			t.Fatalf("got %+v, want a task", state)
		}
		return state.TaskID
	}
	until := func(id string, fits func(taskState) bool) taskState {
		deadline := time.After(10 * time.Second)
		for {
			state := decoded[taskState](t, c.Request("tasks/get", map[string]string{"taskId": id}))
			if fits(state) {
				return state
			}
			select {
			case <-deadline:
				t.Fatalf("the task is still %+v", state)
			default:
			}
		}
	}

	long := start("long.csv")
	until(long, func(s taskState) bool { return strings.HasPrefix(s.StatusMessage, "rows read: ") })
	c.Request("tasks/cancel", map[string]string{"taskId": long})
	until(long, func(s taskState) bool { return s.Status == "cancelled" })

	done := until(start("brief.csv"), func(s taskState) bool { return s.Status == "completed" })
	if got := done.Result.StructuredContent; got.Imported != 2 || got.Rejected != 0 {
		t.Errorf("got %+v, want both events: the cancelled import has kept nothing", got)
	}
	if _, err := c.TryRequest("tasks/get", map[string]string{"taskId": "none"}); err == nil {
		t.Error("a task that is not there has a state")
	} else if _, ok := errors.AsType[*mcp.Error](err); !ok {
		t.Error(err)
	}
}
