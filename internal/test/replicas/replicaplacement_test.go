package replicas_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

func hasSessions(rev protocol.Revision) bool { return !rev.Modern() }

// scenario is what a client does in some steps, of which any may reach any replica.
type scenario struct {
	name  string
	in    func(rev protocol.Revision) bool
	steps int
	run   func(p *harness.Placed)
}

// scenarios are all of them.
var scenarios = []scenario{
	{"state", hasSessions, 4, func(p *harness.Placed) {
		p.Initialize()
		p.Call("visit").Ends(http.StatusOK, "visit 1")
		p.Call("visit").Ends(http.StatusOK, "visit 2")
		p.Call("visit").Ends(http.StatusOK, "visit 3")
	}},
	{"answer", hasSessions, 3, func(p *harness.Placed) {
		p.Initialize()
		call := p.Call("ask")
		id := call.Has(`"id":("[^"]+"),"method":"roots/list"`)[1]
		p.Say(`"id":` + id + `,"result":{"roots":[{"uri":"file:///a"}]}`)
		call.Ends(http.StatusOK, "1 roots")
	}},
	{"cancel", hasSessions, 3, func(p *harness.Placed) {
		p.Initialize()
		p.Call("wait").Has("begun")
		p.Say(fmt.Sprintf(`"method":"notifications/cancelled","params":{"requestId":%d}`, p.Ids))
		p.HasEnded()
	}},
	{"delete", hasSessions, 4, func(p *harness.Placed) {
		p.Initialize()
		p.Call("wait").Has("begun")
		p.Send(http.MethodDelete, "", nil).Ends(http.StatusNoContent, "")
		p.HasEnded()
		p.Request("ping", "").Ends(http.StatusNotFound, "Session not found")
	}},
	{"level", hasSessions, 4, func(p *harness.Placed) {
		p.Initialize()
		p.Call("log_info").Ends(http.StatusOK, "an info")
		p.Request("logging/setLevel", `"level":"error"`).Ends(http.StatusOK, `"result"`)
		if text := p.Call("log_info").Ends(http.StatusOK, "logged"); strings.Contains(text, "an info") {
			p.Errorf("below the level: %s", text)
		}
	}},
	{"resource", hasSessions, 4, func(p *harness.Placed) {
		p.Initialize()
		p.Request("resources/subscribe", `"uri":"config://app"`).Ends(http.StatusOK, `"result"`)
		listening := p.Send(http.MethodGet, "", nil)
		p.Server().ResourceUpdated("config://app")
		listening.Has("resources/updated")
	}},
	{"list", hasSessions, 3, func(p *harness.Placed) {
		p.Initialize()
		listening := p.Send(http.MethodGet, "", nil)
		p.Request("ping", "").Ends(http.StatusOK, `"result"`) // the replica begins to serve, if it has not yet
		p.Servers[p.Last].Remove(mcp.KindTool, "choose")
		listening.Has("tools/list_changed")
	}},
	{"message", hasSessions, 3, func(p *harness.Placed) {
		p.Initialize()
		listening := p.Send(http.MethodGet, "", nil)
		if err := p.Server().Notify(p.Session, "notifications/message", map[string]any{"level": "info", "data": "a notice"}); err != nil {
			p.Error(err)
		}
		listening.Has("a notice")
	}},
	{"stream taken over", hasSessions, 4, func(p *harness.Placed) {
		p.Initialize()
		p.Send(http.MethodGet, "", nil)
		listening := p.Send(http.MethodGet, "", nil)
		if err := p.Server().Notify(p.Session, "notifications/message", map[string]any{"level": "info", "data": "a notice"}); err != nil {
			p.Error(err)
		}
		listening.Has("a notice")
	}},
	{"resumption", func(rev protocol.Revision) bool { return rev.Has(protocol.FeatureResumableStreams) }, 4, func(p *harness.Placed) {
		p.Initialize()
		call := p.Call("ask")
		event := call.Has(`^id: (.*)\n`)[1]
		id := call.Has(`"id":("[^"]+"),"method":"roots/list"`)[1]
		call.Leave()
		p.Say(`"id":` + id + `,"result":{"roots":[{"uri":"file:///a"}]}`)
		p.Send(http.MethodGet, "", http.Header{"Last-Event-Id": {event}}).Has("1 roots")
	}},
	{"question", protocol.Revision.Modern, 2, func(p *harness.Placed) {
		state := p.Call("choose").Has(`"requestState":"([^"]*)"`)[1]
		p.Request("tools/call", `"name":"choose","requestState":"`+state+`","inputResponses":{"yes":{"action":"accept","content":{"yes":true}}}`).Ends(http.StatusOK, "chosen: true")
	}},
	{"task", protocol.Revision.Modern, 4, func(p *harness.Placed) {
		task := `"taskId":"` + p.Call("confirm").Has(`"taskId":"([^"]*)"`)[1] + `"`
		synctest.Wait()
		p.Request("tasks/get", task).Ends(http.StatusOK, `"input_required"`)
		p.Request("tasks/update", task+`,"inputResponses":{"sure":{"action":"accept","content":{"yes":true}}}`).Ends(http.StatusOK, `"complete"`)
		synctest.Wait()
		p.Request("tasks/get", task).Ends(http.StatusOK, "sure: true")
	}},
	{"cancelled task", protocol.Revision.Modern, 3, func(p *harness.Placed) {
		task := `"taskId":"` + p.Call("confirm").Has(`"taskId":"([^"]*)"`)[1] + `"`
		p.Request("tasks/cancel", task).Ends(http.StatusOK, `"complete"`)
		p.Request("tasks/get", task).Ends(http.StatusOK, `"cancelled"`)
	}},
}

