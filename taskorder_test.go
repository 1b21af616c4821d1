package mcp

import (
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// The states of a task are told in the order in which the store got them, whatever
// the clocks of the replicas say that made them.
func TestStatesOfTaskInOrder(t *testing.T) {
	quiet := zerolog.Nop()
	s := NewServer(Info{Name: "x", Version: "1"}, &Options{Store: scale.NewLocal(), StateKeys: [][]byte{[]byte("a secret of 32 bytes, or even more")}, Logger: &quiet})
	defer func() { _ = s.Shutdown(t.Context()) }()
	task, err := s.tasks.Create("", 0, 0, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	id := task.Record().ID
	x := &taskExtension{server: s, told: map[string]told{id: {}}} // as of a subscriber
	state := func() (r tasks.Record) {
		r, _, err := s.tasks.Look(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	news := func(r tasks.Record) bool {
		change, err := (tasks.State{Record: r}).Change()
		if err != nil {
			t.Fatal(err)
		}
		return x.isNews(&r, change)
	}
	working := state()
	if err := task.Finish(protocol.TaskCompleted, []byte(`{}`), nil); err != nil {
		t.Fatal(err)
	}
	s.tasks.Told(id)
	ended := state()
	ended.Updated = working.Updated.Add(-5 * time.Millisecond) // of a replica whose clock is late
	if !news(working) || !news(ended) || news(working) || news(ended) {
		t.Error("the end is not told, or something is told twice")
	}
}
