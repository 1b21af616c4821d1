package client

import (
	"encoding/json"
	"slices"
	"strconv"
	"sync"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/client/internal/link"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// LogEntry is a log message of the server.
type LogEntry struct {
	Level  protocol.Level
	Logger string // "" if it does not say
	Data   json.RawMessage
}

// Text returns the data if that is a string, else as JSON.
func (l LogEntry) Text() string {
	var text string
	if json.Unmarshal(l.Data, &text) == nil {
		return text
	}
	return string(l.Data)
}

// maxEvents is how many notifications wait for the handlers, and maxEventBytes
// how long they are together.
const (
	maxEvents     = 1024
	maxEventBytes = 16 << 20
)

// events gives notifications to the handlers, one after the other, without
// keeping the link's reader.
type events struct {
	client  *Client
	mu      sync.Mutex
	queue   []delivery
	size    int // of what waits, in bytes
	running bool
	dropped int64
}

// delivery is an event and whom else it is for.
type delivery struct {
	event Event
	fn    func(Event) // of a subscription, or nil
}

// push queues an event. It does not wait.
func (e *events) push(event Event, fn func(Event)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = append(e.queue, delivery{event, fn})
	e.size += len(event.Params)
	for len(e.queue) > maxEvents || e.size > maxEventBytes && len(e.queue) > 1 {
		e.shift()
		e.dropped++
	}
	if !e.running {
		e.running = e.client.spawn(e.run)
	}
}

// shift takes the oldest out. e.mu is held.
func (e *events) shift() delivery {
	d := e.queue[0]
	e.queue[0] = delivery{} // what was told is not kept
	e.queue = e.queue[1:]
	e.size -= len(d.event.Params)
	return d
}

func (e *events) lost() int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.dropped
}

// run delivers until nothing waits.
func (e *events) run() {
	for {
		e.mu.Lock()
		if len(e.queue) == 0 {
			e.queue, e.running = nil, false
			e.mu.Unlock()
			return
		}
		d := e.shift()
		e.mu.Unlock()
		e.deliver(d)
	}
}

func (e *events) deliver(d delivery) {
	c := e.client
	if d.fn != nil {
		c.guard("subscription", func() { d.fn(d.event) })
	}
	c.opts.Events.Publish(d.event)
	if c.opts.OnNotification != nil {
		c.guard("OnNotification", func() { c.opts.OnNotification(d.event) })
	}
	for _, h := range c.handlers() {
		if h.topics.wants(d.event.Method) {
			c.guard("OnEvent", func() { h.fn(d.event) })
		}
	}
	if d.event.Method == protocol.MethodLog {
		c.log(d.event.Params)
	}
}

// logEntry reads the params of notifications/message.
func logEntry(params json.RawMessage) (LogEntry, error) {
	var wire struct {
		Level  protocol.Level  `json:"level"`
		Logger string          `json:"logger"`
		Data   json.RawMessage `json:"data"`
	}
	err := json.Unmarshal(params, &wire)
	return LogEntry(wire), err
}

// log gives a log message to the callback and to the logger.
func (c *Client) log(params json.RawMessage) {
	entry, err := logEntry(params)
	if err != nil {
		c.opts.Logger.Warn().Err(err).Str("server", c.server).Msg("a log message does not decode")
		return
	}
	if c.opts.OnLog != nil {
		c.guard("OnLog", func() { c.opts.OnLog(entry) })
	}
	c.opts.Logger.WithLevel(zerologLevel(entry.Level)).Str("server", c.server).Str("logger", entry.Logger).
		RawJSON("data", entry.Data).Msg("server log")
}

func zerologLevel(level protocol.Level) zerolog.Level {
	switch level {
	case protocol.LevelDebug:
		return zerolog.DebugLevel
	case protocol.LevelInfo, protocol.LevelNotice:
		return zerolog.InfoLevel
	case protocol.LevelWarning:
		return zerolog.WarnLevel
	}
	return zerolog.ErrorLevel
}

// eventFn is a handler that came after Connect.
type eventFn struct {
	topics topics
	fn     func(Event)
}

func (c *Client) handlers() []*eventFn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.eventFns
}

// OnEvent calls fn for the notifications of these topics from now on, as
// Options.OnNotification does, until remove is called. Topics are those of
// PubSub.Subscribe.
func (c *Client) OnEvent(fn func(Event), topics ...string) (remove func()) {
	h := &eventFn{slices.Clone(topics), fn}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eventFns = append(slices.Clip(c.eventFns), h)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.eventFns = slices.DeleteFunc(slices.Clone(c.eventFns), func(other *eventFn) bool { return other == h })
	}
}

