package oidc

import (
	"bufio"
	"context"
	"net"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	front "github.com/talaria-go/mcp/auth/broker"
	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestBrokerConformance has the official suite judge the broker: its metadata, and a
// login of the suite's client.
func TestBrokerConformance(t *testing.T) {
	const how = "run it by e2e/run broker"
	node, modules := testdep.Env(t, "E2E_NODE", how), testdep.Env(t, "E2E_MODULES", how)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	l.Close() // for the suite
	p := newProvider(t)
	endpoint, issuer, _ := newDoor(t, p, front.Client{ID: "suite", Name: "Suite", RedirectURIs: []string{"http://127.0.0.1:" + port + "/callback"}})
	suite := filepath.Join(modules, "@modelcontextprotocol", "conformance", "dist", "index.js")
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute) // the suite waits for five
	defer cancel()
	cmd := exec.CommandContext(ctx, node, suite, "authorization", "--url", issuer, "--resource", endpoint, "--client-id", "suite", "--port", port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said []string
	visits, done := 0, make(chan error, 1)
	where, ready := "", false // the suite names the address before it listens
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if said = append(said, line); strings.HasPrefix(line, issuer+"/authorize?") {
			where = line
		}
		ready = ready || strings.HasPrefix(line, "Callback server started")
		if ready && where != "" && visits == 0 {
			visits++
			err := p.visitSuite(ctx, where)
			if done <- err; err != nil {
				cancel()
			}
		}
	}
	failed := cmd.Wait()
	if visits != 1 {
		t.Fatalf("the suite made %d visits:\n%s", visits, strings.Join(said, "\n"))
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if failed != nil {
		t.Errorf("the suite: %v", failed)
	}
	if last := said[len(said)-1]; last != "Total: 3 passed, 0 failed" {
		t.Errorf("the suite says %q:\n%s", last, strings.Join(said, "\n"))
	}
}
