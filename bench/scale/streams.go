package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// stream is the answer to a GET of a session, or to subscriptions/listen, on a
// connection of its own.
type stream struct {
	session string   // whose it is; "" for a subscription
	uris    []string // of the resources that a subscription is for, next to the list of tools
	heard   func(s *stream, c change, at time.Time)

	conn  net.Conn
	from  *bufio.Reader
	event string        // the id of the newest
	retry time.Duration // after which to come back
}

// change is what a stream tells of.
type change string

const (
	listChanged     change = "list_changed"
	resourceUpdated change = "resources/updated"
	noted           change = "notifications/note" // a message to one session
)

// errRefused means that a server has answered with 503.
var errRefused = errors.New("a server answers with 503")

// retry runs fn again, as clients do, while a server refuses.
func retry(fn func() error) error {
	for last := time.Now().Add(timeLimit); ; time.Sleep(time.Second) {
		if err := fn(); !errors.Is(err, errRefused) || time.Now().After(last) {
			return err
		}
	}
}

// request is what opens the stream.
func (s *stream) request() string {
	const head = " /mcp HTTP/1.1\r\nHost: localhost\r\nUser-Agent: scale/1.0\r\nAccept: application/json, text/event-stream\r\n"
	if s.session != "" {
		last := ""
		if s.event != "" {
			last = "Last-Event-ID: " + s.event + "\r\n"
		}
		return "GET" + head + "Mcp-Protocol-Version: " + legacyRevision + "\r\nMcp-Session-Id: " + s.session + "\r\n" + last + "\r\n"
	}
	uris := ""
	if len(s.uris) > 0 {
		uris = `,"resourceSubscriptions":["` + strings.Join(s.uris, `","`) + `"]`
	}
	body := `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true` + uris + `},` + modernMeta + `}}`
	return fmt.Sprintf("POST%sContent-Type: application/json\r\nMcp-Protocol-Version: %s\r\nMcp-Method: subscriptions/listen\r\nContent-Length: %d\r\n\r\n%s",
		head, modernRevision, len(body), body)
}

// open opens the stream at a server, and returns when it is open.
func (s *stream) open(addr string) (err error) {
	if s.conn, err = net.Dial("tcp", addr); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if _, err = io.WriteString(s.conn, s.request()); err != nil {
		return err
	}
	s.from, s.retry = bufio.NewReaderSize(s.conn, 512), time.Second
	status, err := s.from.ReadString('\n')
	switch {
	case err != nil:
		return err
	case strings.Contains(status, " 503 "):
		return errRefused
	case !strings.Contains(status, " 200 "):
		return fmt.Errorf("a stream is answered with %s", status)
	}
	for s.session == "" { // until the subscription is confirmed
		line, err := s.line()
		if err != nil || bytes.Contains(line, []byte("acknowledged")) {
			return err
		}
	}
	return nil
}

// line reads a line, and takes what it says of the stream itself.
func (s *stream) line() ([]byte, error) {
	line, err := s.from.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		err = nil
	}
	if id, ok := bytes.CutPrefix(line, []byte("id: ")); ok {
		s.event = string(bytes.TrimSpace(id))
	}
	if ms, ok := bytes.CutPrefix(line, []byte("retry: ")); ok {
		if n, err := strconv.Atoi(string(bytes.TrimSpace(ms))); err == nil {
			s.retry = time.Duration(n) * time.Millisecond
		}
	}
	return line, err
}

// read calls heard for every change that the stream receives, until it ends.
func (s *stream) read() {
	for {
		line, err := s.line()
		if err != nil {
			return
		}
		for _, c := range []change{listChanged, resourceUpdated, noted} {
			if bytes.Contains(line, []byte(c)) {
				s.heard(s, c, time.Now())
			}
		}
	}
}

func (s *stream) close() {
	if s.conn != nil {
		_ = s.conn.Close()
	}
}

// each runs fn for every number below n, inflight at a time.
func each(n int, fn func(i int) error) error {
	var next atomic.Int64
	errs := make([]error, inflight)
	var running sync.WaitGroup
	for w := range inflight {
		running.Go(func() {
			for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
				if errs[w] = fn(i); errs[w] != nil {
					return
				}
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// spareFiles are those that a process has open next to its streams.
const spareFiles = 300

// affordable returns n, or less where ulimit -n lets a process have fewer streams,
// which it says.
func affordable(n int, r *report) (int, error) {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return 0, err
	}
	if most := int(min(files.Cur, 1<<30)) - spareFiles; n > most {
		r.title("ulimit -n is %d: %d streams are too many, and %d are open", files.Cur, n, most)
		return most, nil
	}
	return n, nil
}
