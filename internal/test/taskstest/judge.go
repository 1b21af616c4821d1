package taskstest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

// check reports violations in the history of the store.
func (s *Simulation) judge() {
	for _, all := range s.history.chains {
		s.judgeChain(inOrder(all))
	}
	for id, effects := range s.history.effects {
		slices.SortFunc(effects, func(a, b effect) int { return cmp.Compare(a.token, b.token) })
		for i := 1; i < len(effects); i++ {
			if a, b := effects[i-1], effects[i]; a.run > b.run || a.run == b.run && a.token != b.token || a.run != b.run && a.token == b.token {
				s.fault("task %s: run %d has token %d, run %d has %d", id, a.run, a.token, b.run, b.token)
			}
		}
	}
	for what := range s.acked {
		parts := strings.SplitN(what, " ", 4)
		s.judgeAcknowledged(parts[0], parts[1], parts[2], parts[3])
	}
}

// judgeChain checks the states of one task.
func (s *Simulation) judgeChain(chain []state) {
	for i := 1; i < len(chain); i++ {
		a, b := &chain[i-1].record, &chain[i].record
		if a.Status.Final() {
			s.fault("task %s: %s, and then run %d writes %s", a.ID, a.Status, b.Run, b.Status)
		}
		if b.Run < a.Run || b.Run > a.Run+1 {
			s.fault("task %s: run %d writes after run %d", a.ID, b.Run, a.Run)
		}
		if b.Status.Final() {
			s.Finals.Add(1)
			continue
		}
		for key, value := range a.Kept {
			if !bytes.Equal(b.Kept[key], value) {
				s.fault("task %s: %s was kept as %s, and then as %s", a.ID, key, value, b.Kept[key])
			}
		}
		for key, value := range a.Answers {
			if !bytes.Equal(b.Answers[key], value) {
				s.fault("task %s: %s was answered with %s, and then with %s", a.ID, key, value, b.Answers[key])
			}
		}
	}
}

// judgeAcknowledged checks that everything that was acknowledged is there.
func (s *Simulation) judgeAcknowledged(id, kind, key, value string) {
	chain := s.history.of(id)
	if len(chain) == 0 {
		s.fault("task %s was made, and the store has heard nothing of it", id)
		return
	}
	last := &chain[len(chain)-1].record
	if !last.Status.Final() {
		if !s.acked[id+" made  "] {
			return // its client was never told
		}
		s.fault("task %s ends as %s of run %d", id, last.Status, last.Run)
		return
	}
	if last.Status == protocol.TaskFailed && !strings.Contains(string(last.Fault), "each time the replica that ran it was lost") {
		s.fault("task %s: %s", id, last.Fault)
	}
	switch kind {
	case "kept":
		if !slices.ContainsFunc(chain, func(st state) bool { return string(st.record.Kept[key]) == value }) {
			s.fault("task %s: %s was kept as %s, which is nowhere", id, key, value)
		}
	case "answer": // the first of them counts
		if !answered(chain, key) {
			s.fault("task %s: the answer to %s is nowhere", id, key)
		}
	case "end":
		if string(last.Status) != key || string(last.Result) != value {
			s.fault("task %s was %s %s, and ended as %s %s", id, key, value, last.Status, last.Result)
		}
	}
	if last.Status == protocol.TaskCompleted {
		s.judgeResult(chain)
	}
}

// answered reports whether a task got an answer, or ended.
func answered(chain []state, key string) bool {
	return slices.ContainsFunc(chain, func(st state) bool { return st.record.Answers[key] != nil || st.record.Status.Final() })
}

// judgeResult checks that the result of a task has the recorded steps and answers.
func (s *Simulation) judgeResult(chain []state) {
	last := &chain[len(chain)-1].record
	known := &chain[max(len(chain)-2, 0)].record
	for _, value := range strings.Fields(strings.Trim(string(last.Result), `"`)) {
		found := false
		for _, all := range []map[string]json.RawMessage{known.Kept, known.Answers} {
			for _, v := range all {
				found = found || string(v) == value
			}
		}
		if !found {
			s.fault("task %s: the result %s has %s, which nobody kept or answered: %s %s", last.ID, last.Result, value, known.Kept, known.Answers)
		}
	}
}
