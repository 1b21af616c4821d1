package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// kind is a call that is measured.
type kind struct {
	name, tool string
	modern     bool
}

const legacyRevision, modernRevision = "2025-11-25", "2026-07-28"

// modernMeta is what each modern request says of its client.
const modernMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"` + modernRevision + `","io.modelcontextprotocol/clientInfo":{"name":"scale","version":"1.0.0"},` +
	`"io.modelcontextprotocol/clientCapabilities":{}}`

// body returns the message of a call.
func (k kind) body() string {
	arguments := `{}`
	if k.tool == "add" {
		arguments = `{"a":1234,"b":-987}`
	}
	meta := ""
	if k.modern {
		meta = "," + modernMeta
	}
	return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + k.tool + `","arguments":` + arguments + meta + `}}`
}

// clients are as many as there are calls at a time, each with a connection, and a
// session unless the calls are modern.
type clients struct {
	http     *http.Client
	url      string
	kind     kind
	sessions []string
}

func newClients(addr string, k kind, n int) (*clients, error) {
	c := &clients{http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: n}}, url: "http://" + addr + "/mcp", kind: k}
	for range n {
		id := ""
		if !k.modern {
			var err error
			if id, err = c.open(); err != nil {
				return nil, err
			}
		}
		c.sessions = append(c.sessions, id)
	}
	return c, nil
}

func (c *clients) close() { c.http.CloseIdleConnections() }

// request makes a request; a body makes it a POST.
func (c *clients) request(session, body string) (*http.Request, error) {
	method := http.MethodPost
	if body == "" {
		method = http.MethodGet
	}
	r, err := http.NewRequest(method, c.url, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	switch {
	case c.kind.modern:
		r.Header["Mcp-Protocol-Version"] = []string{modernRevision}
		r.Header["Mcp-Method"], r.Header["Mcp-Name"] = []string{"tools/call"}, []string{c.kind.tool}
	case session != "":
		r.Header["Mcp-Protocol-Version"] = []string{legacyRevision}
		r.Header["Mcp-Session-Id"] = []string{session}
	}
	return r, nil
}

// do makes a request and reads the answer.
func (c *clients) do(session, body string) (header http.Header, text []byte, err error) {
	r, err := c.request(session, body)
	if err != nil {
		return nil, nil, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer res.Body.Close()
	if text, err = io.ReadAll(res.Body); err == nil && res.StatusCode >= 300 {
		err = fmt.Errorf("%s: %s", res.Status, text)
	}
	if res.StatusCode == http.StatusServiceUnavailable {
		err = errRefused
	}
	return res.Header, text, err
}

// open opens a session and returns its id.
func (c *clients) open() (id string, err error) {
	header, _, err := c.do("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{},"clientInfo":{"name":"scale","version":"1.0.0"}}}`)
	if err != nil {
		return "", err
	}
	id = header.Get("Mcp-Session-Id")
	_, _, err = c.do(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return id, err
}

// call makes n calls, one at a time of each client and none sooner than every after
// the one before, and returns what they took, sorted.
func (c *clients) call(n int, every time.Duration) (took []time.Duration, err error) {
	var left atomic.Int64
	left.Store(int64(n))
	body := c.kind.body()
	each := make([][]time.Duration, len(c.sessions))
	errs := make([]error, len(c.sessions))
	var running sync.WaitGroup
	for i, session := range c.sessions {
		running.Go(func() {
			next := time.Now().Add(every * time.Duration(i) / time.Duration(len(c.sessions)))
			for left.Add(-1) >= 0 {
				time.Sleep(time.Until(next))
				next = next.Add(every)
				begun := time.Now()
				_, text, err := c.do(session, body)
				if err == nil && !bytes.Contains(text, []byte(`"result"`)) {
					err = fmt.Errorf("the server answers %s", text)
				}
				if err != nil {
					errs[i] = err
					return
				}
				each[i] = append(each[i], time.Since(begun))
			}
		})
	}
	running.Wait()
	took = slices.Concat(each...)
	slices.Sort(took)
	return took, errors.Join(errs...)
}
