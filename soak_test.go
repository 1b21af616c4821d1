package mcp_test

import (
	"bufio"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/transport/streamable"
)

var soak = flag.Duration("soak", 0, "how long TestSoak runs; 0 means a number of calls")

// TestSoak has 16 clients at once call good tools, panicking tools and no
// tools, send garbage, go away in the middle and read nothing. Every good call
// must be answered right, and nothing may be left behind.
func TestSoak(t *testing.T) {
	s := fixture(t, &mcp.Options{HTTP: streamable.Options{WriteTimeout: time.Second}})
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	tr := &http.Transport{MaxIdleConnsPerHost: 16}
	client := &soakClient{t: t, url: server.URL, addr: server.Listener.Addr().String(), http: &http.Client{Transport: tr}}
	client.round(rand.New(rand.NewPCG(0, 0)), 1) // so that the baseline has what is made once
	goroutines, heap := settle(tr)
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(worker)))
			begin := time.Now()
			for i := 0; *soak == 0 && i < 60 || time.Since(begin) < *soak; i++ {
				client.round(random, worker*1_000_000+i)
			}
		})
	}
	all.Wait()
	afterGoroutines, afterHeap := settle(tr)
	if afterGoroutines > goroutines+4 {
		t.Errorf("%d goroutines, %d before", afterGoroutines, goroutines)
	}
	if afterHeap > heap+8<<20 {
		t.Errorf("the heap grew from %d to %d bytes", heap, afterHeap)
	}
}

// settle closes idle connections, waits until the goroutines they had are
// gone, and returns what is left.
func settle(tr *http.Transport) (goroutines int, heap uint64) {
	last := -1
	for range 200 {
		tr.CloseIdleConnections()
		runtime.GC()
		if n := runtime.NumGoroutine(); n == last {
			break
		} else {
			last = n
		}
		<-time.After(20 * time.Millisecond) // connections close on their own time
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return last, m.HeapAlloc
}

type soakClient struct {
	t    *testing.T
	url  string
	addr string
	http *http.Client
}

func (c *soakClient) round(random *rand.Rand, id int) {
	switch random.IntN(8) {
	case 0:
		c.expect(id, "panic", `{}`, "the handler panicked")
	case 1:
		c.post("tools/call", "add", `{"jsonrpc":"2.0","id":1,"method":`)
	case 2:
		c.raw(id, "progress", false) // reads nothing and goes away
	case 3:
		c.raw(id, "slow", true) // goes away in the middle
	case 4:
		c.expect(id, "progress", `{}`, `"text":"done"`)
	default:
		a := random.IntN(1000)
		c.expect(id, "add", fmt.Sprintf(`{"a":%d,"b":%d}`, a, id), fmt.Sprintf(`"structuredContent":{"sum":%d}`, a+id))
	}
}

func message(id int, tool, args string) string {
	return expand(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":%q,"arguments":%s,$META+,"progressToken":%d}}}`, id, tool, args, id), protocol.Latest)
}

func (c *soakClient) expect(id int, tool, args, want string) {
	answer := c.post("tools/call", tool, message(id, tool, args))
	if !strings.Contains(answer, want) || !strings.Contains(answer, fmt.Sprintf(`"id":%d,`, id)) {
		c.t.Errorf("%s(%s), id %d: %s", tool, args, id, answer)
	}
}

func (c *soakClient) post(method, name, body string) string {
	req, err := http.NewRequest(http.MethodPost, c.url, strings.NewReader(body))
	if err != nil {
		c.t.Error(err)
		return ""
	}
	req.Header = http.Header{
		"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"},
		"Mcp-Protocol-Version": {protocol.Latest.String()}, "Mcp-Method": {method}, "Mcp-Name": {name},
	}
	res, err := c.http.Do(req)
	if err != nil {
		c.t.Error(err)
		return ""
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		c.t.Error(err)
	}
	return string(text)
}

// raw sends a call over a connection of its own and closes it, after the first
// byte of the answer or at once.
func (c *soakClient) raw(id int, tool string, atOnce bool) {
	conn, err := net.Dial("tcp", c.addr)
	if err != nil {
		c.t.Error(err)
		return
	}
	defer conn.Close()
	body := message(id, tool, "{}")
	fmt.Fprintf(conn, "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAccept: text/event-stream, application/json\r\n"+
		"MCP-Protocol-Version: %s\r\nMcp-Method: tools/call\r\nMcp-Name: %s\r\nContent-Length: %d\r\n\r\n%s", protocol.Latest, tool, len(body), body)
	if !atOnce {
		_, _ = bufio.NewReader(conn).ReadByte()
	}
}
