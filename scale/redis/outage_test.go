//go:build unix

package redis

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

var outage = flag.Duration("outage", 3*time.Second, "how long the engine is away in TestOutage")

// measured tells whether memory and small times are judged: in an outage that is long
// enough to tell, on a machine that does nothing else.
func measured() bool { return *outage >= 30*time.Second }

// requester makes requests as a client does that knows nothing but HTTP.
type requester struct {
	t            *testing.T
	url, session string
}

// post sends a message, in a session or as a modern request.
func (r *requester) post(body string, modern bool) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodPost, r.url, strings.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if modern {
		req.Header["Mcp-Protocol-Version"], req.Header["Mcp-Method"], req.Header["Mcp-Name"] = []string{"2026-07-28"}, []string{"tools/call"}, []string{"add"}
	} else if r.session != "" {
		req.Header["Mcp-Protocol-Version"], req.Header["Mcp-Session-Id"] = []string{"2025-11-25"}, []string{r.session}
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	return res
}

// answer is post for an answer that is read at once.
func (r *requester) answer(body string, modern bool) (status int, text string) {
	r.t.Helper()
	res := r.post(body, modern)
	defer res.Body.Close()
	all, err := io.ReadAll(res.Body)
	if err != nil {
		r.t.Error(err)
	}
	if res.StatusCode == http.StatusServiceUnavailable && res.Header.Get("Retry-After") == "" {
		r.t.Error("503 without Retry-After")
	}
	return res.StatusCode, string(all)
}

// asked makes a call that asks something, and returns its stream and the question's id.
func (r *requester) asked() (stream *bufio.Reader, id string) {
	r.t.Helper()
	var res *http.Response
	eventually(r.t, "a call that asks", func() bool {
		res = r.post(ask, false)
		if res.StatusCode == http.StatusServiceUnavailable {
			_ = res.Body.Close()
			return false
		}
		return true
	})
	r.t.Cleanup(func() { _ = res.Body.Close() })
	stream = bufio.NewReader(res.Body)
	_, id, _ = strings.Cut(event(r.t, stream, `"method":"roots/list"`), `"id":`)
	id, _, _ = strings.Cut(id, ",")
	return stream, id
}

const (
	initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{}},"clientInfo":{"name":"outage","version":"1"}}}`
	visit      = `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"visit","arguments":{}}}`
	ask        = `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"ask","arguments":{}}}`
	add        = `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"add","arguments":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"outage","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`
)

// While the engine is away, modern calls go on, and what belongs to a session is
// refused for now, soon, and never as if the session were gone. Afterwards
// everything goes on, with what was there before: also a question that was open.
func TestOutage(t *testing.T) {
	for name, away := range map[string]func(e *server, o Options) (back func()){
		"it dies": func(e *server, o Options) func() {
			e.kill()
			return func() {
				e.run()
				e.say(append([]string{"ACL", "SETUSER", o.Prefix, "reset", "on", ">secret-" + o.Prefix}, strings.Fields(ACL(o.Prefix))...)...)
			}
		},
		"it stops": func(e *server, _ Options) func() { return e.stop() },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "it stops" {
				testdep.NoRace(t, "the Store does the same when the engine dies")
			}
			engine := start(t, "--appendonly", "yes", "--appendfsync", "always")
			o := user(t, engine)
			var handlers []http.Handler
			for range 3 {
				s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1"}, &mcp.Options{Store: open(t, o), StateKeys: [][]byte{[]byte("a secret of 16 bytes or more")}})
				s.MustAdd(
					mcp.Tool("add", func(*mcp.Frame, nothing) (int, error) { return 1, nil }),
					mcp.Tool("visit", func(f *mcp.Frame, _ nothing) (int, error) {
						return visits.Update(f, func(n int) int { return n + 1 }), nil
					}),
					mcp.Tool("ask", func(f *mcp.Frame, _ nothing) (string, error) {
						roots, err := frame.Roots(f, "roots")
						return fmt.Sprint(len(roots), " roots"), err
					}),
				)
				t.Cleanup(func() { _ = s.Shutdown(t.Context()) })
				handlers = append(handlers, s.Handler())
			}
			web := httptest.NewServer(testcmd.RoundRobin(handlers...))
			t.Cleanup(web.Close)
			client := &requester{t: t, url: web.URL}
			res := client.post(initialize, false)
			_ = res.Body.Close()
			client.session = res.Header.Get("Mcp-Session-Id")
			if status, text := client.answer(`{"jsonrpc":"2.0","method":"notifications/initialized"}`, false); status != http.StatusAccepted {
				t.Fatalf("%d %s", status, text)
			}
			for want := range 3 {
				if status, text := client.answer(visit, false); status != http.StatusOK || !strings.Contains(text, fmt.Sprintf(`"structuredContent":%d`, want+1)) && !strings.Contains(text, fmt.Sprintf(`"text":"%d"`, want+1)) {
					t.Fatalf("visit: %d %s", status, text)
				}
			}
			stream, id := client.asked()

			modern := func(took *times, end time.Time) {
				for time.Now().Before(end) {
					begun := time.Now()
					if status, text := client.answer(add, true); status != http.StatusOK {
						t.Errorf("a modern call: %d %s", status, text)
						break
					}
					took.add(time.Since(begun))
				}
			}
			with, without, refused := newTimes(), newTimes(), newTimes()
			var calling sync.WaitGroup
			pings, before := 0, time.Now().Add(*outage/3)
			calling.Go(func() {
				for ; time.Now().Before(before); pings++ {
					client.answer(`{"jsonrpc":"2.0","id":5,"method":"ping"}`, false)
				}
			})
			modern(with, before)
			calling.Wait()
			goroutines, memory := footprint(t)

			goOn := away(engine, o)
			end := time.Now().Add(*outage)
			calling.Go(func() {
				modern(without, end)
				t.Logf("%d modern calls; half took %v at most, 99 of 100 %v, the slowest %v; with the engine %v, %v and %v: %.2f, %.2f times as long", without.n,
					without.at(50), without.at(99), without.slowest, with.at(50), with.at(99), with.slowest,
					float64(without.at(50))/float64(with.at(50)), float64(without.at(99))/float64(with.at(99)))
			})
			waited, pace := 0, time.NewTicker(*outage/3/time.Duration(pings+1)) // as much beside modern calls as before
			defer pace.Stop()
			for ; time.Now().Before(end); <-pace.C {
				begun := time.Now()
				if status, text := client.answer(visit, false); status != http.StatusServiceUnavailable {
					t.Errorf("a legacy call: %d %s", status, text)
					break
				}
				if took := time.Since(begun); refused.add(took) >= time.Second/2 {
					waited++
				}
			}
			calling.Wait()
			judgeRefusals(t, refused, waited)
			quiet := func(when string) {
				var threads, now int
				eventually(t, "no more goroutines "+when, func() bool {
					threads, now = footprint(t)
					return threads <= goroutines+goroutines/20
				})
				more, grown := percent(threads, goroutines), percent(now, memory)
				t.Logf("%s there are %d goroutines and %d KiB in memory, before %d and %d: %+.1f and %+.1f %%", when, threads, now>>10, goroutines, memory>>10, more, grown)
				if measured() && max(grown, -grown) > 5 {
					t.Errorf("%s there is %+.1f %% more in memory", when, grown)
				}
			}
			quiet("at its end")
			goOn()
			back := time.Now()
			var status int
			var text string
			eventually(t, "the session is served again", func() bool {
				status, text = client.answer(visit, false)
				return status != http.StatusServiceUnavailable
			})
			took := time.Since(back)
			t.Logf("served again %v after the engine was back", took)
			if took > 5*time.Second { // a second on a quiet machine
				t.Errorf("served again after %v", took)
			}
			if status != http.StatusOK || !strings.Contains(text, `4`) {
				t.Errorf("the visit after the outage: %d %s", status, text)
			}
			reply := func(when string) {
				eventually(t, "the answer is taken", func() bool {
					status, _ := client.answer(`{"jsonrpc":"2.0","id":`+id+`,"result":{"roots":[{"uri":"file:///a"},{"uri":"file:///b"}]}}`, false)
					return status == http.StatusAccepted
				})
				if text := event(t, stream, `"id":3`); !strings.Contains(text, "2 roots") {
					t.Errorf("the question from %s: %s", when, text)
				}
				if _, err := io.Copy(io.Discard, stream); err != nil {
					t.Error(err)
				}
			}
			reply("before")
			stream, id = client.asked()
			quiet("afterwards")
			reply("afterwards")
		})
	}
}

