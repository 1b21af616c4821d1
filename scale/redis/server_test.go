//go:build unix

package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/redis/rueidis"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// server is a redis-server on the loopback address, which the test started.
type server struct {
	t    testing.TB
	port int
	args []string
	cmd  *exec.Cmd
}

// start starts a redis-server with arguments, in a directory of its own.
func start(t testing.TB, args ...string) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t)}
	s.args = append([]string{"--port", strconv.Itoa(s.port), "--bind", "127.0.0.1", "--save", "", "--dir", t.TempDir()}, args...)
	t.Cleanup(s.kill)
	s.run()
	return s
}

// freePort returns a port that nobody listens at, nor at the one that a machine
// of a cluster adds 10,000 for.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		port := l.Addr().(*net.TCPAddr).Port
		_ = l.Close()
		if port < 50_000 {
			return port
		}
	}
	t.Fatal("no port is free")
	return 0
}

// run starts the process, and waits until it answers.
func (s *server) run() {
	s.t.Helper()
	s.cmd = exec.Command(testdep.LookPath(s.t, "redis-server"), s.args...)
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	for stop := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		c, err := net.Dial("tcp", s.address())
		if err == nil {
			_ = c.Close()
			if text, err := s.try("PING"); err == nil && text == "PONG" {
				return
			}
		}
		if time.Now().After(stop) {
			s.t.Fatalf("redis-server %q does not answer: %v", s.args, err)
		}
	}
}

// kill ends the process as a power failure does.
func (s *server) kill() {
	if s.cmd != nil {
		_ = s.cmd.Process.Kill()
		_ = s.cmd.Wait()
		s.cmd = nil
	}
}

// stop stops the process without ending it, and returns what lets it go on.
func (s *server) stop() (goOn func()) {
	s.signal(syscall.SIGSTOP)
	return func() { s.signal(syscall.SIGCONT) }
}

func (s *server) signal(sig syscall.Signal) {
	if s.cmd != nil {
		if err := s.cmd.Process.Signal(sig); err != nil {
			s.t.Error(err)
		}
	}
}

func (s *server) address() string { return "127.0.0.1:" + strconv.Itoa(s.port) }

// client returns an administrator's client, nil if it cannot connect.
func (s *server) client() rueidis.Client {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{s.address()}, ForceSingleClient: true, DisableCache: true, DisableRetry: true})
	if err != nil {
		return nil
	}
	return client
}

// try has an administrator send a command, over a connection of its own.
func (s *server) try(args ...string) (string, error) {
	client := s.client()
	if client == nil {
		return "", errors.New("it does not answer")
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return client.Do(ctx, client.B().Arbitrary(args...).Build()).ToString()
}

// say is try that has to succeed.
func (s *server) say(args ...string) string {
	s.t.Helper()
	text, err := s.try(args...)
	if err != nil && !rueidis.IsParseErr(err) { // some answers are no text
		s.t.Fatalf("%q: %v", args, err)
	}
	return text
}

var prefixCount atomic.Int64

// user makes a user with the rights that the documentation says and no others, in
// all of the servers, and returns Options with it and a prefix of its own.
func user(t testing.TB, servers ...*server) Options {
	t.Helper()
	prefix := fmt.Sprintf("test-%d", prefixCount.Add(1))
	for _, s := range servers {
		s.say(append([]string{"ACL", "SETUSER", prefix, "reset", "on", ">secret-" + prefix}, strings.Fields(ACL(prefix))...)...)
	}
	u := url.URL{Scheme: "redis", User: url.UserPassword(prefix, "secret-"+prefix), Host: servers[0].address()}
	q := url.Values{}
	for _, s := range servers[1:] {
		q.Add("addr", s.address())
	}
	u.RawQuery = q.Encode()
	return Options{URL: u.String(), Prefix: prefix}
}

// open opens a Store that is closed with the test.
func open(t testing.TB, o Options) *Store {
	t.Helper()
	s, err := Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

// startCluster starts a cluster of three machines, with as many more as replicas
// of the first.
func startCluster(t testing.TB, replicas int) []*server {
	t.Helper()
	var list []*server
	for range 3 + replicas {
		list = append(list, start(t, "--cluster-enabled", "yes", "--cluster-node-timeout", "1000", "--cluster-config-file", filepath.Join(t.TempDir(), "nodes"),
			"--cluster-require-full-coverage", "no"))
	}
	for i, s := range list {
		if i < 3 {
			s.say("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(i*slots/3), strconv.Itoa((i+1)*slots/3-1))
		}
		s.say("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	for _, s := range list[1:] {
		s.say("CLUSTER", "MEET", "127.0.0.1", strconv.Itoa(list[0].port))
	}
	eventually(t, "each machine of the cluster finds the owner of each slot", func() bool {
		for _, s := range list {
			info := s.say("CLUSTER", "INFO")
			// Without full coverage the state is ok before the owners of all slots are known.
			for _, line := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", len(list)), fmt.Sprintf("cluster_slots_ok:%d", slots)} {
				if !strings.Contains(info, line+"\r\n") {
					return false
				}
			}
		}
		return true
	})
	id := list[0].say("CLUSTER", "MYID")
	for _, s := range list[3:] {
		eventually(t, "a machine becomes a replica", func() bool {
			_, err := s.try("CLUSTER", "REPLICATE", id)
			return err == nil
		})
		eventually(t, "the replica follows", func() bool {
			return strings.Contains(s.say("INFO", "replication"), "master_link_status:up")
		})
	}
	return list
}

// startSentinel starts a Sentinel that watches a server as "shop", and alone may
// replace it.
func startSentinel(t testing.TB, first *server) *server {
	t.Helper()
	s := &server{t: t, port: freePort(t)}
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %d\nbind 127.0.0.1\ndir %s\nsentinel monitor shop 127.0.0.1 %d 1\nsentinel down-after-milliseconds shop 500\nsentinel failover-timeout shop 3000\n",
		s.port, t.TempDir(), first.port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.args = []string{config, "--sentinel"}
	t.Cleanup(s.kill)
	s.run()
	return s
}

// eventually waits until something holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for stop := time.Now().Add(20 * time.Second); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(stop) {
			t.Fatalf("%s: not after 20 s", what)
		}
	}
}
