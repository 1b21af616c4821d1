package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// replica is a server in a process of its own.
type replica struct {
	addr  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// startReplica starts a server, which shares the engine at url unless that is "".
// Its sessions end when they were not used for idle. It gets more flags.
func startReplica(url string, idle time.Duration, more ...string) (*replica, error) {
	cmd := exec.Command(os.Args[0], append([]string{"-serve", "-session", idle.String(), "-store", url}, more...)...)
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

// fleet are replicas that share an engine.
type fleet []*replica

// startFleet starts n replicas at an engine, with more flags.
func startFleet(e *engine, n int, idle time.Duration, more ...string) (f fleet, err error) {
	for range n {
		r, err := startReplica(e.url(), idle, more...)
		if err != nil {
			f.stop()
			return nil, err
		}
		f = append(f, r)
	}
	return f, nil
}

// startAll starts an engine and n replicas that share it, with more flags. stop stops
// them.
func startAll(n int, more ...string) (e *engine, f fleet, stop func(), err error) {
	if e, err = startEngine(); err != nil {
		return nil, nil, nil, err
	}
	if f, err = startFleet(e, n, defaultIdle, more...); err != nil {
		e.stop()
		return nil, nil, nil, err
	}
	return e, f, func() { f.stop(); e.stop() }, nil
}

func (f fleet) stop() {
	for _, r := range f {
		r.stop()
	}
}

// commands is how many commands of the engine the replicas' calls have been.
func (f fleet) commands() (n int64) {
	for _, r := range f {
		n += r.stats().Commands
	}
	return n
}

// asked is what the replicas have asked the store about sessions.
func (f fleet) asked() (all mix) {
	for _, r := range f {
		all.add(r.stats().Asked, 1)
	}
	return all
}

// ask has the server do something, and returns what it says.
func (r *replica) ask(what string, values url.Values) (string, error) {
	res, err := http.PostForm("http://"+r.addr+"/"+what, values)
	if err != nil {
		return "", err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return string(text), err
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
	if err := json.NewDecoder(res.Body).Decode(&s); err != nil {
		panic(err)
	}
	return s
}

// engine is a redis-server.
type engine struct {
	port string
	cmd  *exec.Cmd
	dir  string
}

// startEngine starts redis-server with an append-only file, as for an engine
// that keeps sessions.
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
	if err := e.run(); err != nil {
		_ = os.RemoveAll(dir)
		return nil, err
	}
	return e, nil
}

// run starts the process and waits until it answers.
func (e *engine) run() error {
	e.cmd = exec.Command("redis-server", "--port", e.port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "yes", "--dir", e.dir)
	if err := e.cmd.Start(); err != nil {
		return fmt.Errorf("redis-server (Debian: redis-server) is needed: %w", err)
	}
	for range 1000 {
		if strings.Contains(e.say("PING"), "+PONG") {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
	e.kill()
	return errors.New("redis-server does not answer")
}

// kill ends the process as a power failure does.
func (e *engine) kill() {
	_ = e.cmd.Process.Kill()
	_ = e.cmd.Wait()
}

// say sends commands over a connection of their own, and returns the answers,
// none if the engine does not answer.
func (e *engine) say(commands ...string) string {
	c, err := net.Dial("tcp", "127.0.0.1:"+e.port)
	if err != nil {
		return ""
	}
	defer c.Close()
	_, _ = io.WriteString(c, strings.Join(append(commands, "QUIT"), "\r\n")+"\r\n")
	text, _ := io.ReadAll(c)
	return string(text)
}

func (e *engine) url() string { return "redis://127.0.0.1:" + e.port }

func (e *engine) stop() {
	e.kill()
	_ = os.RemoveAll(e.dir)
}

// engineStats are what the engine tells of itself.
type engineStats struct {
	cpu    float64 // µs
	memory float64 // bytes
	reads  float64 // of what clients have sent
}

// stats asks the engine for its own account.
func (e *engine) stats() (s engineStats) {
	for line := range strings.Lines(e.say("INFO cpu", "INFO memory", "INFO stats")) {
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
		case "total_reads_processed":
			s.reads = n
		}
	}
	return s
}
