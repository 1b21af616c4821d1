package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// ending is how a client ends a call that has asked it something.
type ending struct {
	name string
	body func(call int, question json.RawMessage) string
	last string // is in the last message of the call; "" if it has none
}

var endings = []ending{
	{"an answer", func(_ int, question json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a"}]}}`, question)
	}, `"result"`},
	{"a cancellation", func(call int, _ json.RawMessage) string {
		return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, call)
	}, ""},
}

// answers measures how soon a call ends when the client's answer, or that it does not
// want the call any more, reaches another replica: with the hints of the store, and
// where all of them are lost.
func answers(o options, r *report) error {
	r.title("calls that ask, at %d replicas, whose clients answer and cancel at others", o.replicas)
	for _, test := range []struct {
		name      string
		extra     []string
		n, atOnce int
		late      float64
	}{
		{"", nil, o.asked, 1, maxAnswer},
		{", all hints lost", []string{"-deaf"}, max(o.asked/10, 1), inflight, maxAnswerLost},
	} {
		_, f, stop, err := startAll(o.replicas, test.extra...)
		if err != nil {
			return err
		}
		defer stop()
		for _, end := range endings {
			took, err := f.across(end, test.n, test.atOnce)
			if err != nil {
				return fmt.Errorf("%s%s: %w", end.name, test.name, err)
			}
			slices.Sort(took)
			r.say("%s%s: p50 %v, the last of %d after %v", end.name, test.name, took[len(took)/2].Round(10*time.Microsecond), len(took), took[len(took)-1].Round(10*time.Microsecond))
			r.limit("ms until it has ended the call, 99 of 100 times: %.2f", ms(took[len(took)*99/100]), test.late)
		}
	}
	return nil
}

// across makes n calls, some at once, each at one replica, and ends it at another. It
// returns how long after that its client knew.
func (f fleet) across(end ending, n, atOnce int) (took []time.Duration, err error) {
	var mu sync.Mutex
	var calling sync.WaitGroup
	errs := make([]error, atOnce)
	for w := range atOnce {
		calling.Go(func() {
			at, other := f.clients(w), f.clients(w+1)
			defer at.close()
			defer other.close()
			session, err := at.openAsked()
			for i := w; err == nil && i < n; i += atOnce {
				if _, _, err = other.do(session, `{"jsonrpc":"2.0","id":1,"method":"ping"}`); err != nil { // it knows the session
					break
				}
				var one time.Duration
				if one, err = at.endedBy(other, session, end, 2+i); err == nil {
					mu.Lock()
					took = append(took, one)
					mu.Unlock()
				}
			}
			errs[w] = err
		})
	}
	calling.Wait()
	return took, errors.Join(errs...)
}

// clients returns a client of one of the replicas.
func (f fleet) clients(i int) *clients {
	return &clients{http: &http.Client{Transport: &http.Transport{}}, url: "http://" + f[i%len(f)].addr + "/mcp"}
}

// openAsked opens the session of a client that can be asked.
func (c *clients) openAsked() (id string, err error) {
	header, _, err := c.do("", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+legacyRevision+`","capabilities":{"roots":{}},"clientInfo":{"name":"scale","version":"1.0.0"}}}`)
	if err != nil {
		return "", err
	}
	id = header.Get("Mcp-Session-Id")
	_, _, err = c.do(id, `{"jsonrpc":"2.0","method":"notifications/initialized"}`)
	return id, err
}

// endedBy makes a call that asks, and returns how long it continues after
// another replica has got what ends it.
func (c *clients) endedBy(other *clients, session string, end ending, call int) (took time.Duration, err error) {
	r, err := c.request(session, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ask","arguments":{}}}`, call))
	if err != nil {
		return 0, err
	}
	res, err := c.http.Do(r)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	var begun time.Time
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		text, _ := strings.CutPrefix(lines.Text(), "data: ")
		switch {
		case strings.Contains(text, `"roots/list"`):
			var question struct{ ID json.RawMessage }
			if err := json.Unmarshal([]byte(text), &question); err != nil {
				return 0, err
			}
			begun = time.Now()
			if _, _, err := other.do(session, end.body(call, question.ID)); err != nil {
				return 0, err
			}
		case end.last != "" && strings.Contains(text, end.last):
			return time.Since(begun), nil
		}
	}
	if begun.IsZero() || end.last != "" {
		return 0, fmt.Errorf("call %d, %s, has ended without an answer", call, res.Status)
	}
	return time.Since(begun), nil
}
