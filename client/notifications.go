package client

import (
	"bytes"
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
	if jsonx.Unmarshal(l.Data, &text) == nil {
		return text
	}
	return string(l.Data)
}

// maxNotifications is how many notifications wait for the callbacks,
// maxListened how many for one listener, and maxQueued how long those that wait
// for either may be together, in bytes. maxChanges is how many of them may be changes of one
// list, each with at most maxChange bytes of params.
const (
	maxNotifications = 1024
	maxListened      = 256
	maxQueued        = 16 << 20
	maxChanges       = 64
	maxChange        = 4 << 10
)

// notifications delivers notifications one after the other, without blocking
// the goroutine that reads the link. While something waits, one goroutine runs;
// running says so. mu guards all fields below client.
type notifications struct {
	client  *Client
	mu      sync.Mutex
	waiting backlog
	running bool
	dropped int64

	listeners map[*listener]struct{}
}

// delivery is a notification on its way to the callbacks.
type delivery struct {
	Notification
	fn func(Notification) // of a subscription, or nil
}

// size returns the number of bytes that count for maxQueued.
func (d *delivery) size() int { return len(d.Method) + len(d.Params) }

// isListChange reports whether the notification says that a list has changed, in so few words
// that it is kept.
func (d *delivery) isListChange() bool {
	switch d.Method {
	case protocol.MethodToolsChanged, protocol.MethodPromptsChanged, protocol.MethodResourcesChanged:
		return len(d.Params) <= maxChange
	}
	return false
}

// backlog is a queue with a limit on its length and on its bytes. The oldest
// entries are dropped, and of changes of a list all but the last of each subscription.
type backlog struct {
	queue []delivery
	size  int // of all, in bytes
}

// push appends d and returns how many older entries were dropped for it.
func (b *backlog) push(d delivery, most int) (dropped int64) {
	if d.isListChange() && b.merge(d) {
		dropped++
	}
	b.queue = append(b.queue, d)
	b.size += d.size()
	for moved := 0; len(b.queue) > most || b.size > maxQueued && len(b.queue) > 1; {
		oldest, _ := b.shift()
		repeats := func(d delivery) bool { return d.Method == oldest.Method && bytes.Equal(d.Params, oldest.Params) }
		switch {
		case !oldest.isListChange() || moved > most:
			dropped++
		case !slices.ContainsFunc(b.queue, repeats): // each subscription has other params
			b.queue = append(b.queue, oldest)
			b.size += oldest.size()
			moved++
		}
	}
	return dropped
}

// merge takes out a change of the list of d if maxChanges of them wait: one that says the same,
// else the oldest, which is lost.
func (b *backlog) merge(d delivery) (lost bool) {
	at, n, same := 0, 0, false
	for i := range b.queue {
		if b.queue[i].Method != d.Method {
			continue
		}
		if n++; !same {
			if same = bytes.Equal(b.queue[i].Params, d.Params); same || n == 1 {
				at = i
			}
		}
	}
	if n < maxChanges {
		return false
	}
	b.size -= b.queue[at].size()
	b.queue = slices.Delete(b.queue, at, at+1)
	return !same
}

// shift takes the oldest out; ok is false if there is none.
func (b *backlog) shift() (d delivery, ok bool) {
	if len(b.queue) == 0 {
		b.queue = nil
		return d, false
	}
	d = b.queue[0]
	b.queue[0] = delivery{} // a delivered notification is not kept
	b.queue = b.queue[1:]
	b.size -= d.size()
	return d, true
}

// push queues a notification; fn is the callback of its subscription, or nil.
// It does not block.
func (n *notifications) push(what Notification, fn func(Notification)) {
	n.mu.Lock()
	dropped := n.waiting.push(delivery{what, fn}, maxNotifications)
	if !n.running {
		n.running = n.client.life.spawn(n.run)
	}
	n.mu.Unlock()
	n.lose(dropped)
}

// lose counts n dropped notifications, because their consumer is too slow. n.mu
// is not held.
func (n *notifications) lose(dropped int64) {
	if dropped == 0 {
		return
	}
	n.mu.Lock()
	n.dropped += dropped
	all := n.dropped
	n.mu.Unlock()
	n.client.logDropped(n.client.opts.Logger.Warn, "notifications of the server are dropped: a callback or a reader of them is too slow", func(e *zerolog.Event) *zerolog.Event {
		return e.Int64("dropped", all)
	})
}

// lost returns how many notifications were dropped.
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

// deliver passes one notification to its subscription, then to the sequences of
// Client.Notifications, then to the options. Each callback is guarded by
// itself.
func (n *notifications) deliver(d delivery) {
	c := n.client
	if d.fn != nil {
		_ = c.guard("subscription", func() { d.fn(d.Notification) }) // a panic is in the log
	}
	dropped := int64(0)
	n.mu.Lock()
	for l := range n.listeners {
		dropped += l.take(d)
	}
	n.mu.Unlock()
	n.lose(dropped)
	if c.opts.OnNotification != nil {
		_ = c.guard("OnNotification", func() { c.opts.OnNotification(d.Notification) })
	}
	if d.Method == protocol.MethodLog {
		n.log(d.Params)
	}
}

// listener is one use of Client.Notifications. The mutex of notifications
// guards waiting.
type listener struct {
	methods []string // none means all
	waiting backlog
	wake    chan struct{} // gets a value when something waits
}

// take queues a notification for the listener and returns how many older ones
// were dropped for it.
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

// listen adds a listener; remove takes it out again and may be called several
// times.
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
	err := jsonx.Unmarshal(params, &wire)
	return LogEntry(wire), err
}

// log passes a log message of the server to Options.OnLog, or to the logger if
// there is no callback.
func (n *notifications) log(params json.RawMessage) {
	c := n.client
	entry, err := logEntry(params)
	if err != nil {
		c.logUnread(protocol.MethodLog, err)
		return
	}
	if c.opts.OnLog != nil {
		_ = c.guard("OnLog", func() { c.opts.OnLog(entry) })
		return
	}
	e := c.opts.Logger.WithLevel(zerologLevel(entry.Level)).Str("server", c.server).Str("logger", visible.Line(entry.Logger, visible.Name))
	safely.Log(logData(e, entry.Data), "server log")
}

// logData adds the data of a log message as compact JSON on one line. Long data
// is cut and then added as text.
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

// zerologLevel maps the eight levels of the protocol to those of zerolog.
// Everything above a warning becomes an error: a server's severities must not
// end this program, as a line of level fatal would.
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
