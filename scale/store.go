// Package scale is what replicas of one server share: a small store, for sessions, tasks,
// messages between replicas and shared limits.
//
// A [Store] holds two kinds of things. An entry is a value under a [Key]. A write replaces
// it as a whole, if its version is the expected one. An entry can become due for the first
// replica that claims it. A box is a queue of messages, with any number of writers and one
// reader. Replicas can watch both; a hint comes sooner than the next poll, and may be lost.
//
// [NewLocal] returns a Store within the process, for servers without replicas and for
// tests. A backend for an engine implements Store and nothing else; package scaletest tests
// it. A Store receives sealed values and messages, and names of entries that reveal
// nothing, so the operator of an engine can read neither. The operator can restore an older
// value.
//
// # Time
//
// A Store has one clock, independent of its callers: a time to live, a lease and the time
// until something is due begin when the Store executes the call. Times are in milliseconds
// at the coarsest and never end early, with one exception: an engine of several machines
// has several clocks. If one of them takes over from another that is behind by d, all times
// end sooner by d. Such machines have to keep their clocks together (NTP).
//
// # Readers
//
// A box has one reader, the last that took it. Reads by an earlier one fail, so that each
// message is returned to one reader, unless a later one asks for it again. The Store notes
// two positions. Given messages were returned to a reader, which may have failed before it
// used them. Read messages were confirmed by a later Read, and need not be kept. A reader
// that ends takes the box under another name, with the position up to which it used the
// messages; the next reader continues there. After a reader that was killed, the next one
// continues after the given messages, or at a position that its client names.
//
// The text after the last plus in the name of a reader is its stream: several readers in
// turn read for one client. A reader that resumes the stream of the one before takes over
// its unused messages, and no other reader does.
//
// # Names
//
// Parts, names, indexes, limits, boxes, subjects, owners and readers have 1 to 128 bytes of
// printable ASCII without spaces, "{" and "}"; where "" is allowed, it means none. The
// Store rejects anything else with an error, and whatever a comment here forbids; then
// nothing has changed.
package scale

import (
	"context"
	"errors"
	"time"
)

// MaxValue is the length, in bytes, of the longest value of an entry and of the
// longest message.
const MaxValue = 1 << 20

var (
	// ErrUnavailable is wrapped by temporary errors of a Store: the engine does not answer,
	// has been replaced, or has no memory left. A change may have happened, or may
	// still happen. A Store never repeats a change by itself.
	ErrUnavailable = errors.New("scale: the store is unavailable")
	// ErrChanged is the Err of an entry that a Put left as it is, because
	// Write.Prev did not hold.
	ErrChanged = errors.New("scale: the entry has changed")
	// ErrFull means that a limit or a box has no room.
	ErrFull = errors.New("scale: there is no room")
	// ErrNotReader means that another reader has the box.
	ErrNotReader = errors.New("scale: the box has another reader")
)

// Rev is the version of an entry, or the position of a message in a box. Revs grow and
// never repeat, even if the engine has lost the newest ones and continues from an older
// state. So a Rev is a version to compare with, an order, and a fencing token for other
// systems.
//
// It is the time of the write in microseconds since 1970, or a little more. So Revs of
// different keys are ordered, too, as far as the clock of the Store is: a write that began
// after the end of another has the greater one. 0 means that there is none.
type Rev int64

// Unread, as the position in a box, stands for the newest message that was returned to a
// reader of the box, Box.Given.
const Unread Rev = -1

// Any as Write.Prev lets a write be made whatever is there.
const Any Rev = -1

// Key is where an entry is. Entries of one Part lie together on one machine of
// an engine, and have indexes and limits in common: a Part should be small
// enough for that, and there should be many of them.
type Key struct{ Partition, Name string }

// Entry is what is, or was found, under a Key.
type Entry struct {
	Key   Key
	Rev   Rev    // 0 if there is none
	Owner string // who has it, as the last Write or ClaimDue said
	Due   Rev    // when it becomes due, by the clock of the Store; 0 if it is in no index
	// Value is nil if there is no entry, or if the caller has the value: the known one, or
	// the one just written. The bytes are shared and must not be changed.
	Value []byte
	// Err is what stood in the way of this one: nil, ErrChanged, ErrFull, or
	// one that wraps ErrUnavailable, and then the other fields say nothing.
	Err error
}

