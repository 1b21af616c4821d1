//go:build unix

package redis

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// This file has the clients of TestChaos that keep streams open, and what is asked
// of what they are told.
//
//   - A message to a session (Server.Notify) that was acknowledged reaches one of
//     its streams, once. It may be lost with a replica that is killed while a stream
//     of the session is there, for who acknowledges has handed it to that replica, or
//     does so until another stream is open, as nobody knows at once that it is gone.
//     It may be lost on a stream that its client leaves before anything has come on
//     it, as the client then has no id to come back with. And it may come twice where a reply of the engine was lost, for nobody knows
//     then that it has gone out.
//   - A change of a resource (Server.ResourceUpdated) is heard on every subscription
//     that is open from then on, and by every session that has subscribed, on
//     whichever stream, also one that is opened later. It may be lost with the
//     replica that was told of it, which does not wait for the engine. What was heard
//     after a change counts for all changes before that.
//
// Both are told within settled of the acknowledgement: more than an outage and the
// five seconds between looks for lost hints take together.
const (
	chaosHearers  = 8 // sessions with streams, and as many subscriptions
	settled       = 15 * time.Second
	aftermath     = 5 * time.Second // within which a lost reply of the engine shows
	sendEvery     = 100             // ms, on average
	moveEvery     = 4000            // ms until a client opens its stream elsewhere, on average
	chaosResource = "test://watched-resource"
	nobody        = -1
)

// told is what a replica was asked to tell of, and has acknowledged.
type told struct {
	about        string // the text, or the resource
	by           int    // the replica
	called, done time.Duration
}

// span is a stream that was open at a replica, or may have been.
type span struct {
	at       int
	from, to time.Duration
	opened   time.Duration // when it was there for certain; 0 if never
	event    string        // the id of the newest
}

func (s span) String() string {
	return fmt.Sprintf("%d from %.3f, open %.3f, to %.3f (%s)", s.at, s.from.Seconds(), s.opened.Seconds(), s.to.Seconds(), s.event)
}

// around returns the spans about a time.
func (a *account) around(at time.Duration) (near []span) {
	for _, s := range a.spans {
		if s.from <= at+settled && s.to >= at-aftermath && s.opened > 0 {
			near = append(near, s)
		}
	}
	return near
}

// heard is what a client was told.
type heard struct {
	about string
	at    time.Duration
}

// trouble is something that has happened to a replica, or to the engine for it; for
// all of them, at is nobody.
type trouble struct {
	at       int
	killed   bool // the replica; otherwise it is the engine that did not answer
	from, to time.Duration
}

// account is what is known of one hearer.
type account struct {
	messages, changes []told
	spans             []span
	heard             []heard
}

// verdict is what is asked of an account.
type verdict struct {
	faults          []string
	judged, excused int
}

func (v *verdict) add(excused, ok bool, format string, values ...any) {
	switch {
	case ok:
		v.judged++
	case excused:
		v.excused++
	default:
		v.judged++
		v.faults = append(v.faults, fmt.Sprintf(format, values...))
	}
}

// judge says what must not have happened. session tells that it is the account of a
// session; what follows last is not judged, since the test has ended then.
func (a *account) judge(session bool, troubles []trouble, last time.Duration) (v verdict) {
	times := map[string][]time.Duration{}
	for _, h := range a.heard {
		times[h.about] = append(times[h.about], h.at)
	}
	for _, m := range a.messages {
		if m.done+settled > last {
			continue
		}
		all := times[m.about]
		v.add(a.lost(m), len(all) > 0, "the message %s, acknowledged by %d at %v, has reached nobody; streams %v", m.about, m.by, m.done, a.around(m.done))
		if len(all) > 1 {
			v.add(a.doubled(m, all[len(all)-1], troubles), false, "the message %s, sent at %v, has come at %v; streams %v", m.about, m.called, all, a.around(m.called))
		}
	}
	for _, c := range a.changes {
		if c.done+settled > last {
			continue
		}
		gone := happened(troubles, c.called, c.done+settled, func(t trouble) bool { return t.killed && t.at == c.by })
		for _, s := range a.spans {
			if session {
				s = span{at: nobody, to: last}
			}
			if s.from > c.called || s.to < c.done+settled {
				continue
			}
			ok := false
			for _, h := range a.heard {
				ok = ok || h.about == c.about && h.at >= c.called && h.at <= c.done+settled
			}
			v.add(gone, ok, "the change of %s, acknowledged by %d at %v, was not heard on the stream at %d since %v", c.about, c.by, c.done, s.at, s.from)
			if session {
				break
			}
		}
	}
	return v
}

