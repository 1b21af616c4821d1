//go:build unix

package redis

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/testserver"
	"github.com/talaria-go/mcp/internal/undertest"
	"github.com/talaria-go/mcp/protocol"
)

// Processes of the example are one server, over TLS, with a user of the engine who
// has the rights that it prints; and each ends as it is told to.
func TestExample(t *testing.T) {
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
	var processes []*process
	var handlers []http.Handler
	for range 2 {
		address := testserver.Address(t)
		p := launch(t, false, env, program, "-http", address, "-drain", "0s")
		eventually(t, "it serves", func() bool {
			res, err := http.Get("http://" + address + "/healthz")
			return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
		})
		processes, handlers = append(processes, p), append(handlers, undertest.Proxy(&url.URL{Scheme: "http", Host: address}))
	}
	web := httptest.NewServer(undertest.RoundRobin(handlers...))
	t.Cleanup(web.Close)
	c, err := client.Connect(t.Context(), client.HTTP(web.URL+"/mcp", nil), &client.Options{Revisions: []protocol.Revision{protocol.V20251125}})
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