// GetOp reads an entry. If Known is its Rev, the result has no value, and In and TTL extend
// its life unless they are 0: it becomes due after In, if it is in an index, and is kept
// for TTL, both from now. Its Rev stays. With another Known they have no effect.
type GetOp struct {
	Key     Key
	Known   Rev // 0 if nothing is known
	In, TTL time.Duration
}

// Write replaces an entry, makes one, or deletes it.
type Write struct {
	Key Key
	// Prev is the required Rev of the entry; 0 for a new entry; or Any.
	Prev Rev
	// Value is the new value. It may be empty; nil deletes the entry. The Store keeps the
	// bytes, so they must not change afterwards.
	Value []byte
	Owner string // the new owner; "" for none
	// TTL is how long the entry is kept from now on, if nothing else is said
	// later. 0 leaves its end where it was, and cannot be with Prev 0 and Any.
	TTL time.Duration
	// DueIn is the time from now until the entry is due in Index. 0 leaves it as it was; a
	// negative one takes it out of its index. It is in one index at a time.
	DueIn time.Duration
	Index string // of the Part; needed if In is more than 0
	// Limit, if not "", bounds how many entries of the Part are made with it:
	// if there are Max, the entry is not made, and its Err is ErrFull. An entry
	// counts until it is deleted or its time is over. That of an entry that is
	// there already is not looked at.
	Limit string
	Max   int // at least 1 with a Limit
	// Notify, if not "", is the subject whose watchers are notified of the write: with a
	// Message that has the Key, the new Rev, which is 0 after a deletion, and the former
	// Rev as Prev. They can then get the entry.
	Notify string
}

// AppendOp is a message for a box.
type AppendOp struct {
	Box  string
	Data []byte // at most MaxValue; as with Write.Value, the bytes must not change
	// Keep bounds the box: it is the sum of its messages' lengths in bytes, of
	// which each counts 64 more. 0 tells the message to those who watch, and
	// keeps nothing.
	Keep int
	// Recent, if it is not 0, bounds what is kept of what the reader has read, counted as
	// for Keep: the oldest such messages are dropped.
	Recent int
	// TTL is how long the box is kept from now on at least, with its messages
	// and its reader. It must be more than 0 unless Keep is 0.
	TTL time.Duration
	// From, if not "", must be the reader of the box, and After its newest message, or the
	// error is ErrNotReader. The message counts as given to that reader then, and what comes up to
	// After as read; the reader is not notified. So a message that is made where it is read need not be
	// read from the box.
	From  string
	After Rev
	// Refuse says what happens without room: with it the message is refused
	// with ErrFull, unless there are enough messages to drop that the reader
	// has; without it the oldest are dropped. A message that is longer than
	// Keep is refused always.
	Refuse bool
}

// Take changes who reads a box.
type Take struct {
	Box string
	// From, if it is not "", is who must be the reader until now.
	From string
	// Reader is the reader from now on. A name with a slash begins with a subject, which
	// ends before the first slash: Append and Take notify that subject about the box,
	// with a Message that has the name of the box in its Key and no data, and those who
	// watch the box itself are not notified.
	Reader string
	// Resume, if not "", is who reads the box in place of Reader if the reader until now has
	// the same stream. If not, After stands for Unread.
	Resume string
	// After is what the new reader has read; Unread means Box.Given, and what is beyond the
	// newest message stands for that. With From, and if Resume reads the box, After
	// becomes Box.Given as well: a reader that leaves returns what it did not pass on.
	After Rev
	// TTL is how long the box is kept from now on at least. 0 deletes the box; Reader and
	// After do not matter then.
	TTL time.Duration
}

// Box is what a Take found.
type Box struct {
	Reader string // until now; "" if there was none
	// Resumed has the readers until now that took the box as Take.Resume, with spaces between
	// them: the newest one of each stream, of the 8 newest streams. An earlier reader of such a
	// stream has nothing left to pass on.
	Resumed string
	Given   Rev // the newest message that was returned to a reader; 0 if none was
	Last    Rev // the newest message; 0 if there was none
}

// Message is one of a box, or tells of a write.
type Message struct {
	// Key is that of the entry that was written, or its Name is the box of a message for
	// a reader; a message of a box has none.
	Key Key
	Rev Rev
	// Prev is the Rev of the message, or of the state of the entry, before this one; 0 if
	// it is not known. A reader of a box up to r has missed something if Prev is more than
	// r.
	Prev Rev
	Data []byte // of a box's message, and shared: it must not change
}

