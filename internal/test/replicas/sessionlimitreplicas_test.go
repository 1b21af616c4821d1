package replicas_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/scale"
)

// Over all replicas of a store, sessions that were opened have ended or are alive,
// wherever they were opened, used and deleted; nothing is left of a replica that has
// shut down.
func TestSessionsSumOverReplicas(t *testing.T) {
	store := scale.NewLocal()
	var servers [3]*mcp.Server
	var events [3]harness.EventLog
	var urls [3]string
	for i := range servers {
		servers[i] = harness.Fixture(t, &mcp.Options{Store: store, StateKeys: harness.SharedKeys})
		events[i].Observe(servers[i])
		web := httptest.NewServer(servers[i].Handler())
		t.Cleanup(web.Close)
		urls[i] = web.URL
	}
	const n = 30
	var ids [n]string
	for i := range ids {
		ids[i] = sessionAt(t, urls[i%3])
		use(t, urls[(i+1)%3], ids[i], http.MethodPost)
		if i%2 == 0 {
			use(t, urls[(i+2)%3], ids[i], http.MethodDelete)
		}
	}
	if err := servers[0].Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	alive := 0
	for _, id := range ids {
		if use(t, urls[1], id, http.MethodPost) == http.StatusOK {
			alive++
		}
	}
	sum := func() (opened, ended int) {
		for i := range events {
			opened += events[i].Of("session.opened", "")
			ended += events[i].Of("session.ended", "")
		}
		return opened, ended
	}
	// The first DELETE is the first request that its replica serves.
	if opened, ended := sum(); alive != n/2 || opened != n || opened != ended+alive {
		t.Errorf("%d opened, %d ended, %d alive", opened, ended, alive)
	}
	for _, s := range servers[1:] {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for i, s := range servers {
		if now := s.Stats(); now.Sessions.Now+now.Streams.Now+now.Connections.Now+now.Tasks.Now+now.Requests.Now != 0 {
			t.Errorf("replica %d has %+v", i, now)
		}
	}
}

func sessionAt(t *testing.T, url string) string {
	res := (&harness.Refusing{T: t, URL: url}).Do(http.MethodPost, "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{`+harness.Hello("2025-11-25")+`}}`)
	return res.Header.Get("Mcp-Session-Id")
}

func use(t *testing.T, url, id, method string) int {
	body := harness.Pinged
	if method == http.MethodDelete {
		body = ""
	}
	return (&harness.Refusing{T: t, URL: url}).Do(method, "", body, "Mcp-Session-Id: "+id).StatusCode
}
