package mcp

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/dispatch"
	"github.com/talaria-go/mcp/protocol"
)

// customs are the rows of the method table that the user brought.
type customs struct {
	frozen        bool // the table is made
	methods       []dispatch.Method
	notifications []notificationHandler
}

type notificationHandler struct {
	method string
	fn     func(f *frame.Frame) error
}

// OnNotification calls fn for each notification of that method that a client
// sends, after the server has done its own part: those of the specification,
// such as notifications/roots/list_changed, and any others. Each method has
// one fn. Nobody is answered: an error of fn goes to the log, at debug level.
// Frame.EndSession ends the session of the client.
//
// What a connection brings after a notification waits for fn, so that it keeps
// its order, except answers to questions, cancellations and pings. A name that belongs to a request, a second fn for a method, and a call after
// the server began to serve are errors.
func (s *Server) OnNotification(method string, fn func(f *Frame) error) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	var faults []string
	switch {
	case fn == nil:
		faults = append(faults, "the func is nil")
	case !strings.HasPrefix(method, notificationPrefix):
		faults = append(faults, methodFaults(method)...)
	}
	if s.customs.frozen {
		faults = append(faults, errServing)
	}
	if s.customs.has(method) {
		faults = append(faults, "it is registered already; choose another name")
	}
	if faults != nil {
		return fmt.Errorf("mcp: notification %q: %s", method, strings.Join(faults, "; "))
	}
	s.customs.notifications = append(s.customs.notifications, notificationHandler{method, fn})
	return nil
}

const (
	notificationPrefix = "notifications/"
	errServing         = "the server serves already; register it before"
)

func (c *customs) has(name string) bool {
	return slices.ContainsFunc(c.methods, func(m dispatch.Method) bool { return m.Name == name }) ||
		slices.ContainsFunc(c.notifications, func(n notificationHandler) bool { return n.method == name })
}

// check returns the faults of methods that are to be added.
func (c *customs) check(methods []dispatch.Method) error {
	var faults []error
	for i, m := range methods {
		list := methodFaults(m.Name)
		if c.frozen {
			list = append(list, errServing)
		}
		twice := slices.ContainsFunc(methods[:i], func(other dispatch.Method) bool { return other.Name == m.Name })
		if twice || c.has(m.Name) {
			list = append(list, "it is registered already; choose another name")
		}
		if list != nil {
			faults = append(faults, fmt.Errorf("method %q: %s", m.Name, strings.Join(list, "; ")))
		}
	}
	return errors.Join(faults...)
}

// specified are the names, and the beginnings of names, that belong to the
// specification or to JSON-RPC.
var specified = []string{
	"initialize", "ping", "completion/", "elicitation/", "logging/", notificationPrefix, "prompts/", "resources/",
	"roots/", "sampling/", "server/", "subscriptions/", "tasks/", "tools/", "rpc.",
}

// methodFaults says what is wrong with the name of a custom method.
func methodFaults(name string) (faults []string) {
	plain := func(c rune) bool { return '!' <= c && c <= '~' }
	if name == "" || len(name) > 128 || strings.ContainsFunc(name, func(c rune) bool { return !plain(c) }) {
		faults = append(faults, "a method has 1 to 128 visible ASCII characters")
	}
	for _, owned := range specified {
		if name == owned || strings.HasPrefix(name, owned) && !isLetter(owned[len(owned)-1]) {
			faults = append(faults, fmt.Sprintf("the specification owns names that begin with %q; put a name of your own before it, as in %q", owned, "acme/"+name))
		}
	}
	return faults
}

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' }

// customize adds what the user brought to the table, which is then final.
func (s *Server) customize(table []dispatch.Method) []dispatch.Method {
	s.adding.Lock()
	defer s.adding.Unlock()
	s.customs.frozen = true
	for _, m := range s.customs.methods {
		table = append(table, dispatch.Method{Name: m.Name, Era: dispatch.Both, Params: m.Params, Serve: forRequests(m.Serve)})
	}
	for _, n := range s.customs.notifications {
		at := slices.IndexFunc(table, func(m dispatch.Method) bool { return m.Name == n.method })
		if at < 0 {
			at = len(table)
			table = append(table, dispatch.Method{Name: n.method, Era: dispatch.Both, Serve: forNotifications})
		}
		table[at].Serve = notified(table[at].Serve, n.fn)
	}
	return table
}

// forRequests keeps notifications from a method that wants to answer.
func forRequests(h dispatch.Handler) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		if f.Request().ID.IsZero() {
			return nil, protocol.Errorf(protocol.CodeInvalidRequest, "%s is a request; give it an id", f.Request().Method)
		}
		return h(f)
	}
}

// forNotifications keeps requests from a method that answers nobody.
func forNotifications(f *frame.Frame) (protocol.Result, error) {
	if !f.Request().ID.IsZero() {
		return nil, protocol.MethodNotFound(f.Request().Method)
	}
	return nil, nil
}

// notified serves a notification with own, and then with fn.
func notified(own dispatch.Handler, fn func(f *frame.Frame) error) dispatch.Handler {
	return func(f *frame.Frame) (protocol.Result, error) {
		result, err := own(f)
		if err != nil || !f.Request().ID.IsZero() {
			return result, err
		}
		return nil, fn(f)
	}
}