// OnLog calls fn for the log messages of the server from now on, as
// Options.OnLog does, until remove is called.
func (c *Client) OnLog(fn func(LogEntry)) (remove func()) {
	return c.OnEvent(func(e Event) {
		if entry, err := logEntry(e.Params); err == nil {
			fn(entry)
		}
	}, protocol.MethodLog)
}

// Events returns a channel of the notifications of these topics; see
// PubSub.Subscribe.
func (c *Client) Events(topics ...string) (events <-chan Event, cancel func()) {
	return c.opts.Events.Subscribe(topics...)
}

// notified takes a notification of the server.
func (conn *connection) notified(m *protocol.Message, during *link.Message) {
	c := conn.client
	switch m.Method {
	case protocol.MethodProgress:
		conn.progressed(m.Params, during)
		return
	case protocol.MethodCancelled:
		conn.gaveUp(m.Params)
	case protocol.MethodToolsChanged:
		c.tools.stale()
		c.opts.Cache.drop(c.server, protocol.MethodToolsList, "")
	case protocol.MethodPromptsChanged:
		c.opts.Cache.drop(c.server, protocol.MethodPromptsList, "")
	case protocol.MethodResourcesChanged:
		c.opts.Cache.drop(c.server, protocol.MethodResourcesList, "")
		c.opts.Cache.drop(c.server, protocol.MethodResourceTemplates, "")
	case methodElicited:
		c.elicited.complete(stringIn(m.Params, "elicitationId"))
	case protocol.MethodResourceUpdated:
		if uri := stringIn(m.Params, "uri"); uri != "" {
			c.opts.Cache.drop(c.server, protocol.MethodResourcesRead, string(named("uri", uri)))
		}
	}
	sub := conn.subscriptionOf(m, during)
	if sub != nil && m.Method == protocol.MethodAcknowledged {
		sub.acknowledged(m.Params)
		return
	}
	var fn func(Event)
	if sub != nil {
		fn = sub.fn
	} else if !conn.revision().Modern() {
		fn = c.legacyFn(m)
	}
	c.events.push(Event{Server: c.server, Method: m.Method, Params: clone(m.Params)}, fn)
}

// progressed gives progress to the call whose token it carries.
func (conn *connection) progressed(params []byte, during *link.Message) {
	var p Progress
	var token []byte
	err := members(params, func(name []byte, s *jsonx.Scanner) error {
		switch string(name) {
		case "progressToken":
			token = value(s)
		case "progress":
			p.Progress = number(value(s))
		case "total":
			p.Total = number(value(s))
		case "message":
			if s.Peek() == jsonx.String {
				text, err := s.Str()
				p.Message = string(text)
				return err
			}
			s.SkipChecked()
		default:
			s.SkipChecked()
		}
		return nil
	})
	id, bad := strconv.ParseInt(string(token), 10, 64)
	if err != nil || bad != nil {
		return // nobody asked for it
	}
	c := conn.client.calls.find(id)
	if c == nil || c.conn != conn {
		return // late, as it may be
	}
	c.advance(p, conn.sync)
}

func number(raw []byte) float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return 0
	}
	return f
}

// stringIn returns a string member of an object, "" if there is none.
func stringIn(raw []byte, path ...string) string {
	text := protocol.Lookup(raw, path)
	s := jsonx.Scanner{Buf: text}
	if s.Peek() != jsonx.String {
		return ""
	}
	b, err := s.Str()
	if err != nil {
		return ""
	}
	return string(b)
}

// gaveUp takes notifications/cancelled: the server needs no answer to its
// question any more, or gives one of the client's requests up.
func (conn *connection) gaveUp(params []byte) {
	var p protocol.CancelledParams
	if json.Unmarshal(params, &p) != nil || p.RequestID.IsZero() {
		return // to be ignored
	}
	if conn.asked.Cancel(p.RequestID) {
		return
	}
	c := conn.callOf(p.RequestID)
	if c == nil {
		return
	}
	reason := p.Reason
	if reason == "" {
		reason = "no reason given"
	}
	err := &Error{kind: ErrCancelled, Err: &serverCancelled{reason}}
	if sub := c.subscription(); sub != nil {
		err = &Error{kind: ErrClosed, Err: &serverCancelled{reason}}
	}
	if conn.client.calls.finish(c.id, conn, nil, err) {
		c.abort(err)
	}
}

type serverCancelled struct{ reason string }

func (e *serverCancelled) Error() string { return "the server cancelled it: " + e.reason }

func (c *call) subscription() *Subscription {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.sub
}
