package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// process is one server that runs.
type process struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	out   *bufio.Reader // standard output
	addr  string        // over HTTP
	token []string      // what connections authenticate with, in turns; may be empty
}

func start(binary, transport string) (*process, error) {
	args := []string{"-stdio"}
	if transport == "http" {
		args = []string{"-http", "127.0.0.1:0"}
	}
	cmd := exec.Command(binary, args...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &process{cmd: cmd, stdin: stdin, out: bufio.NewReaderSize(stdout, 1<<20)}
	if transport == "http" {
		line, err := p.out.ReadString('\n')
		if err != nil {
			p.stop()
			return nil, fmt.Errorf("%s printed no address: %w", filepath.Base(binary), err)
		}
		words := strings.Fields(line)
		p.addr, p.token = words[0], words[1:]
	}
	return p, nil
}

// stop ends the server by closing its input, and by killing it if that takes
// longer than three seconds.
func (p *process) stop() {
	p.stdin.Close()
	timer := time.AfterFunc(3*time.Second, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	io.Copy(io.Discard, p.out)
	p.cmd.Wait()
}

// cpu returns the processor time that the server has used so far, in user and
// kernel. The scheduler's count is exact; the other is in steps of 10 ms.
func (p *process) cpu() (time.Duration, error) {
	dir := fmt.Sprintf("/proc/%d/", p.cmd.Process.Pid)
	files, _ := filepath.Glob(dir + "task/*/schedstat")
	var sum time.Duration
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // the thread has just ended
		}
		first, _, _ := strings.Cut(string(text), " ")
		ns, _ := strconv.ParseInt(first, 10, 64)
		sum += time.Duration(ns)
	}
	if sum > 0 {
		return sum, nil
	}
	text, err := os.ReadFile(dir + "stat")
	if err != nil {
		return 0, fmt.Errorf("the server's CPU time is only known on Linux: %w", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, errors.New("/proc/PID/stat is too short")
	}
	user, _ := strconv.Atoi(fields[11])
	kernel, _ := strconv.Atoi(fields[12])
	return time.Duration(user+kernel) * 10 * time.Millisecond, nil
}

// rss returns the server's resident memory in bytes.
func (p *process) rss() int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/statm", p.cmd.Process.Pid))
	fields := strings.Fields(string(text))
	if len(fields) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
