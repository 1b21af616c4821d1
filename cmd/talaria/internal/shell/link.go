package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/internal/clients/subscriptions"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// link is the connection to the server, which may be lost and made again.
type link struct {
	Options
	change sync.Mutex     // held while the connection is made or ended
	client *client.Client // nil without a connection
	lists  lists
	subs   subscriptions.Set
	told   protocol.Level // what set_level chose

	ready   atomic.Bool // the connection was there
	lost    atomic.Bool // and is not any more
	closing atomic.Bool // it is closed from here
}

// connect makes a connection in the place of the one before.
func (l *link) connect(ctx context.Context) error {
	l.change.Lock()
	defer l.change.Unlock()
	l.leave()
	l.ready.Store(false)
	l.lost.Store(false)
	c, err := l.Connect(ctx)
	if err != nil {
		return err
	}
	l.client = c
	l.lists.of(c)
	l.Console.Printf("connected to %s, revision %s", l.Console.Paint(console.Bold, render.Server(c.Server().Info)), c.Revision())
	if l.Console.Interactive() {
		l.Console.Notef("help lists the commands; Tab completes them")
	}
	if filter, some := wire.ListChanges(c.Server().Capabilities); some && c.Revision().Modern() {
		err := l.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error {
			_, err := c.Listen(ctx, filter, nil)
			return err
		})
		if errors.Is(err, terminal.ErrInterrupted) {
			l.leave()
			return err
		}
		if err != nil {
			l.Console.Warnf("the server does not tell of changes: %v", err)
		}
	}
	return nil
}

func (l *link) disconnect() {
	l.change.Lock()
	defer l.change.Unlock()
	l.leave()
}

// End ends the connection, from another goroutine than Run's, before the process ends. The
// context of Run must have ended.
func (l *link) End() {
	l.change.Lock()
	defer l.change.Unlock()
	if l.client != nil {
		l.closing.Store(true)
		_ = l.client.Close() // the process ends
	}
}

// leave ends the connection. change is held.
func (l *link) leave() {
	if l.client == nil {
		return
	}
	l.closing.Store(true)
	defer l.closing.Store(false)
	l.subs.Clear()
	if err := l.client.Close(); err != nil {
		l.Console.Warnf("%v", err)
	}
	l.client = nil
	l.lists.of(nil)
}

// fetch asks for a list, all pages of it.
func fetch[T any](ctx context.Context, l *link, ask asking[T]) ([]T, error) {
	return terminal.Get(ctx, l.Terminal, func(ctx context.Context, _ ...client.CallOption) ([]T, error) {
		return terminal.All(ask(l.client, ctx))
	})
}

// listing is the command that shows a list.
func listing[T any](l *link, what string, ask asking[T], show func([]T)) func(context.Context, string) error {
	return func(ctx context.Context, _ string) error {
		items, err := fetch(ctx, l, ask)
		if err != nil && len(items) == 0 {
			return err
		}
		plural := "s"
		if len(items) == 1 {
			plural = ""
		}
		l.Console.Printf("found %d %s%s", len(items), what, plural)
		show(items)
		return err // of invalid entries
	}
}

// Told takes the notifications of the server.
func (l *link) Told(e client.Notification) {
	switch e.Method {
	case protocol.MethodLog, protocol.MethodCancelled: // have handlers of their own
	case protocol.MethodTaskStatus: // of the call that waits, whose bar shows it
	default:
		l.lists.changed(e.Method)
		l.Terminal.Notice("[%s]", render.Event(e))
	}
}

// State takes the changes of the connection's state. Only what happens to a
// connection that was there is news.
func (l *link) State(state client.State, err error) {
	switch state {
	case client.StateReady:
		l.ready.Store(true)
		if l.lost.Swap(false) {
			l.Terminal.Notice("[connected again]")
		}
	case client.StateDisconnected:
		if l.ready.Swap(false) && !l.closing.Load() && err != nil {
			l.lost.Store(true)
			text, _ := l.Explain(err)
			l.Terminal.Notice("[disconnected: %s]", brief(text))
		}
	}
}

// lastLines is how much of what a server wrote at its end a notice shows.
const lastLines = 3

// brief leaves out the middle of a long text.
func brief(text string) string {
	list := strings.Split(text, "\n")
	if len(list) <= 1+lastLines {
		return text
	}
	return strings.Join(append([]string{list[0], "       …"}, list[len(list)-lastLines:]...), "\n")
}

// show is the command that shows the link.
func (l *link) show(_ context.Context, rest string) error {
	if rest != "" && rest != "-v" {
		return wrong("unexpected argument %q", rest)
	}
	var rows [][]string
	add := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	for _, fact := range l.Facts {
		add(fact[0], "%s", fact[1])
	}
	if c := l.client; c == nil {
		add("state", "not connected")
	} else {
		add("state", "%s", c.State())
		add("revision", "%s", c.Revision())
		add("server", "%s", render.Server(c.Server().Info))
		add("capabilities", "%s", capabilities(c.Server().Capabilities, rest == "-v"))
		for _, root := range c.Roots() {
			add("root", "%s", root.URI)
		}
		stats := c.Stats()
		add("requests", "%d sent, %d answered, %d failed, %d timed out, %d cancelled", stats.Requests, stats.Completed, stats.Failed, stats.TimedOut, stats.Cancelled)
		if stats.Reconnects > 0 {
			add("reconnects", "%d", stats.Reconnects)
		}
		for _, p := range c.Pending() {
			add("pending", "%s %s (%v)", p.Method, p.Name, time.Since(p.Start).Round(time.Millisecond))
		}
		if rest == "-v" {
			add("unexpected", "%d answers to no request, %d messages that are none, %d notifications dropped", stats.Unmatched, stats.InvalidMessages, stats.Dropped)
			add("instructions", "%s", c.Server().Instructions)
		}
	}
	if l.told != 0 {
		add("log level", "%s", l.told)
	}
	add("timeout", "%v", l.Terminal.Limit())
	l.Console.Table([]string{"what", "value"}, rows)
	return nil
}

// capabilities names what a server declares, or shows all of it.
func capabilities(have protocol.ServerCapabilities, all bool) string {
	text, err := json.Marshal(have)
	if err != nil || string(text) == "{}" {
		return "none"
	}
	if all {
		return string(text)
	}
	return strings.Join(render.Capabilities(have), ", ")
}
