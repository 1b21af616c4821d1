package limits_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/conn"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/internal/tasks"
	"github.com/talaria-go/mcp/internal/test/harness"
	"github.com/talaria-go/mcp/internal/test/testproc"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/middleware"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/session"
)

const kib, mib = 1 << 10, 1 << 20

// TestKept holds the table of docs/limits.md, "Server memory",
// to what is so: its totals are those of the defaults, and each way of filling
// what they are for, with the input that costs the most, takes no more of the
// heap than the limit that was set, and one of them half of it at least.
func TestKept(t *testing.T) {
	if !testproc.Isolated(t) {
		return
	}
	totals := keptTotals(t)
	for _, row := range []struct {
		what  string
		total int // by default
		fills map[string]func(t *testing.T) (kept any, limit int)
	}{
		{"clients of sessions", defaultBudget + defaultSessions*2*kib, map[string]func(t *testing.T) (any, int){
			"a long name":  keepClients(`{"name":"`+strings.Repeat("n", 32*kib-100)+`","version":"1"}`, `{}`),
			"icons":        keepClients(`{"name":"n","version":"1","icons":[`+list(240, func(int) string { return `{"src":"` + strings.Repeat("s", 112) + `"}` })+`]}`, `{}`),
			"capabilities": keepClients(`{"name":"n","version":"1"}`, `{"experimental":{`+list(240, func(n int) string { return fmt.Sprintf(`"%03d":"%s"`, n, strings.Repeat("x", 120)) })+`}}`),
		}},
		{"messages of sessions", defaultBudget, map[string]func(t *testing.T) (any, int){
			"long ones that wait":  keepMessages(defaultEvent),
			"short ones that wait": keepMessages(100 * kib),
		}},
		{"URIs that sessions subscribed to", defaultBudget, map[string]func(t *testing.T) (any, int){
			"short": keepURIs(8), "long": keepURIs(wire.MaxURI),
		}},
		{"subscriptions", conn.MaxTopics, map[string]func(t *testing.T) (any, int){
			"short": keepTopics(8), "long": keepTopics(wire.MaxURI),
		}},
		{"tasks", tasks.DefaultMemory + tasks.DefaultMax*2*kib, map[string]func(t *testing.T) (any, int){
			"long results": keepTasks(mib), "short results": keepTasks(10),
		}},
		{"clients of RateLimit", 200_000*320 + 10_000*kib, map[string]func(t *testing.T) (any, int){
			"names that do not exist": keepLimits, "of more clients": keepManyLimits,
		}},
		{"verified tokens", 10_000 * (longestToken + kib), map[string]func(t *testing.T) (any, int){
			"the longest": keepTokens,
		}},
	} {
		if got, ok := totals[row.what]; !ok || got != (row.total+mib-1)/mib {
			t.Errorf("the table says %d MiB for %s (%v); the defaults come to %d bytes, %d MiB", got, row.what, ok, row.total, (row.total+mib-1)/mib)
		}
		most := 0.0 // of a limit
		for way, fill := range row.fills {
			t.Run(row.what+", "+way, func(t *testing.T) {
				for tries := 3; ; tries-- { // what earlier tests have left may go meanwhile
					before := heapInUse()
					kept, limit := fill(t)
					got := heapInUse() - before
					runtime.KeepAlive(kept)
					t.Logf("%.2f MB of %.2f MB", mb(got), mb(limit))
					most = max(most, float64(got)/float64(limit))
					fits := got > 0 && got <= limit*11/10
					if fits && (tries == 1 || got >= limit/2) {
						return
					}
					if tries == 1 {
						t.Fatalf("%d bytes are kept, where the limits come to %d", got, limit)
					}
				}
			})
		}
		if most < 0.5 {
			t.Errorf("%s: no way takes more than %.2f of the limit: it is not the limit of anything", row.what, most)
		}
	}
}

// keptTotals reads the column "in all" of the table, in MiB.
func keptTotals(t *testing.T) map[string]int {
	t.Helper()
	text, err := os.ReadFile("../../../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	_, part, _ := strings.Cut(string(text), "## Server memory\n")
	part, _, _ = strings.Cut(part, "\n## ")
	totals := map[string]int{}
	for line := range strings.Lines(part) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 {
			continue
		}
		number, ok := strings.CutSuffix(strings.TrimSpace(cells[4]), " MiB")
		if n, err := strconv.Atoi(number); ok && err == nil {
			totals[strings.TrimSpace(cells[1])] = n
		}
	}
	return totals
}

