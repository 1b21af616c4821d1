//go:build unix

package redis

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	neturl "net/url"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/test/testcmd"
	"github.com/talaria-go/mcp/internal/test/testexec"
	"github.com/talaria-go/mcp/protocol"
)

// shop starts processes of the example, over TLS, with a user of the engine who has
// the rights that it prints. url is that of a balancer before them.
func shop(t *testing.T, n int, grace time.Duration) (processes []*process, url string) {
	t.Helper()
	cert, key, _ := certificate(t)
	port := strconv.Itoa(freePort(t))
	engine := start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	program := build(t, "./example")
	rules, err := exec.Command(program, "-acl").Output()
	if err != nil {
		t.Fatal(err)
	}
	engine.say(append([]string{"ACL", "SETUSER", "shop", "reset", "on", ">password"}, strings.Fields(string(rules))...)...)
	env := []string{"REDIS_URL=rediss://shop:password@127.0.0.1:" + port, "SSL_CERT_FILE=" + cert, "STATE_KEYS=new: 16 bytes and more,old: 16 bytes and more"}
	var handlers []http.Handler
	for range n {
		address := testexec.FreeAddr(t)
		p := launch(t, false, env, program, "-http", address, "-grace", grace.String())
		p.said = address
		eventually(t, "it serves", func() bool {
			res, err := http.Get("http://" + address + "/readyz")
			return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
		})
		processes, handlers = append(processes, p), append(handlers, testcmd.Proxy(&neturl.URL{Scheme: "http", Host: address}))
	}
	web := httptest.NewServer(testcmd.RoundRobin(handlers...))
	t.Cleanup(web.Close)
	return processes, web.URL + "/mcp"
}

// Processes of the example are one server, and each ends as it is told to.
func TestExample(t *testing.T) {
	processes, url := shop(t, 2, 2*time.Second)
	c, err := client.Connect(t.Context(), client.HTTP(url, nil), &client.Options{Revisions: []protocol.Revision{protocol.V20251125}})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, name := range []string{"tea", "milk", "sugar", "cups"} {
		want = append(want, name)
		if r, err := c.Call(t.Context(), "put", map[string]string{"name": name}); err != nil || r.Text() != strings.Join(want, ", ") {
			t.Errorf("put %s: %v, %v", name, r, err)
		}
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	for _, p := range processes {
		p.end(t)
	}
}

// A process that is told to end, and killed when its time is up, loses nothing: a
// client that has sent half of a request keeps it from ending early, and others
// use it as long as it serves.
func TestKilledAfterItsGrace(t *testing.T) {
	const killed = 3 * time.Second
	processes, url := shop(t, 2, killed*9/10)
	half, err := net.Dial("tcp", processes[0].said)
	if err != nil {
		t.Fatal(err)
	}
	defer half.Close()
	if _, err := io.WriteString(half, "POST /mcp HTTP/1.1\r\nHost: "+processes[0].said+"\r\nContent-Type: application/json\r\n"+
		"Accept: application/json, text/event-stream\r\nContent-Length: 1000\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	var using sync.WaitGroup
	served := make([]int, 4) // after the signal
	for i := range served {
		c, err := client.Connect(t.Context(), client.HTTP(url, nil), &client.Options{Revisions: []protocol.Revision{protocol.V20251125}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		using.Go(func() {
			var sure []string // what was put for certain
			for n := 0; ; n++ {
				select {
				case <-over:
					r, err := c.Call(t.Context(), "put", map[string]string{"name": "last"})
					for goes := 1; err != nil && goes < 50; goes++ { // some go to the process that is no more
						r, err = c.Call(t.Context(), "put", map[string]string{"name": "last"})
					}
					if err != nil {
						t.Errorf("client %d: %v", i, err)
						return
					}
					there := strings.Split(r.Text(), ", ")
					for _, name := range sure {
						at := slices.Index(there, name)
						if at < 0 {
							t.Errorf("client %d: %s is lost, or was moved", i, name)
							return
						}
						there = there[at+1:]
					}
					served[i] = len(sure)
					return
				default:
				}
				name := strconv.Itoa(n)
				if _, err := c.Call(t.Context(), "put", map[string]string{"name": name}); err == nil {
					sure = append(sure, name)
				}
			}
		})
	}
	if err := processes[0].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(killed, func() { _ = processes[0].Process.Kill() })
	err = <-processes[0].ended
	processes[0].ended <- nil
	t.Logf("the process ended: %v", err)
	close(over)
	using.Wait()
	if slices.Contains(served, 0) {
		t.Errorf("calls that were served: %v", served)
	}
}

// What is wrong with the environment is said.
func TestExampleExplains(t *testing.T) {
	program := build(t, "./example")
	for _, test := range []struct{ url, keys, want string }{
		{"redis://127.0.0.1:1", "", "STATE_KEYS"},
		{"redis://127.0.0.1:1", "a secret of 16 bytes or more,short", "STATE_KEYS"},
		{"", "a secret of 16 bytes or more", "REDIS_URL"},
		{"redis://me:hidden@127.0.0.1:1", "a secret of 16 bytes or more", "REDIS_URL"},
	} {
		cmd := exec.Command(program, "-http", "127.0.0.1:0")
		cmd.Env = append(os.Environ(), "REDIS_URL="+test.url, "STATE_KEYS="+test.keys)
		out, err := cmd.CombinedOutput()
		if err == nil || !strings.Contains(string(out), test.want) || strings.Contains(string(out), "hidden") {
			t.Errorf("%q: %v, %s", test.url, err, out)
		}
	}
}

// A replica ends as it is told to.
func TestReplicaEnds(t *testing.T) {
	o := user(t, start(t))
	launch(t, true, nil, build(t, "./cmd/replica"), "-http", "127.0.0.1:0", "-redis", o.URL, "-prefix", o.Prefix).end(t)
}

// The rights that the documentation shows are those that the tests use.
func TestDocumentedACL(t *testing.T) {
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil || !strings.Contains(string(page), "\n"+ACL("shop")+"\n") {
		t.Errorf("docs/scale.md has not the line %s: %v", ACL("shop"), err)
	}
}
