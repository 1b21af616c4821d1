package gateway

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// exchange is a request to an upstream: a call, a read or a get.
type exchange func(ctx context.Context, c *client.Client, options ...client.CallOption) (protocol.Result, error)

// run is one request of a client in progress at an upstream. A client of 2026-07-28 comes
// back with each answer, while a legacy upstream waits in the one request that asked: then
// the run has a goroutine of its own, and is parked between the rounds.
type run struct {
	connection *connection
	key        string                    // in the sealed state of the request
	frame      atomic.Pointer[mcp.Frame] // of the round in progress
	cancel     context.CancelFunc
	asking     sync.WaitGroup // questions by requests; connection.mu is held for Add

	// Of a run that can be parked. The goroutine of the round in progress owns id and the
	// fields after it.
	questions chan *question // nil if the client is asked by requests
	done      chan outcome
	ended     chan struct{} // closed when it takes no more questions
	who       poolKey       // whose it is
	id        string        // of the question that is open
	open      *question
	round     int
	late      *time.Timer
}

// question is what a legacy upstream asks.
type question struct {
	method string
	params json.RawMessage
	reply  chan reply // has room for the one
}

// reply answers a question.
type reply struct {
	result json.RawMessage
	err    error
}

// outcome is the end of an exchange.
type outcome struct {
	result protocol.Result
	err    error
}

// travel is what a request needs in its next round. It is a part of the sealed state.
type travel struct {
	Parked string                  `json:"p,omitempty"` // the id of the run
	State  string                  `json:"s,omitempty"` // of a modern upstream
	Asks   []protocol.InputRequest `json:"q,omitempty"`
	Round  int                     `json:"r,omitempty"`
}

// pass makes a request of the client of f at the upstream of c.
func (c *connection) pass(f *mcp.Frame, do exchange) (protocol.Result, error) {
	u := c.upstream
	cl, err := c.ready(f)
	if err != nil {
		return nil, err
	}
	modern := cl.Revision().Modern()
	if c.key().modern && !modern && cl.Revision() != 0 { // sessions would share it
		u.era.Store(eraLegacy)
		return nil, errEra
	}
	select {
	case u.calls <- struct{}{}:
	default:
		return nil, refused("Server %q has %d calls in progress; try again later.", u.name, maxCalls)
	}
	free := func() { <-u.calls }
	r := &run{connection: c, key: internal.Keyed(f, "gateway")}
	r.frame.Store(f)
	if c.key().caps != "" && !modern && f.Revision().Modern() {
		if err := r.start(f, cl, do, free); err != nil {
			return nil, err
		}
		return r.requests(f)
	}
	defer free()
	switch {
	case c.key().caps == "" || internal.Asker(f) == nil:
		return do(f, cl, r.options(f)...)
	case modern:
		return r.rounds(f, cl, do)
	}
	c.enter(r)
	defer r.asking.Wait() // this request may carry a question of another one
	defer c.leave(r, f)
	return do(f, cl, r.options(f)...)
}

// travelled returns what the round before has left; the zero value in a first round.
func travelled(f *mcp.Frame) (was travel, err error) {
	asker := internal.Asker(f)
	if asker == nil || !f.Revision().Modern() {
		return was, nil
	}
	text, ok, err := asker.Recall(internal.Keyed(f, "gateway"))
	if err != nil || !ok {
		return was, err
	}
	if jsonx.Unmarshal(text, &was) != nil {
		return was, errOver
	}
	return was, nil
}

// errEra is the error of a connection whose upstream is of another era by now.
var errEra = errors.New("the upstream speaks another revision by now")

// errOver is the error of a round that comes too late, or to another process.
var errOver = protocol.Errorf(protocol.CodeInvalidParams, "the call that asked this is over, or runs in another process: call the tool again")

// options returns the options of the request to the upstream.
func (r *run) options(f *mcp.Frame) []client.CallOption {
	options := []client.CallOption{client.NoRounds()}
	if r.connection.upstream.gateway.opts.Client.Timeout == 0 {
		options = append(options, client.Timeout(-1)) // the client has a time of its own
	}
	if f.Request().Params.Meta.ProgressToken != nil {
		options = append(options, client.OnProgress(func(p client.Progress) {
			_ = r.frame.Load().Progress(p.Progress, p.Total, p.Message) // a client that is gone ends the request
		}))
	}
	return options
}