func list(n int, item func(n int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

// keepClients opens sessions whose clients say that of themselves.
func keepClients(info, capabilities string) func(t *testing.T) (any, int) {
	return func(t *testing.T) (any, int) {
		const sessions = 200
		const memory = 8 * mib
		s := harness.Fixture(t, &mcp.Options{Limits: mcp.Limits{ClientMemory: memory}})
		h := s.Handler()
		for range sessions { // each makes room for the next
			body := `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","clientInfo":` + info + `,"capabilities":` + capabilities + `}}`
			d := &harness.BareClient{T: t, H: h, Rev: protocol.V20251125}
			if res := d.Do(http.MethodPost, body); res.Code != http.StatusOK {
				t.Fatalf("%d %s", res.Code, res.Body)
			}
		}
		return s, memory + sessions*2*kib
	}
}

// keepMessages sends sessions messages of that size that nobody fetches.
func keepMessages(size int) func(t *testing.T) (any, int) {
	return func(t *testing.T) (any, int) {
		m := session.NewManager(session.Config{Memory: 16 * mib})
		t.Cleanup(func() { m.Close(context.Background(), mcp.ErrSessionClosed) })
		for n := range 20 {
			x, err := m.Open(t.Context(), core.ClientInfo{Revision: protocol.LatestLegacy})
			if err != nil {
				t.Fatal(err)
			}
			for i := range 64 {
				message := make([]byte, size)
				copy(message, fmt.Sprint(n, i))
				x.Send(message)
			}
		}
		return m, 16 * mib
	}
}

// keepURIs lets sessions subscribe to URIs of that length until they are refused.
func keepURIs(length int) func(t *testing.T) (any, int) {
	return func(t *testing.T) (any, int) {
		m := session.NewManager(session.Config{URIMemory: 8 * mib})
		t.Cleanup(func() { m.Close(context.Background(), mcp.ErrSessionClosed) })
		for full := false; !full; {
			x, err := m.Open(t.Context(), core.ClientInfo{Revision: protocol.LatestLegacy})
			if err != nil {
				t.Fatal(err)
			}
			full = !x.Subscribe(fmt.Sprintf("%0*d", length, 0), defaultResources)
			for i := 1; i < defaultResources; i++ {
				x.Subscribe(fmt.Sprintf("%0*d", length, i), defaultResources)
			}
		}
		return m, 8 * mib
	}
}

// keepTopics joins a Broker with URIs of that length until it is full.
func keepTopics(length int) func(t *testing.T) (any, int) {
	return func(t *testing.T) (any, int) {
		h := conn.NewBroker(20_000, -1, 0)
		for n := 0; ; n++ {
			topics := make([]string, min(defaultResources, wire.MaxSubscribed/length))
			for i := range topics {
				topics[i] = fmt.Sprintf("%0*d", length, n*defaultResources+i)
			}
			if _, err := h.Join(conn.Subscribing{Topics: topics, Wake: func() {}}); err != nil {
				return h, conn.MaxTopics
			}
		}
	}
}

// keepTasks ends tasks with results of that size until no more may begin.
func keepTasks(size int) func(t *testing.T) (any, int) {
	return func(t *testing.T) (any, int) {
		const n, memory = 2000, 16 * mib
		m := tasks.NewManager(tasks.Config{Max: n, Memory: memory, TTL: time.Hour}, nil)
		for range n {
			task, err := m.Create("", 0, 0, func(error) {})
			if err != nil {
				break
			}
			if err := task.Finish(protocol.TaskCompleted, json.RawMessage(`"`+strings.Repeat("x", size)+`"`), nil); err != nil {
				t.Fatal(err)
			}
		}
		if size > kib {
			return m, memory
		}
		return m, n * 2 * kib
	}
}

// keepLimits calls tools by names that do not exist.
func keepLimits(t *testing.T) (any, int) {
	const clients = 30
	h := middleware.RateLimit(&middleware.RateLimitOptions{Rate: 0.001, MaxClients: clients})(func(*mcp.Frame) (protocol.Result, error) { return nil, nil })
	for c := range 2 * clients {
		for n := range 300 {
			lengths := []int{120}
			if n < 10 {
				lengths = append(lengths, 5000)
			}
			for _, length := range lengths {
				f := frame.Internal(facts.Private{}).New(core.WithPrincipal(t.Context(), fmt.Sprint(c)), core.Config{
					Request: &core.Request{Method: protocol.MethodToolsCall, Params: protocol.Params{Name: fmt.Sprintf("%0*d", length, n)}},
				})
				_, _ = h(f)
			}
		}
	}
	return h, clients * 80 * kib
}

// keepManyLimits calls tools as more clients than may keep as many as one may.
func keepManyLimits(t *testing.T) (any, int) {
	const tools = 20_000
	h := middleware.RateLimit(&middleware.RateLimitOptions{Rate: 0.001, MaxTools: tools})(func(*mcp.Frame) (protocol.Result, error) { return nil, nil })
	const clients = 200
	for c := range clients {
		for n := range 200 {
			f := frame.Internal(facts.Private{}).New(core.WithPrincipal(t.Context(), fmt.Sprint(c)), core.Config{
				Request: &core.Request{Method: protocol.MethodToolsCall, Params: protocol.Params{Name: fmt.Sprintf("%0*d", 120, n)}},
			})
			_, _ = h(f)
		}
	}
	return h, tools*320 + clients*kib
}

// longestToken is how long a token may be, if auth.Options do not say.
const longestToken = 16 * kib

// keepTokens verifies tokens of the greatest length.
func keepTokens(t *testing.T) (any, int) {
	const size = 200
	verify := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		return &auth.Identity{Subject: "alice"}, nil
	})
	resource, err := auth.New("https://example.com/mcp", verify, &auth.Options{CacheSize: size})
	if err != nil {
		t.Fatal(err)
	}
	h := resource.Bearer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	for n := range 2 * size {
		r := httptest.NewRequest(http.MethodPost, "https://example.com/mcp", nil)
		r.Header.Set("Authorization", fmt.Sprintf("Bearer %0*d", longestToken, n))
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != http.StatusOK {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	return h, size * (longestToken + kib)
}