// lost reports whether a message may be lost: a stream was left on which nothing had come,
// so that its client could not say what it lacks.
func (a *account) lost(m told) bool {
	return slices.ContainsFunc(a.spans, func(s span) bool {
		return s.opened > 0 && s.event == "" && s.from <= m.done && s.to >= m.called-aftermath && s.to <= m.done+aftermath
	})
}

// doubled reports whether a message may have come twice by then: a reply of the
// engine was lost, for who has sent it or a replica with a stream.
func (a *account) doubled(m told, then time.Duration, troubles []trouble) bool {
	return happened(troubles, m.called-aftermath, then, func(t trouble) bool {
		return t.at == nobody || t.at == m.by || a.with(t.at, m.called-aftermath, then)
	})
}

// with reports whether a stream was at a replica in that time, or shortly before.
func (a *account) with(at int, from, to time.Duration) bool {
	for _, s := range a.spans {
		if s.at == at && s.from <= to && s.to+aftermath >= from {
			return true
		}
	}
	return false
}

func happened(troubles []trouble, from, to time.Duration, such func(t trouble) bool) bool {
	for _, t := range troubles {
		if t.from <= to && t.to >= from && such(t) {
			return true
		}
	}
	return false
}

// hearer is a client with streams.
type hearer struct {
	d          *disturbed
	subscribes bool
	session    string // the id of its session, unless it subscribes

	mu sync.Mutex
	account
	last string // the id of the newest event

	refused atomic.Int64 // streams
}

func (h *hearer) note(fn func(a *account)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	fn(&h.account)
}

// run has replicas tell the hearer of numbers until ctx ends, and hears until
// hears ends.
func (h *hearer) run(ctx, hears context.Context) {
	var sending sync.WaitGroup
	if !h.subscribes {
		for h.open(ctx) != done {
			if ctx.Err() != nil {
				return
			}
			pauseFor(ctx)
		}
		sending.Go(func() { h.send(ctx) })
	}
	h.listen(hears)
	sending.Wait()
}

// open opens the session, which subscribes to the resource.
func (h *hearer) open(ctx context.Context) fate {
	_, header, o := h.d.send(ctx, http.MethodPost, "", "initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"chaos","version":"1"}}`)
	if o != done {
		return o
	}
	id := header.Get("Mcp-Session-Id")
	for _, request := range [][2]string{{"logging/setLevel", `{"level":"debug"}`}, {"resources/subscribe", `{"uri":"` + chaosResource + `"}`}} {
		if _, _, o = h.d.send(ctx, http.MethodPost, id, request[0], request[1]); o != done {
			return o
		}
	}
	h.session = id
	return done
}

// send has replicas tell the session of numbers.
func (h *hearer) send(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		at := rand.IntN(len(h.d.replicas))
		called := h.d.now()
		r, _, o := h.d.sendTo(context.Background(), h.d.replicas[at], http.MethodPost, h.session, "tools/call",
			fmt.Sprintf(`{"name":"test_notify","arguments":{"session":%q,"text":"n%d"}}`, h.session, n))
		if o == gone {
			h.d.t.Errorf("the session of %d messages is gone", n)
			return
		}
		if o == done && !r.Result.IsError {
			h.note(func(a *account) { a.messages = append(a.messages, told{"n" + strconv.Itoa(n), at, called, h.d.now()}) })
		}
		sleepFor(ctx, sendEvery)
	}
}

// listen keeps a stream open, at one replica after the other.
func (h *hearer) listen(ctx context.Context) {
	for ctx.Err() == nil {
		at := rand.IntN(len(h.d.replicas))
		// A client that goes elsewhere comes with the newest event: what it has not
		// got of the old stream is handed on.
		stay, cancel := context.WithTimeout(ctx, time.Duration(rand.IntN(2*moveEvery))*time.Millisecond)
		if h.subscribes {
			cancel()
			stay, cancel = context.WithCancel(ctx)
		}
		h.stream(stay, at)
		cancel()
		pauseFor(ctx)
	}
}