// rounds makes the request at a modern upstream, again for each answer.
func (r *run) rounds(f *mcp.Frame, cl *client.Client, do exchange) (protocol.Result, error) {
	t, err := travelled(f)
	if err != nil {
		return nil, err
	}
	for {
		options := r.options(f)
		if t.Round > 0 {
			answers, err := r.ask(f, t.Round, t.Asks, t)
			if err != nil {
				return nil, err
			}
			given := make(map[string]any, len(answers))
			for i, q := range t.Asks {
				given[q.Key] = answers[i]
			}
			options = append(options, client.Answers(given, t.State))
		}
		result, err := do(f, cl, options...)
		asks, ok := errors.AsType[*client.InputRequiredError](err)
		if !ok {
			return result, err
		}
		if t = (travel{State: asks.State, Asks: asks.Requests, Round: t.Round + 1}); t.Round > r.connection.upstream.gateway.host.Rounds {
			return nil, refused("Server %q asks in more than %d rounds.", r.connection.upstream.name, t.Round-1)
		}
		for _, q := range t.Asks {
			if fault := r.connection.canAnswer(q.Method, q.Params); fault != nil {
				return nil, &refusal{errors.New(fault.Message)}
			}
		}
	}
}

// ask asks the client of f. In a modern revision it returns ErrInputRequired until the
// client has answered, and the next round finds kept.
func (r *run) ask(f *mcp.Frame, round int, asks []protocol.InputRequest, kept travel) ([]json.RawMessage, error) {
	if len(asks) == 0 {
		return nil, nil
	}
	u := r.connection.upstream
	questions := make([]protocol.InputRequest, len(asks))
	for i, q := range asks {
		key := fmt.Sprintf("%s/%d/%s", r.key, round, q.Key)
		questions[i] = protocol.InputRequest{Key: key, Method: q.Method, Params: worded(u.name, q.Method, q.Params, f, key)}
	}
	answers, err := internal.Asker(f).Ask(f, questions)
	if errors.Is(err, mcp.ErrInputRequired) {
		text, fault := json.Marshal(kept)
		if fault == nil {
			fault = internal.Keep(f, r.key, text)
		}
		if fault != nil {
			return nil, fault
		}
	}
	return answers, err
}

// worded returns the params of a question as the client of f takes them. Its message
// begins with the name of the upstream, as the user sees only the gateway.
func worded(name, method string, params json.RawMessage, f *mcp.Frame, key string) json.RawMessage {
	var members map[string]json.RawMessage
	var message, mode string
	if method != protocol.MethodElicit || jsonx.Unmarshal(params, &members) != nil || jsonx.Unmarshal(members["message"], &message) != nil {
		return params
	}
	_ = jsonx.Unmarshal(members["mode"], &mode) // absent means a form
	if name != "" {
		message = name + ": " + message
	}
	set := func(member, value string) { members[member], _ = json.Marshal(value) } // texts always encode
	set("message", message)
	delete(members, "elicitationId")
	switch {
	case !f.Revision().Has(protocol.FeatureElicitModes):
		delete(members, "mode")
	case mode == "":
		set("mode", "form")
	case mode == "url" && !f.Revision().Modern():
		set("elicitationId", f.ElicitationID(key))
	}
	text, err := json.Marshal(members)
	if err != nil {
		return params
	}
	return text
}

// start makes the request at a legacy upstream on a goroutine of its own, which continues
// when the request of f has ended. free is called at its end.
func (r *run) start(f *mcp.Frame, cl *client.Client, do exchange, free func()) error {
	c := r.connection
	g := c.upstream.gateway
	ctx, cancel := context.WithCancel(context.WithoutCancel(f))
	r.cancel, r.questions, r.done = cancel, make(chan *question), make(chan outcome, 1)
	r.ended = make(chan struct{})
	r.who = poolKey{c.upstream, connKey{caller: c.key().caller, session: c.key().session}}
	c.enter(r)
	g.pool.hold(c)
	if g.spawn(func() {
		defer free()
		defer g.pool.release(c)
		defer context.AfterFunc(g.ctx, cancel)()
		result, err := do(ctx, cl, r.options(f)...)
		c.leave(r, ctx) // before the client can make its next call
		r.done <- outcome{result, err}
		close(r.ended)
	}) {
		return nil
	}
	cancel()
	c.leave(r, ctx)
	g.pool.release(c)
	free()
	return errClosed
}

// requests continues a run for a client of 2026-07-28, until it has ended or asks.
func (r *run) requests(f *mcp.Frame) (protocol.Result, error) {
	parking := &r.connection.upstream.gateway.parking
	r.frame.Store(f)
	for {
		if q := r.open; q != nil {
			answers, err := r.ask(f, r.round, []protocol.InputRequest{{Key: "q", Method: q.method, Params: q.params}}, travel{Parked: r.id})
			if errors.Is(err, mcp.ErrInputRequired) {
				if full := parking.park(r); full != nil {
					q.reply <- reply{err: full}
					r.cancel()
					return nil, full
				}
				return nil, err
			}
			r.open = nil
			if err != nil {
				q.reply <- reply{err: err}
			} else {
				q.reply <- reply{result: answers[0]}
			}
		}
		select {
		case end := <-r.done:
			r.cancel()
			return end.result, end.err
		case r.open = <-r.questions:
			r.round++
			r.id = rand.Text()
		case <-f.Done():
			r.cancel()
			return nil, context.Cause(f)
		}
	}
}

