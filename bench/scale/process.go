package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/bench/tools"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/scale/redis"
)

// counted is a Store that counts the commands that its calls are.
type counted struct {
	scale.Store
	commands atomic.Int64
}

// StaysOnGoroutine is that of the Store.
func (c *counted) StaysOnGoroutine(call.Private) {}

func (c *counted) Get(ctx context.Context, looks ...scale.Look) ([]scale.Entry, error) {
	c.commands.Add(int64(len(looks)))
	return c.Store.Get(ctx, looks...)
}

func (c *counted) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	c.commands.Add(int64(len(writes)))
	return c.Store.Put(ctx, writes...)
}

func (c *counted) Due(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	c.commands.Add(1)
	return c.Store.Due(ctx, part, index, owner, max, lease)
}

func (c *counted) Append(ctx context.Context, p scale.Post) (scale.Rev, string, error) {
	c.commands.Add(1)
	return c.Store.Append(ctx, p)
}

func (c *counted) Read(ctx context.Context, box string, after scale.Rev, reader string, take time.Duration) ([]scale.Message, string, error) {
	c.commands.Add(1)
	return c.Store.Read(ctx, box, after, reader, take)
}

// stats are what a server tells of itself.
type stats struct {
	cpu      int64 // µs of this process
	commands int64 // of the store
}

// visits counts in the session.
var visits = mcp.NewStoredKey[int]("example.com/visits")

// runServer is a replica until its standard input ends.
func runServer(url string) error {
	opts := mcp.Options{Limits: mcp.Limits{Sessions: 1 << 20, SessionsPerPrincipal: 1 << 20, SessionMemory: 4 << 30}, Timeouts: mcp.Timeouts{Session: time.Hour}}
	store := &counted{}
	if url != "" {
		engine, err := redis.Open(context.Background(), redis.Options{URL: url, Prefix: "bench"})
		if err != nil {
			return err
		}
		defer engine.Close()
		store.Store = engine
		opts.Store, opts.StateKeys = store, [][]byte{[]byte("a secret of 16 bytes or more")}
	}
	s := mcp.NewServer(mcp.Info{Name: "scale", Version: "1.0.0"}, &opts)
	s.MustAdd(
		mcp.Tool("add", func(_ *mcp.Frame, in tools.AddIn) (tools.AddOut, error) { return tools.Add(in), nil }),
		mcp.Tool("visit", func(f *mcp.Frame, _ struct{}) (int, error) {
			return visits.Update(f, func(n int) int { return n + 1 }), nil
		}),
	)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Handler())
	mux.HandleFunc("/stats", func(w http.ResponseWriter, _ *http.Request) {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails for other arguments only
		_ = json.NewEncoder(w).Encode(map[string]int64{"cpu": (u.Utime.Nano() + u.Stime.Nano()) / 1000, "commands": store.commands.Load()})
	})
	web := &http.Server{Handler: mux}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = s.Shutdown(ctx)
		_ = web.Close()
	}()
	fmt.Println(l.Addr())
	if err := web.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// replica is a server in a process of its own.
type replica struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startReplica starts a server, which shares the engine at url unless that is "".
func startReplica(url string) (*replica, error) {
	cmd := exec.Command(os.Args[0], "-serve", "-store", url)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	addr, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		_ = cmd.Wait()
		return nil, fmt.Errorf("the server does not start: %w", err)
	}
	return &replica{strings.TrimSpace(addr), cmd, stdin}, nil
}

func (r *replica) stop() {
	_ = r.stdin.Close()
	_ = r.cmd.Wait()
}

// stats asks the server for its own account.
func (r *replica) stats() (s stats) {
	res, err := http.Get("http://" + r.addr + "/stats")
	if err != nil {
		panic(err) // the process is gone: there is nothing to measure
	}
	defer res.Body.Close()
	var got map[string]int64
	if err := json.NewDecoder(res.Body).Decode(&got); err != nil {
		panic(err)
	}
	return stats{got["cpu"], got["commands"]}
}

// engine is a redis-server.
type engine struct {
	port string
	cmd  *exec.Cmd
	dir  string
}

// startEngine starts redis-server, which appends what it is told to a file as
// those do that keep sessions.
func startEngine() (*engine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	_ = l.Close()
	dir, err := os.MkdirTemp("", "scale")
	if err != nil {
		return nil, err
	}
	e := &engine{port: port, dir: dir}
	e.cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", dir)
	if err := e.cmd.Start(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, fmt.Errorf("redis-server (Debian: redis-server) is needed: %w", err)
	}
	for range 200 {
		if c, err := net.Dial("tcp", "127.0.0.1:"+port); err == nil {
			_ = c.Close()
			return e, nil
		}
		time.Sleep(20 * time.Millisecond)
	}
	e.stop()
	return nil, errors.New("redis-server does not listen")
}

func (e *engine) url() string { return "redis://127.0.0.1:" + e.port }

func (e *engine) stop() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
	_ = os.RemoveAll(e.dir)
}

// engineStats are what the engine tells of itself.
type engineStats struct {
	cpu    float64 // µs
	memory float64 // bytes
}

// stats asks the engine for its own account.
func (e *engine) stats() (s engineStats) {
	c, err := net.Dial("tcp", "127.0.0.1:"+e.port)
	if err != nil {
		panic(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, "INFO cpu\r\nINFO memory\r\nQUIT\r\n")
	text, _ := io.ReadAll(c)
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		n, err := strconv.ParseFloat(value, 64)
		if err != nil {
			continue
		}
		switch name {
		case "used_cpu_user_main_thread", "used_cpu_sys_main_thread":
			s.cpu += n * 1e6
		case "used_memory":
			s.memory = n
		}
	}
	return s
}
