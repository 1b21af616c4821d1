package client

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// oldTasks begins a session of a server with tasks of 2025-11-25.
func oldTasks(s *script, capabilities string) {
	h := s.until("initialize")
	s.result(h, `{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"tasks":`+capabilities+`},"serverInfo":{"name":"old","version":"1"}}`)
}

const taskCapable = `{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}`

func oldTask(status string) string {
	return `"taskId":"t1","status":"` + status + `","statusMessage":"is ` + status + `","createdAt":"2025-11-25T10:30:00Z","lastUpdatedAt":"2025-11-25T10:30:00Z","ttl":null,"pollInterval":3000`
}

// TestLegacyTasks: a tool that is called as a task only is called so, known from its list or
// from the refusal; the state, the questions and the result of the task come as those of others.
func TestLegacyTasks(t *testing.T) {
	list := `{"tools":[{"name":"slow","inputSchema":{"type":"object"},"execution":{"taskSupport":"%s"}}]}`
	for _, c := range []struct {
		name    string
		listed  string // taskSupport, if the tools are listed before
		options []CallOption
		play    func(t *testing.T, s *script)
		want    string
	}{
		{"required", "required", nil, func(t *testing.T, s *script) {
			h := s.until("tools/call")
			if !strings.Contains(h.raw, `"task":{}`) {
				t.Errorf("sent %s", h.raw)
			}
			s.result(h, `{"task":{`+oldTask("working")+`}}`)
			began := time.Now()
			s.result(s.until("tasks/get"), `{`+oldTask("working")+`}`)
			s.result(s.until("tasks/get"), `{`+oldTask("completed")+`}`)
			if since := time.Since(began); since < 6*time.Second {
				t.Errorf("2 looks within %v", since)
			}
			s.result(s.until("tasks/result"), `{"content":[{"type":"text","text":"done"}],"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}`)
		}, "done"},
		{"refused first", "", nil, func(t *testing.T, s *script) {
			h := s.until("tools/call")
			if strings.Contains(h.raw, `"task"`) {
				t.Errorf("sent %s", h.raw)
			}
			s.fault(h, -32601, "requires a task")
			s.result(s.until("tools/list"), fmt.Sprintf(list, "required"))
			s.result(s.until("tools/call"), `{"task":{`+oldTask("working")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("failed")+`}`)
			s.result(s.until("tasks/result"), `{"content":[{"type":"text","text":"it broke"}],"isError":true}`)
		}, "it broke"},
		{"an error", "required", nil, func(_ *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"task":{`+oldTask("failed")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("failed")+`}`)
			s.fault(s.until("tasks/result"), -32603, "no disk")
		}, "no disk"},
		{"asks", "required", nil, func(t *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"task":{`+oldTask("working")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("input_required")+`}`)
			h := s.until("tasks/result")
			s.say(`{"jsonrpc":"2.0","id":"q","method":"elicitation/create","params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}},"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"t1"}}}}`)
			for !strings.Contains(s.next().raw, `"action":"accept"`) {
			}
			s.result(h, `{"content":[{"type":"text","text":"thanks"}]}`)
		}, "thanks"},
		{"optional, wanted", "optional", []CallOption{AsTask()}, func(_ *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"task":{`+oldTask("completed")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("completed")+`}`)
			s.result(s.until("tasks/result"), `{"content":[{"type":"text","text":"done"}]}`)
		}, "done"},
		{"optional", "optional", nil, func(t *testing.T, s *script) {
			h := s.until("tools/call")
			if strings.Contains(h.raw, `"task"`) {
				t.Errorf("sent %s", h.raw)
			}
			s.result(h, `{"content":[{"type":"text","text":"at once"}]}`)
		}, "at once"},
		{"answers at once", "required", nil, func(_ *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"content":[{"type":"text","text":"at once"}]}`)
		}, "at once"},
		{"cancelled by the server", "required", nil, func(_ *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"task":{`+oldTask("working")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("cancelled")+`}`)
		}, "the server cancelled the task: is cancelled"},
		{"no task", "required", nil, func(_ *testing.T, s *script) {
			s.result(s.until("tools/call"), `{"task":5}`)
		}, "does not decode"},
		{"unknown method", "", nil, func(_ *testing.T, s *script) {
			s.fault(s.until("tools/call"), -32601, "first")
			s.result(s.until("tools/list"), fmt.Sprintf(list, "optional"))
		}, "first"},
		{"unknown method, refused as a task", "", nil, func(_ *testing.T, s *script) {
			s.fault(s.until("tools/call"), -32601, "first")
			s.result(s.until("tools/list"), fmt.Sprintf(list, "required"))
			s.fault(s.until("tools/call"), -32603, "second")
		}, "second"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := scripted(t, func(s *script) {
					oldTasks(s, taskCapable)
					if c.listed != "" {
						s.result(s.until("tools/list"), fmt.Sprintf(list, c.listed))
					}
					c.play(t, s)
					s.drain()
				})
				client := connect(t, tr, asker(protocol.V20251125))
				if c.listed != "" {
					if _, err := client.Tool(t.Context(), "slow"); err != nil {
						t.Fatal(err)
					}
				}
				r, err := client.Call(t.Context(), "slow", nil, c.options...)
				got := fmt.Sprint(err)
				if err == nil {
					got = r.Text()
				}
				if !strings.Contains(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		})
	}
}

// TestLegacyTasksLeft: a caller that gives up cancels the task; one that drives it does so by
// itself; and no server gets a task that does not want one.
func TestLegacyTasksLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cancelled := make(chan struct{})
		tr := scripted(t, func(s *script) {
			oldTasks(s, taskCapable)
			s.result(s.until("tools/call"), `{"task":{`+oldTask("working")+`}}`)
			s.result(s.until("tasks/cancel"), `{`+oldTask("cancelled")+`}`)
			close(cancelled)
			s.result(s.until("tools/call"), `{"task":{`+oldTask("working")+`}}`)
			s.result(s.until("tasks/get"), `{`+oldTask("working")+`}`)
			s.result(s.until("tasks/cancel"), `{`+oldTask("cancelled")+`}`)
			s.drain()
		})
		c := connect(t, tr, asker(protocol.V20251125))
		options := []CallOption{AsTask(), OnTask(func(task *Task) {
			if task.ID != "t1" || task.PollInterval != 3*time.Second {
				t.Errorf("%+v", task)
			}
		})}
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if _, err := c.Call(ctx, "slow", nil, options...); !errors.Is(err, ErrTimeout) {
			t.Errorf("%v", err)
		}
		<-cancelled
		r, err := c.Call(t.Context(), "slow", nil, AsTask(), Detached())
		if err != nil || r.Task == nil {
			t.Fatal(r, err)
		}
		if task, err := c.Task(t.Context(), "t1"); err != nil || task.StatusMessage != "is working" {
			t.Errorf("%+v, %v", task, err)
		}
		if err := c.CancelTask(t.Context(), "t1"); err != nil {
			t.Error(err)
		}
		if err := c.UpdateTask(t.Context(), "t1", nil); !errors.Is(err, ErrUnsupported) {
			t.Error(err)
		}
	})
	for _, capabilities := range []string{`{}`, `5`, `{"requests":{"tools":{}}}`, `{"requests":[]}`} {
		synctest.Test(t, func(t *testing.T) {
			tr := scripted(t, func(s *script) {
				oldTasks(s, capabilities)
				h := s.until("tools/call")
				if strings.Contains(h.raw, `"task"`) {
					t.Errorf("%s: sent %s", capabilities, h.raw)
				}
				s.result(h, `{"content":[]}`)
				s.drain()
			})
			c := connect(t, tr, asker(protocol.V20251125))
			if _, err := c.Call(t.Context(), "slow", nil, AsTask()); err != nil {
				t.Errorf("%s: %v", capabilities, err)
			}
			if _, err := c.Task(t.Context(), "t1"); !errors.Is(err, ErrUnsupported) {
				t.Errorf("%s: %v", capabilities, err)
			}
		})
	}
}
