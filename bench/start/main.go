// Command start measures what starting a stdio server costs: the time from the
// start of the process to its answer to tools/list, after initialize; the memory
// that it has resident then; and the size of the stripped program. The same
// server with two tools is made with this module, the official SDK and mcp-go,
// and they are started in turn, so that what else the machine does meets all of
// them. Linux only.
//
//	GOWORK=off go run ./start -n 20
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The limits for this module, against the official SDK.
const (
	maxTime = 1.0
	maxRSS  = 1.15
	maxMB   = 11.5
)

var servers = []string{"talaria", "sdk", "mcpgo"}

// cost is what one start took, or the medians of several.
type cost struct {
	time time.Duration
	rss  int // KiB
}

func main() {
	n := flag.Int("n", 20, "`number` of starts of each server")
	enforce := flag.Bool("enforce", false, "exit with status 1 if a limit is missed")
	flag.Parse()
	if err := run(*n, *enforce); err != nil {
		fmt.Fprintln(os.Stderr, "start:", err)
		os.Exit(1)
	}
}

func run(n int, enforce bool) error {
	dir, err := os.MkdirTemp("", "start")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sizes := map[string]float64{}
	for _, name := range servers {
		program := filepath.Join(dir, name)
		build := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", program, "./start/"+name)
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", name, err, out)
		}
		info, err := os.Stat(program)
		if err != nil {
			return err
		}
		sizes[name] = float64(info.Size()) / 1e6
	}
	costs := map[string][]cost{}
	for i := range n + 1 {
		for _, name := range servers {
			c, err := start(filepath.Join(dir, name))
			if err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			if i > 0 { // the first one reads the program from disk
				costs[name] = append(costs[name], c)
			}
		}
	}
	of := map[string]cost{}
	fmt.Printf("%-8s %12s %10s %10s\n", "server", "time", "RSS", "size")
	for _, name := range servers {
		of[name] = median(costs[name])
		fmt.Printf("%-8s %9.2f ms %7.1f MB %7.1f MB\n", name, float64(of[name].time)/1e6, float64(of[name].rss)*1024/1e6, sizes[name])
	}
	ratio := float64(of["talaria"].time) / float64(of["sdk"].time)
	rss := float64(of["talaria"].rss) / float64(of["sdk"].rss)
	fmt.Printf("talaria / sdk: time %.2f [%.2f], RSS %.2f [%.2f]; size %.1f MB [%.1f]\n", ratio, maxTime, rss, maxRSS, sizes["talaria"], maxMB)
	if enforce && (ratio > maxTime || rss > maxRSS || sizes["talaria"] > maxMB) {
		return errors.New("a limit is missed")
	}
	return nil
}

func median(costs []cost) cost {
	times, sizes := make([]time.Duration, len(costs)), make([]int, len(costs))
	for i, c := range costs {
		times[i], sizes[i] = c.time, c.rss
	}
	slices.Sort(times)
	slices.Sort(sizes)
	return cost{times[len(times)/2], sizes[len(sizes)/2]}
}

const (
	opening = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"start","version":"1"}}}` + "\n"
	listing = `{"jsonrpc":"2.0","method":"notifications/initialized"}` + "\n" + `{"jsonrpc":"2.0","id":2,"method":"tools/list"}` + "\n"
)

// start starts a server, asks for its tools, and ends it.
func start(program string) (cost, error) {
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	if err != nil {
		return cost{}, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return cost{}, err
	}
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Start(); err != nil {
		return cost{}, err
	}
	defer cmd.Process.Kill()
	timer := time.AfterFunc(20*time.Second, func() { cmd.Process.Kill() })
	defer timer.Stop()
	lines := bufio.NewReader(out)
	for _, exchange := range []struct{ send, want string }{{opening, `"protocolVersion"`}, {listing, `"subtract"`}} {
		if _, err := io.WriteString(in, exchange.send); err != nil {
			return cost{}, err
		}
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return cost{}, err
		}
		if !bytes.Contains(line, []byte(exchange.want)) {
			return cost{}, fmt.Errorf("answered %s", line)
		}
	}
	took := time.Since(begin)
	rss, err := resident(cmd.Process.Pid)
	if err != nil {
		return cost{}, err
	}
	if err := in.Close(); err != nil {
		return cost{}, err
	}
	return cost{took, rss}, cmd.Wait()
}

// resident returns the memory of a process, in KiB.
func resident(pid int) (int, error) {
	status, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, err
	}
	_, rest, ok := strings.Cut(string(status), "VmRSS:")
	if !ok {
		return 0, errors.New("no VmRSS")
	}
	return strconv.Atoi(strings.Fields(rest)[0])
}
