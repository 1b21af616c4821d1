package tasks

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// start makes a task and the context that its end cancels.
func start(t *testing.T, m *Manager, owner string) (*Task, context.Context) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	task, err := m.Create(owner, 0, 0, cancel)
	if err != nil {
		t.Fatal(err)
	}
	return task, ctx
}

func status(t *testing.T, m *Manager, owner, id string) protocol.TaskStatus {
	t.Helper()
	r, err := m.Get(t.Context(), owner, id)
	if err != nil {
		t.Fatal(err)
	}
	return r.Status
}

func notFound(err error) bool {
	fault, ok := errors.AsType[*protocol.Error](err)
	return ok && fault.Code == protocol.CodeInvalidParams && strings.HasPrefix(fault.Message, "Task not found")
}

func TestOutcomes(t *testing.T) {
	for _, tt := range []struct {
		status        protocol.TaskStatus
		result, fault string
		want          string
	}{
		{protocol.TaskCompleted, `{"content":[]}`, "", `"result":{"content":[]}`},
		{protocol.TaskFailed, "", `{"code":-32603,"message":"x"}`, `"statusMessage":"x"`},
		{protocol.TaskFailed, "", `{"code":-32603,"message":"x"}`, `"error":{"code":-32603,"message":"x"}`},
		{protocol.TaskCancelled, "", "", `"status":"cancelled"`},
	} {
		var told []protocol.TaskStatus
		m := NewManager(Config{}, func(s State) { told = append(told, s.Record.Status) })
		task, _ := start(t, m, "")
		if err := task.Finish(tt.status, json.RawMessage(tt.result), json.RawMessage(tt.fault)); err != nil {
			t.Fatal(err)
		}
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`{"late":1}`), nil); err != nil {
			t.Fatal(err)
		}
		r, err := m.Get(t.Context(), "", task.Record().ID)
		if err != nil {
			t.Fatal(err)
		}
		text, err := State{Record: r}.Append(nil, wire.To{Revision: protocol.Latest})
		if err != nil || !json.Valid(text) || !strings.Contains(string(text), tt.want) || strings.Contains(string(text), "late") {
			t.Errorf("%s: %s, %v", tt.status, text, err)
		}
		if len(told) != 1 || told[0] != tt.status {
			t.Errorf("%s: told %v", tt.status, told)
		}
	}
}

func TestHandle(t *testing.T) {
	m := NewManager(Config{TTL: time.Minute}, nil)
	task, _ := start(t, m, "")
	text, err := Handle{Record: task.Record()}.Append(nil, wire.To{Revision: protocol.Latest})
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		ResultType, TaskID, Status, CreatedAt string
		TTLMs                                 int64
	}
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if got.ResultType != "task" || got.Status != "working" || got.TTLMs != 60_000 || len(got.TaskID) != 22 {
		t.Errorf("%s", text)
	}
	if _, err := time.Parse(time.RFC3339Nano, got.CreatedAt); err != nil {
		t.Error(err)
	}
}

func TestQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{}, nil)
		task, ctx := start(t, m, "")
		id := task.Record().ID
		got := make(chan string, 1)
		ask := func(keys ...string) {
			var questions []protocol.InputRequest
			for _, key := range keys {
				questions = append(questions, protocol.InputRequest{Key: key, Method: "elicitation/create", Params: json.RawMessage("{}")})
			}
			answers, err := task.Ask(ctx, questions)
			text := ""
			for _, a := range answers {
				text += string(a)
			}
			if err != nil {
				text = err.Error()
			}
			got <- text
		}
		update := func(answers string) {
			t.Helper()
			var m2 map[string]json.RawMessage
			if err := json.Unmarshal([]byte(answers), &m2); err != nil {
				t.Fatal(err)
			}
			if err := m.Update(t.Context(), "", id, m2); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		go ask("a", "b")
		synctest.Wait()
		if s := status(t, m, "", id); s != protocol.TaskInputRequired {
			t.Errorf("status %s", s)
		}
		update(`{"b":2,"never asked":0}`)
		if r := task.Record(); r.Status != protocol.TaskInputRequired || len(r.Requests) != 1 || r.Requests[0].Key != "a" {
			t.Errorf("after one of two: %+v", r)
		}
		update(`{"b":3}`) // answered before
		update(`{"a":1}`)
		if text := <-got; text != "12" {
			t.Errorf("answers %s", text)
		}
		if s := status(t, m, "", id); s != protocol.TaskWorking {
			t.Errorf("status %s", s)
		}
		// A key is never used twice.
		go ask("a")
		synctest.Wait()
		if r := task.Record(); len(r.Requests) != 1 || r.Requests[0].Key == "a" {
			t.Errorf("asked again: %+v", r.Requests)
		}
		if err := m.Cancel(t.Context(), "", id); err != nil {
			t.Fatal(err)
		}
		if text := <-got; text != ErrCancelled.Error() {
			t.Errorf("got %s", text)
		}
		if s := status(t, m, "", id); s != protocol.TaskCancelled {
			t.Errorf("status %s", s)
		}
	})
}

// What the work has stopped waiting for is asked no longer, and the rest is.
func TestWithdrawnQuestion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{}, nil)
		task, ctx := start(t, m, "")
		id := task.Record().ID
		ask := func(ctx context.Context, key string, done chan<- error) {
			_, err := task.Ask(ctx, []protocol.InputRequest{{Key: key, Method: "elicitation/create", Params: json.RawMessage("{}")}})
			done <- err
		}
		hurried, stop := context.WithTimeout(ctx, time.Second)
		defer stop()
		first, second := make(chan error, 1), make(chan error, 1)
		go ask(hurried, "hurried", first)
		go ask(ctx, "patient", second)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("hurried: %v", err)
		}
		if r := task.Record(); r.Status != protocol.TaskInputRequired || len(r.Requests) != 1 || r.Requests[0].Key != "patient" {
			t.Errorf("one is left: %+v", r)
		}
		answers := map[string]json.RawMessage{"hurried": json.RawMessage("1"), "patient": json.RawMessage("2")}
		if err := m.Update(t.Context(), "", id, answers); err != nil {
			t.Error(err)
		}
		if err := <-second; err != nil {
			t.Errorf("patient: %v", err)
		}
		hurried, stop = context.WithTimeout(ctx, time.Second)
		defer stop()
		go ask(hurried, "last", first)
		if err := <-first; !errors.Is(err, context.DeadlineExceeded) || status(t, m, "", id) != protocol.TaskWorking {
			t.Errorf("none is left: %v, %s", err, status(t, m, "", id))
		}
		if err := m.Cancel(t.Context(), "", id); err != nil {
			t.Error(err)
		}
	})
}

func TestOwners(t *testing.T) {
	m := NewManager(Config{}, nil)
	task, ctx := start(t, m, "ada")
	id := task.Record().ID
	for _, owner := range []string{"", "eve"} {
		_, err := m.Get(t.Context(), owner, id)
		if !notFound(err) || !notFound(m.Cancel(t.Context(), owner, id)) || !notFound(m.Update(t.Context(), owner, id, nil)) {
			t.Errorf("%q may see the task of ada: %v", owner, err)
		}
	}
	if ctx.Err() != nil {
		t.Error("cancelled by another")
	}
	if err := m.Cancel(t.Context(), "ada", id); err != nil || !errors.Is(context.Cause(ctx), ErrCancelled) {
		t.Errorf("%v, %v", err, context.Cause(ctx))
	}
}

func TestExpiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{TTL: time.Minute}, nil)
		task, ctx := start(t, m, "")
		done, _ := start(t, m, "")
		if err := done.Finish(protocol.TaskCompleted, json.RawMessage("{}"), nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !errors.Is(context.Cause(ctx), ErrExpired) {
			t.Errorf("cause %v", context.Cause(ctx))
		}
		for _, x := range []*Task{task, done} {
			if _, err := m.Get(t.Context(), "", x.Record().ID); !notFound(err) {
				t.Errorf("err = %v", err)
			}
		}
		// A task that ends late is not brought back.
		if err := task.Finish(protocol.TaskCompleted, json.RawMessage("{}"), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Get(t.Context(), "", task.Record().ID); !notFound(err) {
			t.Errorf("err = %v", err)
		}
		if m.kept.Used() != 0 || m.running.Used() != 0 || len(m.live) != 0 {
			t.Errorf("kept %d, running %d, live %d", m.kept.Used(), m.running.Used(), len(m.live))
		}
	})
}

func TestLimits(t *testing.T) {
	m := NewManager(Config{Max: 3, MaxRunning: 2}, nil)
	first, _ := start(t, m, "")
	start(t, m, "")
	create := func() error {
		_, err := m.Create("", 0, 0, func(error) {})
		return err
	}
	if err := create(); err == nil || !strings.Contains(err.Error(), "2 tasks are running, the limit") {
		t.Errorf("err = %v", err)
	}
	_ = first.Finish(protocol.TaskCompleted, json.RawMessage("{}"), nil)
	start(t, m, "")
	if err := create(); err == nil {
		t.Error("over both limits")
	}
}

// One principal cannot take all that there is room for; its place is free again
// when a task expires.
func TestLimitPerOwner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, tt := range []struct {
			config Config
			owner  string
			want   int
		}{
			{Config{Max: 30}, "alice", 3},
			{Config{Max: 5}, "alice", 1},
			{Config{Max: 30, MaxPerOwner: 7}, "alice", 7},
			{Config{Max: 30, MaxPerOwner: -1}, "alice", 30},
			{Config{Max: 30}, "", 30},
		} {
			tt.config.TTL = time.Hour
			m := NewManager(tt.config, nil)
			for round := range 2 {
				for n := range tt.want {
					task, err := m.Create(tt.owner, 0, 0, func(error) {})
					if err != nil {
						t.Fatalf("%+v, round %d, task %d: %v", tt.config, round, n, err)
					}
					_ = task.Finish(protocol.TaskCompleted, json.RawMessage("{}"), nil)
				}
				if _, err := m.Create(tt.owner, 0, 0, func(error) {}); err == nil || !strings.Contains(err.Error(), "kept, the limit") {
					t.Errorf("%+v, %q: one more: %v", tt.config, tt.owner, err)
				}
				if tt.want < tt.config.Max {
					start(t, m, "bob")
				}
				time.Sleep(time.Hour + 1)
				synctest.Wait()
			}
			if m.kept.Used() != 0 {
				t.Errorf("%d are kept", m.kept.Used())
			}
		}
	})
}

type failing struct{ Memory }

var errFull = errors.New("disk full")

func (*failing) Save(context.Context, *Record) error { return errFull }

func TestStoreFails(t *testing.T) {
	m := NewManager(Config{Store: &failing{}}, nil)
	if _, err := m.Create("", 0, 0, func(error) {}); !errors.Is(err, errFull) || strings.Contains(err.Error(), "disk full") {
		t.Errorf("err = %v, which should be %v and not tell it to clients", err, errFull)
	}
	if m.kept.Used() != 0 || m.running.Used() != 0 || m.bytes.Used() != 0 {
		t.Errorf("kept %d, running %d, bytes %d", m.kept.Used(), m.running.Used(), m.bytes.Used())
	}
}

