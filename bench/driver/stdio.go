package main

import (
	"bytes"
	"fmt"
	"time"
)

// line reads one line of the server. The bytes are valid until the next read.
func (p *process) line() ([]byte, error) {
	text, err := p.out.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("reading the server's output: %w", err)
	}
	return bytes.TrimSpace(text), nil
}

// answer reads lines up to one that is not a notification.
func (p *process) answer() ([]byte, error) {
	for {
		text, err := p.line()
		if err != nil || !bytes.Contains(text, []byte(`"method":`)) || bytes.Contains(text, []byte(`"result":`)) {
			return text, err
		}
	}
}

// openStdio makes the server ready for calls and makes one.
func openStdio(p *process, t task, request message, check *checker) error {
	if t.kind == "legacy" && !t.server.bare {
		hello := append(initializeMessage().text, '\n')
		if _, err := p.stdin.Write(hello); err != nil {
			return err
		}
		if text, err := p.answer(); err != nil || !bytes.Contains(text, []byte(`"result":`)) {
			return fmt.Errorf("initialize: %.200s, %w", text, err)
		}
		if _, err := p.stdin.Write(append(newMessage("notifications/initialized", 0, nil).text, '\n')); err != nil {
			return err
		}
	}
	if _, err := p.stdin.Write(request.text); err != nil {
		return err
	}
	text, err := p.answer()
	if err != nil {
		return err
	}
	_, err = check.check(text)
	return err
}

// driveStdio keeps many calls in flight on one pair of pipes. All requests in
// flight fit into the pipe's buffer, so writing never blocks for long.
func driveStdio(p *process, t task, w *window) error {
	guard := time.AfterFunc(t.limit(), func() { p.cmd.Process.Kill() })
	defer guard.Stop()
	request, check := callMessage(t.kind, t.tool), newChecker(t.tool)
	request.text = append(request.text, '\n')
	if err := openStdio(p, t, request, check); err != nil {
		return unsupported{err}
	}
	failed := make(chan error, 1)
	go func() {
		err := exchange(p, t, w, request, check)
		if err != nil {
			w.stop()
		}
		failed <- err
	}()
	err := w.run(p)
	if other := <-failed; other != nil {
		return other
	}
	return err
}

// exchange sends a new request for each answer until the window is over, and
// then waits for the rest.
func exchange(p *process, t task, w *window, request message, check *checker) error {
	lane := w.lane(0)
	started := map[int]time.Time{}
	var out []byte
	id := firstID
	send := func(now time.Time) {
		id++
		started[id] = now
		putID(request.text[request.at:], id)
		out = append(out, request.text...)
	}
	now := time.Now()
	for range t.inFlight {
		send(now)
	}
	for {
		if len(out) > 0 && p.out.Buffered() == 0 {
			if _, err := p.stdin.Write(out); err != nil {
				return err
			}
			out = out[:0]
		}
		text, err := p.line()
		if err != nil {
			return err
		}
		got, err := check.check(text)
		if err != nil {
			return err
		}
		begun, ok := started[got]
		if !ok {
			return fmt.Errorf("an answer to %d, which is not in flight", got)
		}
		delete(started, got)
		now := time.Now()
		lane.done(now.Sub(begun))
		if !w.over() {
			send(now)
		} else if len(started) == 0 {
			return nil
		}
	}
}
