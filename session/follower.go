package session

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/talaria-go/mcp/internal/bus"
	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// follower is a connection that resumes the stream of an answer at another replica. It asks
// the other replica to write to the box of the stream, and reads what its client takes. It
// sends an event only if that comes after the last one, so that none is repeated.
//
// A follower is new until the first reply, or for two seconds; an error then is the status
// of the response. After that it is open, and an error is an event that answers the
// request. It ends with the answer, if another connection resumes the stream, if its client
// leaves, or if the other replica is gone.
type follower struct {
	resumer *resumer
	session *Session
	node    string  // has the stream
	from    eventID // the last event that the client has
	last    string  // where it came back
	to      core.StreamConn
	wake    func()
	word    chan struct{} // has room for one: something has come

	box, reader string

	// Only the goroutine of serve uses these.
	opened bool
	fresh  int           // bytes that were read since the last ask
	full   time.Time     // since when there is no memory for what is read; zero if there is
	wait   time.Duration // until the next look
	timed  bool          // the timer has made it look, and not a hint
	timer  *time.Timer

	pos   atomic.Int64           // of the last message that was read, a scale.Rev; 0 before the first
	look  atomic.Bool            // the box may have more
	due   atomic.Bool            // the timer has fired
	known atomic.Bool            // the other replica has replied
	end   atomic.Pointer[string] // why nothing follows what the box has; nil if something may
}

// serve carries the stream until it ends, or the client is gone. An error comes
// before the connection is open.
func (f *follower) serve() error {
	m := f.resumer.m
	switch lives, err := m.lives(m.ctx, f.node); {
	case err != nil:
		return unavailable(err)
	case !lives:
		return f.finish(reasonClosed)
	}
	if before, ok := m.inboxes.Swap(f.box, f); ok { // hints come from now on
		before.(*follower).stop(reasonDone)
	}
	defer m.inboxes.CompareAndDelete(f.box, f)
	switch err := f.ask(false); {
	case errors.Is(err, bus.ErrNoReplica):
		return f.finish(reasonClosed)
	case err != nil && !errors.Is(err, bus.ErrMaybeDelivered):
		return unavailable(err)
	}
	defer f.leave()
	f.timer = time.AfterFunc(firstReplyTimeout, func() { f.due.Store(true); f.signal() })
	defer f.timer.Stop()
	defer context.AfterFunc(f.session.Context(), f.signal)()
	begun := time.Now()
	for {
		end := f.end.Load()
		if end != nil {
			f.look.Store(true) // what came before the end
		}
		if over, err := f.flush(); over {
			return err
		}
		switch known := f.known.Load(); {
		case end != nil:
			return f.finish(*end)
		case f.session.Ended(), !known && time.Since(begun) >= firstReplyLimit:
			return f.finish(reasonDone)
		case f.due.Swap(false):
			f.retry(time.Since(begun))
		case known || f.opened:
			f.open()
			if !f.to.Wait() {
				return nil
			}
		default:
			<-f.word
		}
	}
}

// stop ends the stream for a reason, unless there was one before.
func (f *follower) stop(end string) {
	f.end.CompareAndSwap(nil, &end)
	f.signal()
}

// ask tells the other replica from where to write, or that the follower has ended.
func (f *follower) ask(left bool) error {
	return f.resumer.send(f.resumer.m.ctx, f.node, followRequest{Session: f.session.id, After: f.from.String(), Reader: f.reader, Left: left})
}

// leave notifies the other replica that the follower has ended, unless that is gone.
func (f *follower) leave() {
	if end := f.end.Load(); end == nil || *end != reasonClosed {
		_ = f.ask(true) // or the box expires
	}
}

// retry does what is due: it looks, and asks again while no reply has come. The first looks
// come soon, as hints may be lost.
func (f *follower) retry(since time.Duration) {
	f.look.Store(true)
	f.timed = true
	switch {
	case f.known.Load():
		f.wait = min(max(2*f.wait, replica.PollInterval), replica.StreamCheck)
	default:
		_ = f.ask(false) // it asks again
		if f.wait = firstReplyTimeout; since >= 2*firstReplyTimeout {
			f.open()
			f.wait = replica.PollInterval
		}
	}
	f.timer.Reset(f.wait)
}

// hinted is what reads a box of the store.
type hinted interface {
	// hint says that the box may have more, up to rev, 0 if that is not known. It does not
	// wait.
	hint(rev scale.Rev)
}

// hint implements hinted.
func (f *follower) hint(rev scale.Rev) {
	if rev == 0 || int64(rev) > f.pos.Load() {
		f.look.Store(true)
		f.signal()
	}
}