// stream opens a stream at a replica and hears until it ends, or ctx does.
func (h *hearer) stream(ctx context.Context, at int) {
	method, body := http.MethodGet, ""
	if h.subscribes {
		method = http.MethodPost
		body = `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"resourceSubscriptions":["` + chaosResource + `"]}` + chaosMeta + `}}`
	}
	r, err := http.NewRequestWithContext(ctx, method, h.d.replicas[at], strings.NewReader(body))
	if err != nil {
		h.d.t.Error(err)
		return
	}
	r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}}
	if h.subscribes {
		r.Header.Set("Mcp-Protocol-Version", "2026-07-28")
		r.Header.Set("Mcp-Method", "subscriptions/listen")
	} else {
		r.Header.Set("Mcp-Session-Id", h.session)
		if h.last != "" {
			r.Header.Set("Last-Event-ID", h.last)
		}
	}
	s := span{at: at, from: h.d.now()}
	defer func() {
		s.to = h.d.now()
		h.note(func(a *account) { a.spans = append(a.spans, s) })
	}()
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		return
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		h.d.t.Error("the session of a stream is gone")
	}
	if res.StatusCode != http.StatusOK {
		h.refused.Add(1)
		return
	}
	s.opened = h.d.now()
	for lines := bufio.NewScanner(res.Body); lines.Scan(); {
		h.line(lines.Text(), &s)
	}
}

// line takes a line of a stream.
func (h *hearer) line(line string, s *span) {
	if id, ok := strings.CutPrefix(line, "id: "); ok {
		s.event = id
	}
	data, ok := strings.CutPrefix(line, "data: ")
	if !ok {
		return
	}
	h.last = s.event // which has come as a whole
	var m struct {
		Method string
		Params struct{ Data, URI string }
	}
	_ = json.Unmarshal([]byte(data), &m) // the first event has no data
	switch m.Method {
	case "notifications/message":
		h.note(func(a *account) { a.heard = append(a.heard, heard{m.Params.Data, h.d.now()}) })
	case "notifications/resources/updated":
		h.note(func(a *account) { a.heard = append(a.heard, heard{m.Params.URI, h.d.now()}) })
	case "notifications/subscriptions/acknowledged":
		s.from = h.d.now() // what changes from now on is heard
	}
}

// touch has replicas tell that the resource has changed, which all hearers hear.
func (d *disturbed) touch(ctx context.Context, hearers []*hearer) {
	for ctx.Err() == nil {
		at := rand.IntN(len(d.replicas))
		called := d.now()
		_, _, o := d.sendTo(context.Background(), d.replicas[at], http.MethodPost, "", "tools/call", `{"name":"test_touch","arguments":{"uri":"`+chaosResource+`"}`+chaosMeta+`}`)
		if o == done {
			for _, h := range hearers {
				h.note(func(a *account) { a.changes = append(a.changes, told{chaosResource, at, called, d.now()}) })
			}
		}
		sleepFor(ctx, 5*sendEvery)
	}
}

// now is how long the test runs.
func (d *disturbed) now() time.Duration { return time.Since(d.began) }

// trouble notes something that happens from now on until the function is called
// that it returns.
func (d *disturbed) trouble(at int, killed bool) (over func()) {
	from := d.now()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.troubles = append(d.troubles, trouble{at, killed, from, d.now()})
	}
}

// sleepFor waits for so many milliseconds, more or less.
func sleepFor(ctx context.Context, ms int) {
	select {
	case <-time.After(time.Duration(rand.IntN(2*ms)) * time.Millisecond):
	case <-ctx.Done():
	}
}

const chaosMeta = `,"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`

