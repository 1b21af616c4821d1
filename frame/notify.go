package frame

import (
	"errors"
	"fmt"
	"math"

	"github.com/talaria-go/mcp/protocol"
)

// ErrAnswered is the error of messages that come after the answer.
var ErrAnswered = protocol.ErrAnswered

// Progress tells the client how far the request has come: done of total, both
// in any unit; a total of 0 means that it is unknown. It does nothing if the
// client did not ask to be told.
//
// done must grow from call to call, as the specification demands; one that
// does not is an error and is not sent. Of a request that has become a task,
// the message alone is told, as the task's state. The error of a client that is gone is
// returned too, and usually ignored: the Frame ends then.
// (basic/patterns/progress of 2026-07-28.)
func (f *Frame) Progress(done, total float64, message ...string) error {
	root := f.root
	if note := f.taskNote(); note != nil {
		if len(message) == 0 {
			return nil
		}
		return note(message[0])
	}
	token := root.request.Params.Meta.ProgressToken
	if token == nil || root.peer == nil {
		return nil
	}
	if math.IsNaN(done+total) || math.IsInf(done+total, 0) {
		return fmt.Errorf("frame: progress must be a number, got %v of %v", done, total)
	}
	p := protocol.Progress{Token: token, Progress: done, Total: total}
	if len(message) > 0 {
		p.Message = message[0]
	}
	// The lock is held while sending, so that values arrive in their order.
	root.mu.Lock()
	defer root.mu.Unlock()
	if root.told && done <= root.progress {
		return fmt.Errorf("frame: progress must grow, got %v after %v", done, root.progress)
	}
	root.told, root.progress = true, done
	return root.tell(p.Append(nil, root.revision))
}

// Log sends a log message to the client, if the client wants its level. data
// is anything that encodes to JSON; logger names the part of the server, if
// given. Nothing secret belongs in it.
//
// Revision 2026-07-28 deprecates the protocol's logging in favour of standard
// error and OpenTelemetry; it works in every revision.
// (server/utilities/logging.)
func (f *Frame) Log(level protocol.Level, data any, logger ...string) error {
	if !f.LogEnabled(level) || f.Detached() {
		return nil
	}
	m := protocol.LogMessage{Level: level, Data: data}
	if len(logger) > 0 {
		m.Logger = logger[0]
	}
	text, err := m.Append(nil)
	if err != nil {
		return fmt.Errorf("frame: log data does not encode: %w", err)
	}
	return f.root.tell(text)
}

// tell sends a message that a client may go without.
func (f *Frame) tell(message []byte) error {
	err := f.peer.Send(message)
	if errors.Is(err, protocol.ErrNoStream) {
		return nil
	}
	return err
}

// LogEnabled tells whether Log would send a message of that level.
func (f *Frame) LogEnabled(level protocol.Level) bool {
	root := f.root
	wanted := root.level
	if root.session != nil {
		wanted = root.session.LogLevel()
	}
	return root.peer != nil && wanted != 0 && level >= wanted && level <= protocol.LevelEmergency
}