// Wherever the steps of a client go, it meets one server.
func TestPlacements(t *testing.T) {
	for _, scenario := range scenarios {
		runPlaced(t, scenario, func() scale.Store { return scale.NewLocal() }, time.Second)
	}
}

// deafStore is a Store whose hints are lost.
type deafStore struct{ scale.Store }

func (s deafStore) Watch(func(string, scale.Message), func()) scale.Watcher {
	return s.Store.Watch(func(string, scale.Message) {}, func() {})
}

// Answers and cancellations whose hints are lost reach the replica of their call all
// the same.
func TestPlacementsWithoutHints(t *testing.T) {
	for _, scenario := range scenarios {
		if scenario.name == "answer" || scenario.name == "cancel" {
			runPlaced(t, scenario, func() scale.Store { return deafStore{scale.NewLocal()} }, 5500*time.Millisecond)
		}
	}
}

// runPlaced runs a scenario at all placements in all its revisions, each of which may
// take so long.
func runPlaced(t *testing.T, s scenario, store func() scale.Store, most time.Duration) {
	for _, rev := range testdep.Revisions() {
		if !s.in(rev) {
			continue
		}
		for _, placement := range placements(s.steps) {
			t.Run(fmt.Sprintf("%s/%s/%v", s.name, rev, placement), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					began := time.Now()
					p := harness.NewPlaced(t, rev, store(), placement)
					s.run(p)
					if len(p.Next) > 0 {
						t.Errorf("%d steps are left", len(p.Next))
					}
					if took := time.Since(began); took > most {
						t.Errorf("it took %v: a message was lost, or looked for too late", took)
					}
				})
			})
		}
	}
}

// placements returns all ways to place steps on replicas, of which those that
// differ by the names of the replicas alone are one.
func placements(steps int) [][]int {
	all := [][]int{{}}
	for range steps {
		var longer [][]int
		for _, placement := range all {
			used := 0
			for _, replica := range placement {
				used = max(used, replica+1)
			}
			for replica := range min(used+1, 4) {
				longer = append(longer, append(placement[:len(placement):len(placement)], replica))
			}
		}
		all = longer
	}
	return all
}
