package client

import (
	"encoding/json"
	"slices"
	"sync"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/protocol"
)

// Notification is a notification of the server.
type Notification struct {
	Server string // as the transport calls it
	Method string
	Params json.RawMessage // nil if there are none
}

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

// maxNotifications is how many notifications wait for the handlers, maxListened
// for one listener, and maxQueued how long those that wait for either are
// together, in bytes.
const (
	maxNotifications = 1024
	maxListened      = 256
	maxQueued        = 16 << 20
)

// notifications gives notifications to the handlers, one after the other, without
// keeping the link's reader.
type notifications struct {
	client  *Client
	mu      sync.Mutex
	waiting backlog
	running bool
	dropped int64

	listeners map[*listener]struct{}
}

// delivery is a notification and whom else it is for.
type delivery struct {
	Notification
	fn func(Notification) // of a subscription, or nil
}

func (d *delivery) size() int { return len(d.Method) + len(d.Params) }

// backlog is what waits to be delivered.
type backlog struct {
	queue []delivery
	size  int // of all, in bytes
}

// push puts d behind the others, and returns how many of those made room for it:
// there are at most that many, and as long as maxQueued allows.
func (b *backlog) push(d delivery, most int) (dropped int64) {
	b.queue = append(b.queue, d)
	b.size += d.size()
	for ; len(b.queue) > most || b.size > maxQueued && len(b.queue) > 1; dropped++ {
		b.shift()
	}
	return dropped
}

// shift takes the oldest out; ok is false if there is none.
func (b *backlog) shift() (d delivery, ok bool) {
	if len(b.queue) == 0 {
		b.queue = nil
		return d, false
	}
	d = b.queue[0]
	b.queue[0] = delivery{} // what was told is not kept
	b.queue = b.queue[1:]
	b.size -= d.size()
	return d, true
}

// push queues a notification. It does not wait.
func (n *notifications) push(what Notification, fn func(Notification)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dropped += n.waiting.push(delivery{what, fn}, maxNotifications)
	if !n.running {
		n.running = n.client.life.spawn(n.run)
	}
}

// lost returns how many made room for later ones.
func (n *notifications) lost() int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.dropped
}

// run delivers until nothing waits.
func (n *notifications) run() {
	for {
		n.mu.Lock()
		d, ok := n.waiting.shift()
		n.running = ok
		n.mu.Unlock()
		if !ok {
			return
		}
		n.deliver(d)
	}
}

// deliver gives one notification to all who hear it: its subscription first, then
// the sequences of Client.Notifications, then the options. Each callback is guarded
// by itself, so that one that panics costs the others nothing.
func (n *notifications) deliver(d delivery) {
	c := n.client
	if d.fn != nil {
		_ = c.guard("subscription", func() { d.fn(d.Notification) }) // a panic is in the log
	}
	n.mu.Lock()
	for l := range n.listeners {
		n.dropped += l.take(d)
	}
	n.mu.Unlock()
	if c.opts.OnNotification != nil {
		_ = c.guard("OnNotification", func() { c.opts.OnNotification(d.Notification) })
	}
	if d.Method == protocol.MethodLog {
		n.log(d.Params)
	}
}

// listener is one use of Client.Notifications. The mutex of notifications guards
// what waits for it.
type listener struct {
	methods []string // none means all
	waiting backlog
	wake    chan struct{} // gets a value when something waits
}

// take queues a notification for the listener, and returns how many older ones
// made room for it.
func (l *listener) take(d delivery) (dropped int64) {
	if len(l.methods) > 0 && !slices.Contains(l.methods, d.Method) {
		return 0
	}
	dropped = l.waiting.push(delivery{Notification: d.Notification}, maxListened)
	select {
	case l.wake <- struct{}{}:
	default:
	}
	return dropped
}

// next returns the oldest notification that waits for l; ok is false if there is
// none.
func (n *notifications) next(l *listener) (one Notification, ok bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	d, ok := l.waiting.shift()
	return d.Notification, ok
}

// listen adds a listener; remove takes it out again.
func (n *notifications) listen(methods []string) (l *listener, remove func()) {
	l = &listener{methods: slices.Clone(methods), wake: make(chan struct{}, 1)}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.listeners == nil {
		n.listeners = map[*listener]struct{}{}
	}
	n.listeners[l] = struct{}{}
	return l, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.listeners, l)
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

// log gives a log message to the callback, or to the logger without one.
func (n *notifications) log(params json.RawMessage) {
	c := n.client
	entry, err := logEntry(params)
	if err != nil {
		safely.Log(c.opts.Logger.Warn().Err(visible.Error(err)).Str("server", c.server), "a log message does not decode")
		return
	}
	if c.opts.OnLog != nil {
		_ = c.guard("OnLog", func() { c.opts.OnLog(entry) })
		return
	}
	e := c.opts.Logger.WithLevel(zerologLevel(entry.Level)).Str("server", c.server).Str("logger", visible.Line(entry.Logger, visible.Name))
	safely.Log(logData(e, entry.Data), "server log")
}

// logData adds the data of a log message as JSON on one line, whatever its white
// space: a line of the log is nobody's but the logger's. Long data is cut, and a
// text then.
func logData(e *zerolog.Event, data json.RawMessage) *zerolog.Event {
	if !e.Enabled() {
		return e
	}
	text, err := jsonx.Compact(nil, data)
	if err != nil || len(text) > visible.Sentence {
		return e.Str("data", visible.Line(string(data), visible.Sentence))
	}
	return e.RawJSON("data", visible.JSON(text))
}

// zerologLevel maps the eight levels of the protocol to those of the logger.
// Everything above a warning is an error there: the severities of a server are no
// reason to end this program, as a fatal line would.
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