// enter notes that a run is in progress.
func (c *connection) enter(r *run) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs = append(c.runs, r)
}

// leave notes that a run has ended. One that was cancelled may still ask something, and
// only a session tells who that is for.
func (c *connection) leave(r *run, ctx context.Context) {
	c.mu.Lock()
	c.runs = slices.DeleteFunc(c.runs, func(other *run) bool { return other == r })
	unclear := ctx.Err() != nil && !c.key().person()
	c.unclear = c.unclear || unclear
	c.mu.Unlock()
	if unclear {
		c.upstream.gateway.pool.drop(c, true) // the next request gets another one
	}
}

// asking returns the run that a question of a legacy upstream belongs to. The question does
// not say that. In one session it is the newest, as the person is the same; else there has
// to be one only.
func (c *connection) asking() (*run, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch n := len(c.runs); {
	case n == 0:
		return nil, errors.New("no call is in progress")
	case !c.key().person() && (n > 1 || c.unclear):
		return nil, errors.New("several calls are in progress, and it is unknown which one asks")
	}
	r := c.runs[len(c.runs)-1]
	if r.questions == nil {
		r.asking.Add(1)
	}
	return r, nil
}

// codeRefused is the code of the answer to a question that does not reach a client.
const codeRefused = -32000

// asked answers a request of the upstream. It is client.Options.OnRequest.
func (c *connection) asked(ctx context.Context, method string, params json.RawMessage) (any, error) {
	if fault := c.canAnswer(method, params); fault != nil {
		return nil, fault
	}
	one := []protocol.InputRequest{{Key: "q", Method: method, Params: params}}
	for {
		r, err := c.asking()
		switch {
		case err != nil && c.key().session != "": // it asks outside of a call, as for roots at the beginning
			return c.askSession(ctx, one)
		case err != nil:
			return nil, protocol.Errorf(codeRefused, "%w", err)
		case r.questions == nil: // its client is asked in the same way
			defer r.asking.Done()
			return first(r.ask(r.frame.Load(), 0, one, travel{}))
		}
		q := &question{method, bytes.Clone(params), make(chan reply, 1)}
		select {
		case r.questions <- q:
		case <-r.ended:
			if !c.key().person() {
				return nil, protocol.Errorf(codeRefused, "the call that asked is over")
			}
			continue // it is of another call of the same person
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		select {
		case a := <-q.reply:
			return a.result, a.err
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// askSession asks the client outside of its requests.
func (c *connection) askSession(ctx context.Context, one []protocol.InputRequest) (answer any, err error) {
	ctx, stop := context.WithTimeout(ctx, c.upstream.gateway.parking.question)
	defer stop()
	err = c.upstream.gateway.server.WithSession(ctx, c.key().session, func(f *mcp.Frame) error {
		r := &run{connection: c, key: "gateway"}
		answer, err = first(r.ask(f, 0, one, travel{}))
		return err
	})
	return answer, err
}

// first returns the first of several answers.
func first(answers []json.RawMessage, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return answers[0], nil
}

// The bounds of parked runs.
const (
	maxParked       = 256
	maxParkedCaller = 16
)

// errFull is the error of a run that cannot be parked.
var errFull = errors.New("too many calls wait for answers")

// parking has the runs whose clients were asked and have not come back. A run is taken
// once; then it belongs to the goroutine of the request that has taken it.
type parking struct {
	question time.Duration // for an answer

	mu      sync.Mutex
	runs    map[string]*run // by their ids
	callers map[poolKey]int
}

// park keeps a run until its client is back, or the time of the question is over.
func (p *parking) park(r *run) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.runs) >= maxParked || p.callers[r.who] >= maxParkedCaller {
		return errFull
	}
	p.runs[r.id] = r
	p.callers[r.who]++
	id := r.id
	r.late = time.AfterFunc(p.question, func() {
		if late := p.take(id); late != nil {
			late.cancel()
		}
	})
	return nil
}

// take returns a parked run; nil if there is none.
func (p *parking) take(id string) *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.runs[id]
	if r == nil {
		return nil
	}
	delete(p.runs, id)
	if p.callers[r.who]--; p.callers[r.who] == 0 {
		delete(p.callers, r.who)
	}
	r.late.Stop()
	return r
}

// end cancels all parked runs.
func (p *parking) end() {
	p.mu.Lock()
	ids := slices.Collect(maps.Keys(p.runs))
	p.mu.Unlock()
	for _, id := range ids {
		if r := p.take(id); r != nil {
			r.cancel()
		}
	}
}