// percent is how much more n is than it was.
func percent(n, was int) float64 { return 100 * float64(n-was) / float64(max(was, 1)) }

// footprint waits until no goroutine ends any more, such as those of connections that are
// closed, and returns how many there are, and how much memory is in use.
func footprint(t *testing.T) (goroutines, memory int) {
	t.Helper()
	last, since := 0, time.Now()
	eventually(t, "as many goroutines as before", func() bool {
		http.DefaultClient.CloseIdleConnections()
		if n := runtime.NumGoroutine(); n != last {
			last, since = n, time.Now()
		}
		return time.Since(since) > time.Second/2
	})
	debug.FreeOSMemory()
	return last, resident(t)
}

// judgeRefusals says how long refused calls have waited: few for the engine, as long
// as one may, and the others for nothing.
func judgeRefusals(t *testing.T, took *times, waited int) {
	t.Helper()
	if took.n == 0 {
		t.Error("no call was refused")
		return
	}
	t.Logf("%d legacy calls were refused: %d had waited, the slowest %v; half took %v at most, 99 of 100 %v",
		took.n, waited, took.slowest, took.at(50), took.at(99))
	if took.slowest > 5*time.Second { // of a second on a quiet machine
		t.Errorf("a refusal took %v", took.slowest)
	}
	if most := 3 * maxFailures; waited > most || measured() && took.at(50) > 5*time.Millisecond {
		t.Errorf("%d calls have waited, want %d at most; half of all took %v", waited, most, took.at(50))
	}
}

// times are how long calls took. They use as much memory however many there are.
type times struct {
	n       int
	slowest time.Duration
	counts  []uint32 // by the unit; the last has all that took longer
}

const unit = 5 * time.Microsecond

func newTimes() *times { return &times{counts: make([]uint32, 20*time.Millisecond/unit)} }

func (t *times) add(took time.Duration) time.Duration {
	t.n++
	t.slowest = max(t.slowest, took)
	t.counts[min(int(took/unit), len(t.counts)-1)]++
	return took
}

// at is what so many percent took at most: 20 ms where it is that or more, 0 of none.
func (t *times) at(percent int) time.Duration {
	left := t.n * percent / 100
	for i, n := range t.counts {
		if left -= int(n); left < 0 {
			return time.Duration(i+1) * unit
		}
	}
	return 0
}

// resident is how many bytes of memory this process has; 0 where Linux does not say it.
func resident(t *testing.T) (bytes int) {
	t.Helper()
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0
	}
	var size, pages int
	_, _ = fmt.Sscan(string(text), &size, &pages)
	return pages * os.Getpagesize()
}

// event reads a stream up to the event that has a text, and returns that.
func event(t *testing.T, stream *bufio.Reader, with string) string {
	t.Helper()
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			t.Fatalf("the stream ends before %s: %v", with, err)
		}
		if strings.HasPrefix(line, "data:") && strings.Contains(line, with) {
			return line
		}
	}
}