// What is asked of an account finds what it is to find, and excuses nothing else.
func TestChaosJudge(t *testing.T) {
	const s = time.Second
	message := told{"n1", 2, 100 * s, 101 * s}
	change := told{chaosResource, 2, 100 * s, 101 * s}
	atZero := []span{{at: 0, from: 50 * s, to: 200 * s}}
	for name, test := range map[string]struct {
		account  account
		session  bool
		troubles []trouble
		faults   int
		excused  int
	}{
		"told":                               {account{messages: []told{message}, spans: atZero, heard: []heard{{"n1", 102 * s}}}, true, nil, 0, 0},
		"lost":                               {account{messages: []told{message}, spans: atZero, heard: []heard{{"n2", 102 * s}}}, true, nil, 1, 0},
		"lost with its replica":              {account{messages: []told{message}, spans: atZero}, true, []trouble{{0, true, 103 * s, 103 * s}}, 1, 0},
		"lost while another was killed":      {account{messages: []told{message}, spans: atZero}, true, []trouble{{2, true, 103 * s, 103 * s}}, 1, 0},
		"lost, and its replica killed later": {account{messages: []told{message}, spans: atZero}, true, []trouble{{0, true, 130 * s, 130 * s}}, 1, 0},
		"lost while the engine was away":     {account{messages: []told{message}, spans: atZero}, true, []trouble{{nobody, false, 99 * s, 103 * s}}, 1, 0},
		"lost while its replica was dead":    {account{messages: []told{message}, spans: []span{{at: 0, from: 50 * s, to: 99 * s, opened: 50 * s}}}, true, []trouble{{0, true, 99 * s, 99 * s}}, 0, 1},
		"lost, and a new stream was open":    {account{messages: []told{message}, spans: []span{{at: 0, from: 50 * s, to: 95 * s, opened: 50 * s, event: "x"}, {at: 1, from: 96 * s, to: 200 * s, opened: 97 * s, event: "x"}}}, true, []trouble{{0, true, 95 * s, 95 * s}}, 1, 0},
		"lost on a stream that was left":     {account{messages: []told{message}, spans: []span{{at: 0, from: 99 * s, to: 102 * s, opened: 99 * s}, {at: 1, from: 103 * s, to: 200 * s, opened: 103 * s, event: "x"}}}, true, nil, 0, 1},
		"lost, and there is an id":           {account{messages: []told{message}, spans: []span{{at: 0, from: 99 * s, to: 102 * s, opened: 99 * s, event: "x"}, {at: 1, from: 103 * s, to: 200 * s, opened: 103 * s}}}, true, nil, 1, 0},
		"twice":                              {account{messages: []told{message}, spans: atZero, heard: []heard{{"n1", 102 * s}, {"n1", 103 * s}}}, true, nil, 1, 0},
		"twice after an outage":              {account{messages: []told{message}, spans: atZero, heard: []heard{{"n1", 102 * s}, {"n1", 103 * s}}}, true, []trouble{{nobody, false, 99 * s, 101 * s}}, 0, 1},
		"twice, and others were cut off":     {account{messages: []told{message}, spans: atZero, heard: []heard{{"n1", 102 * s}, {"n1", 103 * s}}}, true, []trouble{{1, false, 99 * s, 101 * s}}, 1, 0},
		"changed":                            {account{changes: []told{change}, spans: atZero, heard: []heard{{chaosResource, 102 * s}}}, false, nil, 0, 0},
		"changed before":                     {account{changes: []told{change}, spans: atZero, heard: []heard{{chaosResource, 99 * s}}}, false, nil, 1, 0},
		"changed too late":                   {account{changes: []told{change}, spans: atZero, heard: []heard{{chaosResource, 120 * s}}}, false, nil, 1, 0},
		"changed at a replica that dies":     {account{changes: []told{change}, spans: atZero}, false, []trouble{{2, true, 102 * s, 102 * s}}, 0, 1},
		"changed while nobody listened":      {account{changes: []told{change}, spans: []span{{at: 0, from: 105 * s, to: 200 * s}}}, false, nil, 0, 0},
		"a session was to be told later":     {account{changes: []told{change}, spans: []span{{at: 0, from: 105 * s, to: 200 * s}}}, true, nil, 1, 0},
		"a session is told later":            {account{changes: []told{change}, spans: []span{{at: 0, from: 105 * s, to: 200 * s}}, heard: []heard{{chaosResource, 106 * s}}}, true, nil, 0, 0},
	} {
		v := test.account.judge(test.session, test.troubles, 300*s)
		if len(v.faults) != test.faults || v.excused != test.excused {
			t.Errorf("%s: %q, %d excused; want %d faults, %d excused", name, v.faults, v.excused, test.faults, test.excused)
		}
	}
}