// signal wakes the goroutine of serve.
func (f *follower) signal() {
	select {
	case f.word <- struct{}{}:
	default:
	}
	f.wake()
}

// flush reads what the box has, and sends it. over reports that nothing follows.
func (f *follower) flush() (over bool, err error) {
	m := f.resumer.m
	for f.look.Swap(false) {
		known := f.known.Load() // before the read
		list, _, err := m.readBox(m.ctx, f.box, scale.Rev(f.pos.Load()), f.reader)
		size := bytesOf(list)
		switch {
		case errors.Is(err, scale.ErrNotReader) && known: // another connection has the stream
			return true, f.finish(reasonDone)
		case errors.Is(err, scale.ErrNotReader): // the other replica has not taken the box yet
			return false, nil
		case err != nil:
			f.timer.Reset(retryInterval)
			return false, nil
		case !f.session.history.budget.reserve(size):
			if f.full.IsZero() {
				f.full = time.Now()
			}
			if time.Since(f.full) >= noMemoryLimit { // the client comes back
				return true, f.finish(reasonDone)
			}
			f.timer.Reset(retryInterval)
			return false, nil
		case len(list) == 0:
			continue
		}
		if f.full = (time.Time{}); f.timed { // another hint may be lost
			f.wait = 0
		}
		over, err = f.sendAll(list)
		f.session.history.budget.release(size)
		if over {
			return true, err
		}
		if size > nearlyAll {
			f.look.Store(true)
		}
		if f.fresh += size; f.fresh > answerBytes/2 {
			f.fresh = 0
			_ = f.ask(false) // which makes room; what is lost is made good by the next one
		}
	}
	f.timed = false
	return false, nil
}

// sendAll sends the events of messages.
func (f *follower) sendAll(list []scale.Message) (over bool, err error) {
	// Before the first read, only messages of earlier readers can be gone.
	if pos := scale.Rev(f.pos.Load()); pos > 0 && list[0].Prev > pos { // the client has been too slow, and comes back for the rest
		return true, f.finish(reasonDone)
	}
	for _, m := range list {
		f.pos.Store(int64(m.Rev))
		batch, err := f.resumer.answers.open(f.box, m.Data)
		if err != nil { // another replica may have the key
			f.resumer.m.reportError(err)
			return true, f.finish(reasonDone)
		}
		if batch.For != f.reader { // of another reader, or saved for a later one
			continue
		}
		f.known.Store(true)
		f.opened = f.opened || len(batch.Events) > 0
		for _, e := range batch.Events {
			switch {
			case e.Retry != 0:
				_ = f.to.Pause(e.Retry) // a client that is gone comes back
				return true, nil
			case !f.from.precedes(e.ID):
			case f.to.Event(e.ID, e.message) != nil:
				return true, nil
			default:
				f.from, _ = parseEventID(e.ID)
			}
		}
		if batch.End != "" {
			return true, f.finish(batch.End)
		}
	}
	if f.known.Load() {
		f.timer.Reset(max(f.wait, replica.PollInterval))
	}
	return false, nil
}

// finish ends the stream for a reason, with what the store has saved of a stream that its
// replica no longer has. If the stream has more, its client comes back.
func (f *follower) finish(end string) error {
	if end == reasonUnknown || end == reasonClosed {
		before := f.from
		found, err := f.resumer.answers.send(f.session, &f.from, f.to)
		f.opened = f.opened || f.from != before
		switch {
		case err != nil && !f.opened:
			return unavailable(err)
		case err != nil, found:
			end = reasonDone
		}
	}
	switch {
	case end == reasonUnknown && !f.opened:
		return unknownStream(f.last)
	case end == reasonTooLong && !f.opened:
		return streamTooLong(f.last)
	case end == reasonTooLong:
		return f.fail(errTooLong)
	case end == reasonUnknown, end == reasonClosed:
		return f.fail(errReplicaGone)
	}
	f.open()
	return nil
}

// open opens the connection if it is not open. It does nothing for a disconnected client.
func (f *follower) open() {
	if !f.opened {
		f.opened = true
		_ = f.to.Open() // it comes back
	}
}

// fail answers the request with an error. If its id is not known, the client receives the
// error as a status, if it still can.
func (f *follower) fail(fault *protocol.Error) error {
	if f.from.request.IsZero() && !f.opened {
		return fault
	}
	f.opened = true
	// The client may be gone.
	_ = f.to.Event("", wire.AppendErrorResponse(nil, f.from.request, fault, f.session.revision))
	return nil
}