// One principal cannot take all that may run, and neither can the anonymous
// clients of a server that has others.
func TestRunningPerOwner(t *testing.T) {
	for _, tt := range []struct {
		config Config
		owner  string
		want   int
	}{
		{Config{}, "alice", DefaultRunning / 4},
		{Config{MaxRunning: 3}, "alice", 1},
		{Config{MaxRunning: 10, MaxRunningPerOwner: 7}, "alice", 7},
		{Config{MaxRunning: 10, MaxRunningPerOwner: -1}, "alice", 10},
		{Config{MaxRunning: 10}, "", 10},
	} {
		m := NewManager(tt.config, nil)
		var last *Task
		for range tt.want {
			last, _ = start(t, m, tt.owner)
		}
		one := func(owner string) error {
			_, err := m.Create(owner, 0, 0, func(error) {})
			return err
		}
		var busy *protocol.Error
		if err := one(tt.owner); !errors.As(err, &busy) || busy.Code != protocol.CodeBusy || !strings.Contains(err.Error(), "running, the limit") {
			t.Errorf("%+v, %q: one more: %v", tt.config, tt.owner, err)
		}
		if err := one("bob"); (err == nil) != (tt.want < m.config.MaxRunning) {
			t.Errorf("%+v: bob: %v", tt.config, err)
		}
		if err := last.Finish(protocol.TaskCompleted, nil, nil); err != nil {
			t.Fatal(err)
		}
		// Somebody with a name has come: the anonymous have a share now, too.
		if err := one(tt.owner); (err == nil) != (tt.owner != "") {
			t.Errorf("%+v, %q: after one has ended: %v", tt.config, tt.owner, err)
		}
	}
}

// What tasks keep has a bound: a result beyond it is not kept and fails its
// task, and nothing is lost of the others.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewManager(Config{Memory: 1000, TTL: time.Hour, MaxPerOwner: -1}, nil)
		result := func(n int) json.RawMessage { return json.RawMessage(`"` + strings.Repeat("x", n-2) + `"`) }
		first, _ := start(t, m, "alice")
		second, _ := start(t, m, "bob")
		for _, task := range []*Task{first, second} {
			if err := task.Finish(protocol.TaskCompleted, result(600), nil); err != nil {
				t.Fatal(err)
			}
		}
		if r, err := m.Get(t.Context(), "alice", first.Record().ID); err != nil || r.Status != protocol.TaskCompleted || len(r.Result) != 600 {
			t.Errorf("the first: %v, %v", r, err)
		}
		r, err := m.Get(t.Context(), "bob", second.Record().ID)
		if err != nil || r.Status != protocol.TaskFailed || r.Result != nil || !strings.Contains(string(r.Fault), "600 bytes of a task are more than the server has room to keep") {
			t.Errorf("the second: %v, %v", r, err)
		}
		asking, _ := start(t, m, "bob")
		_, err = asking.Ask(t.Context(), []protocol.InputRequest{{Key: "k", Params: result(500)}})
		if err == nil || !strings.Contains(err.Error(), "more than the server has room to keep") || asking.Record().Status != protocol.TaskWorking {
			t.Errorf("a question beyond it: %v, %v", err, asking.Record())
		}
		if err := asking.Finish(protocol.TaskCompleted, result(200), nil); err != nil {
			t.Fatal(err)
		}
		if _, err := m.Create("carol", 0, 0, func(error) {}); err == nil || !strings.Contains(err.Error(), "leave no room") {
			t.Errorf("one more: %v", err)
		}
		time.Sleep(time.Hour + 1)
		synctest.Wait()
		if m.bytes.Used() != 0 || m.kept.Used() != 0 {
			t.Errorf("%d bytes, %d kept", m.bytes.Used(), m.kept.Used())
		}
		again, _ := start(t, m, "carol")
		if err := again.Finish(protocol.TaskCompleted, result(1000), nil); err != nil || again.Record().Status != protocol.TaskCompleted {
			t.Errorf("%v, %v", err, again.Record())
		}
	})
	m := NewManager(Config{Memory: 1000}, nil)
	alice, _ := start(t, m, "alice")
	if err := alice.Finish(protocol.TaskCompleted, json.RawMessage(`"`+strings.Repeat("x", 100)+`"`), nil); err != nil {
		t.Fatal(err)
	}
	if _, err := m.Create("alice", 0, 0, func(error) {}); err == nil {
		t.Error("alice has used her share and begins another task")
	}
	start(t, m, "bob")
}
