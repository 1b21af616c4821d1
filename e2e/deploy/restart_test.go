package deploy

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/internal/test/testexec"
)

var restarts = flag.Int("restarts", 1, "how often each replica is restarted in TestRestart")

// shop is the processes of scale/redis/example, which share an engine.
type shop struct {
	program   string
	args, env []string
	addresses []string
	processes []*exec.Cmd
}

// newShop starts an engine and as many processes as the shipped configurations
// have addresses.
func newShop(t *testing.T, args ...string) *shop {
	t.Helper()
	engine := testexec.FreeAddr(t)
	_, port, err := net.SplitHostPort(engine)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	redis := exec.Command(testdep.LookPath(t, "redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", dir, "--logfile", filepath.Join(dir, "log"))
	launch(t, redis)
	s := &shop{program: compile(t, "../../scale/redis", "./example"), args: args}
	s.env = append(os.Environ(), "REDIS_URL=redis://"+engine, "STATE_KEYS=a secret of 16 bytes or more")
	eventually(t, "the engine listens", func() bool {
		conn, err := net.Dial("tcp", engine)
		return err == nil && conn.Close() == nil
	})
	for n := range shippedReplicas {
		s.addresses, s.processes = append(s.addresses, testexec.FreeAddr(t)), append(s.processes, nil)
		s.start(t, n)
	}
	t.Cleanup(func() {
		for _, p := range s.processes {
			if err := p.Process.Kill(); err == nil {
				_ = p.Wait() // by the signal
			}
		}
	})
	return s
}

func (s *shop) start(t *testing.T, n int) {
	t.Helper()
	p := exec.Command(s.program, append([]string{"-http", s.addresses[n]}, s.args...)...)
	p.Env, p.Stderr = s.env, t.Output()
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	s.processes[n] = p
	eventually(t, "a replica is ready", func() bool {
		res, err := http.Get("http://" + s.addresses[n] + "/readyz")
		return err == nil && res.Body.Close() == nil && res.StatusCode == http.StatusOK
	})
}

// restart tells a replica to end, waits until it has, and starts it again.
func (s *shop) restart(t *testing.T, n int) {
	t.Helper()
	if err := s.processes[n].Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.processes[n].Wait(); err != nil {
		t.Errorf("a replica that was told to end: %v", err)
	}
	s.start(t, n)
}

// 64 clients call while each replica is restarted, one after the other: half of
// them with a session, whose basket goes on, and half without. No call fails.
func TestRestart(t *testing.T) {
	for name, args := range map[string][]string{
		"nginx":   {"-early"}, // it looks at no /readyz
		"haproxy": nil,
		"caddy":   nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t, append(args, "-grace", "8s")...)
			web := proxies[name].serve(t, setup{host: "localhost", replicas: s.addresses})
			ctx, stop := context.WithCancel(t.Context())
			var clients sync.WaitGroup
			var calls, failed atomic.Int64
			for n := range 64 {
				browser := web.browser(t, 1+n/2%2)
				clients.Go(func() {
					if err := shops(ctx, web, browser, n%2 == 0, &calls); err != nil {
						failed.Add(1)
						t.Errorf("client %d: %v", n, err)
					}
				})
			}
			for range *restarts {
				for n := range s.processes {
					before := calls.Load()
					s.restart(t, n)
					eventually(t, "calls go on", func() bool { return calls.Load() > before+128 || failed.Load() > 0 })
				}
			}
			stop()
			clients.Wait()
			t.Logf("%d calls, %d of 64 clients had one fail", calls.Load(), failed.Load())
		})
	}
}

// shops puts one thing after the other into the basket until ctx ends. A client
// with a session takes another one when the basket is full.
func shops(ctx context.Context, web *site, browser *http.Client, legacy bool, calls *atomic.Int64) error {
	session := ""
	var basket []string
	send := func(method, body string) (text string, err error) {
		// Not with ctx: a call that has begun is to end well.
		res, text, err := web.send(context.WithoutCancel(ctx), browser, method, body, session)
		if err != nil || res.StatusCode/100 != 2 {
			return "", fmt.Errorf("%s %s: %v, %s, %w", method, body, res, text, err)
		}
		session = cmp.Or(res.Header.Get("Mcp-Session-Id"), session)
		return text, nil
	}
	for n := 0; ctx.Err() == nil; n++ {
		if legacy && len(basket) == 50 {
			if _, err := send(http.MethodDelete, ""); err != nil {
				return err
			}
			session = ""
		}
		if legacy && session == "" {
			if _, err := send(http.MethodPost, initialize); err != nil {
				return err
			}
		}
		if session == "" || len(basket) == 50 {
			basket = nil
		}
		thing := fmt.Sprint("t", n)
		basket = append(basket, thing)
		body := tool("put", fmt.Sprintf(`{"name":%q}`, thing))
		if legacy {
			body = strings.Replace(body, ","+modern, "", 1)
		}
		text, err := send(http.MethodPost, body)
		if want := strings.Join(basket, ", "); err != nil || !strings.Contains(text, `"`+want+`"`) {
			return fmt.Errorf("call %d: %s, want %q, %v", n, text, want, err)
		}
		calls.Add(1)
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
	return nil
}
