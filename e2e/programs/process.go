package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"
)

var (
	errNoSession = errors.New("no such session")
	errEnded     = errors.New("the stdio process has ended")
)

// process is one stdio server and the calls that wait for it.
type process struct {
	modern bool
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	done   chan struct{} // closed when stdout has ended

	write sync.Mutex

	mu    sync.Mutex
	free  *sync.Cond // signalled when a call ends
	calls []*call    // in flight, oldest first
	ended bool
}

// call is one request in flight. Lines for it arrive on lines, the answer
// last.
type call struct {
	id, token string
	lines     chan []byte
	gone      chan struct{} // closed when the client no longer reads
}

func start(command []string, modern bool) (*process, error) {
	cmd := exec.Command(command[0], command[1:]...)
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
	p := &process{modern: modern, cmd: cmd, stdin: stdin, done: make(chan struct{})}
	p.free = sync.NewCond(&p.mu)
	go p.read(stdout)
	return p, nil
}

// close ends the input, waits for the process and kills it if it stays.
func (p *process) close() {
	p.stdin.Close()
	select {
	case <-p.done:
	case <-time.After(5 * time.Second):
		fmt.Fprintln(os.Stderr, "bridge: the stdio process did not end with its input; killing it")
		p.cmd.Process.Kill()
		<-p.done
	}
	p.cmd.Wait()
}

func (p *process) send(line []byte) error {
	p.write.Lock()
	defer p.write.Unlock()
	_, err := p.stdin.Write(line)
	return err
}

// read hands each line of the process to the call it belongs to.
func (p *process) read(stdout io.Reader) {
	defer close(p.done)
	lines := bufio.NewReaderSize(stdout, 64<<10)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			p.deliver(line[:len(line)-1])
		}
		if err != nil {
			break
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	for _, c := range p.calls {
		close(c.lines)
	}
	p.calls = nil
	p.free.Broadcast()
}

func (p *process) deliver(line []byte) {
	var msg message
	if err := json.Unmarshal(line, &msg); err != nil {
		fmt.Fprintf(os.Stderr, "bridge: the stdio process wrote what is no JSON: %q\n", line)
		return
	}
	c := p.owner(&msg)
	if c == nil {
		return
	}
	select {
	case c.lines <- line:
	case <-c.gone:
	}
}

// owner finds the call of a line: by id for answers, by subscription for what a
// subscription tells, by progress token for progress, and otherwise the newest
// one. An answer ends its call.
func (p *process) owner(msg *message) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	subscription := string(msg.Params.Meta[subscriptionKey])
	for i, c := range p.calls {
		if msg.Method != "" && subscription != "" {
			if c.id == subscription {
				return c
			}
			continue
		}
		if msg.Method == "" && string(msg.ID) == c.id {
			p.calls = append(p.calls[:i:i], p.calls[i+1:]...)
			p.free.Broadcast()
			return c
		}
		if msg.Method != "" && c.token != "" && string(msg.Params.Token) == c.token {
			return c
		}
	}
	if msg.Method == "" || subscription != "" || len(p.calls) == 0 {
		return nil
	}
	return p.calls[len(p.calls)-1]
}

// begin enters a call. An id that is in flight already waits for its turn.
func (p *process) begin(msg *message) (*call, error) {
	c := &call{id: string(msg.ID), token: string(msg.Params.Meta["progressToken"]),
		lines: make(chan []byte), gone: make(chan struct{})}
	p.mu.Lock()
	defer p.mu.Unlock()
	for !p.ended && p.inFlight(c.id) {
		p.free.Wait()
	}
	if p.ended {
		return nil, errEnded
	}
	p.calls = append(p.calls, c)
	return c, nil
}

func (p *process) inFlight(id string) bool {
	for _, c := range p.calls {
		if c.id == id {
			return true
		}
	}
	return false
}

// abandon drops the response of a call.
func (p *process) abandon(c *call) { close(c.gone) }

// cancel tells a modern process that the client has gone, which over HTTP
// means that it cancels the call. In the legacy revisions it does not.
func (p *process) cancel(c *call) {
	if !p.modern {
		return
	}
	p.mu.Lock()
	p.calls = slices.DeleteFunc(p.calls, func(other *call) bool { return other == c })
	p.free.Broadcast() // no answer will come
	p.mu.Unlock()
	line := fmt.Appendf(nil, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`+"\n", c.id)
	if err := p.send(line); err != nil {
		fmt.Fprintln(os.Stderr, "bridge:", err)
	}
}

// exchange sends a request and writes its answer: JSON, or a stream if
// something else comes first.
func (p *process) exchange(w http.ResponseWriter, r *http.Request, msg *message, line []byte) {
	c, err := p.begin(msg)
	if err == nil {
		defer p.abandon(c)
		err = p.send(line)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	streaming := false
	for {
		var answer []byte
		var ok bool
		select {
		case answer, ok = <-c.lines:
		case <-r.Context().Done():
			p.cancel(c)
			return
		}
		if !ok {
			if !streaming {
				http.Error(w, errEnded.Error(), http.StatusBadGateway)
			}
			return
		}
		var got message
		if err := json.Unmarshal(answer, &got); err != nil {
			return // deliver has parsed it before
		}
		last := got.Method == ""
		if last && !streaming {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(p.status(&got))
			w.Write(answer)
			return
		}
		if !streaming {
			streaming = true
			w.Header().Set("Content-Type", "text/event-stream")
		}
		fmt.Fprintf(w, "data: %s\n\n", answer)
		http.NewResponseController(w).Flush()
		if last {
			return
		}
	}
}

// status is the HTTP status of an answer, as the modern transport has it.
func (p *process) status(msg *message) int {
	switch {
	case msg.Error == nil || !p.modern:
		return http.StatusOK
	case msg.Error.Code == -32601:
		return http.StatusNotFound
	default:
		return http.StatusBadRequest
	}
}