// Store is what replicas share. Its methods may be called by many goroutines at once. A
// call sees everything that earlier calls have returned, at any replica. Errors that are
// not named here are those of the context, those that wrap ErrUnavailable, and errors of
// the caller.
//
// The context bounds how long a call waits; a backend for an engine adds a bound of its
// own. After the end of the context, a change may have happened.
type Store interface {
	// Get returns the entries of the ops, in their order, in one round trip, or two if some
	// differ from Known. The error is that of the first op without an answer. Entry.Err has
	// the others, since some machines of an engine may answer. If none answers, the result
	// may be empty.
	Get(ctx context.Context, looks ...GetOp) ([]Entry, error)

	// Put makes writes, each of which happens as a whole or not at all, in no
	// particular order, in one round trip. It returns for each what is there
	// now, with Value left out where it was written: Entry.Err is nil; or
	// ErrChanged, and the Entry says what is there instead; or ErrFull. The
	// error of Put is as that of Get.
	//
	// After ErrUnavailable it may be called again with the same writes if Prev
	// is not Any: one that had been made after all is lost to itself, which
	// shows by its Value.
	Put(ctx context.Context, writes ...Write) ([]Entry, error)

	// ClaimDue gives at most max due entries of an index to owner, the longest due first.
	// Entries that were put off may come later. Each gets a new Rev, so that the owner
	// before can no longer write it, and is due again after lease. One of several callers
	// gets an entry. There may be more than are returned, also because the values of one
	// call are about MaxValue together, or one longer value. None are due if none are
	// returned.
	//
	// A due entry was not renewed, perhaps because no replica could renew anything. So the
	// Store should have answered the caller for one lease in this Partition, without an
	// error and without a gap.
	ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]Entry, error)

	// Append adds a message to its box, makes the box if there is none, and notifies the
	// watchers of the box, or the subject of its reader. It returns the Rev of the message
	// and the reader, "" if there is none. A repeated Append after ErrUnavailable may add
	// the message twice.
	Append(ctx context.Context, p AppendOp) (rev Rev, reader string, err error)

	// Read returns the messages of a box that follow after, the oldest first, of
	// about MaxValue together at most, unless it is one that is longer: there
	// are no more if none are returned. Messages have been dropped if Prev of
	// the first is more than after. A box that is not there is empty.
	//
	// With reader "", nothing changes. Otherwise reader must be the one that took the box
	// last; if not, the error is ErrNotReader. Messages that it returns count as given, those
	// up to after as read, and the box is kept for at least seven eighths of the TTL
	// of the Take. now is the reader, "" if there is none.
	Read(ctx context.Context, box string, after Rev, reader string) (messages []Message, now string, err error)

	// Take changes who reads a box, makes the box if there is none, and notifies the
	// subject of the reader that it replaces. It returns what the box was until then.
	// Where From is not the reader, nothing changes, and the error is ErrNotReader. Every
	// later Read of an earlier reader returns ErrNotReader.
	Take(ctx context.Context, t Take) (Box, error)

	// Watch returns a Watcher that calls fn with each message of the boxes, and each write
	// for the subjects, that are added to it. It calls fn at most once for each. Those of
	// one subject come mostly in their order; Message.Prev shows gaps. It calls gap if some
	// may be missing from any subject, before later ones: the connection to the engine was
	// lost, another machine took over, or fn was too slow.
	//
	// fn and gap are called one at a time, on one goroutine of the Watcher. They should
	// return soon, must not panic, and must not call Close.
	Watch(fn func(subject string, m Message), gap func()) Watcher
}

// Bounded is a Store whose calls end in time by themselves, and end no goroutine. A
// server calls it without a timer and a goroutine of its own, which cost more than the
// rest of a call. A call that panics is an error as with any Store.
type Bounded interface {
	Store
	// HasTimeout promises that. It is never called.
	HasTimeout()
}

// Watcher watches subjects and boxes, both by their names. Its methods may be
// called by many goroutines at once.
type Watcher interface {
	// Add adds subjects. After it returns nil, fn is called for everything that happens
	// from then on, and perhaps shortly before. After an error it has added none of them. A
	// subject is watched until it was removed as often as it was added.
	Add(ctx context.Context, subjects ...string) error
	// Remove removes subjects. fn may still be called for earlier messages. Remove ignores
	// subjects that were not added.
	Remove(subjects ...string)
	// Close ends the Watcher. It waits until fn and gap have returned, which are
	// not called again.
	Close()
}
