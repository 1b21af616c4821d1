// Package scale is what replicas of one server share: a small store, on which
// sessions, tasks, messages between replicas and shared limits are built.
//
// A [Store] holds two kinds of things. An entry is a value under a [Key]. It is
// replaced as a whole, on the condition that nobody has replaced it meanwhile;
// it may become due, for whichever replica asks first. A box is a queue of
// messages, with many who append and one who reads. What happens to either can
// be watched; a hint of it comes sooner than the next look, and may be lost.
//
// [NewLocal] returns a Store within the process: what a server uses that has no
// replicas, and what tests use. A backend for an engine implements Store and
// nothing else; package scaletest says whether it does so rightly. Values and
// messages reach a Store sealed, and the names of entries tell nothing, so that
// who runs an engine can read neither. He can put an older value in the place
// of a newer one.
//
// # Time
//
// A Store has one clock, which is not that of its callers: for them, a time to
// live, a lease and the time until something is due begin when the Store does
// what it was asked for. Times are in milliseconds at the coarsest and never
// end early, with one exception: an engine of several machines has several
// clocks. If one of them takes over from another that is behind by d, all times
// are over sooner by d. Such machines have to keep their clocks together (NTP).
//
// # Readers
//
// A box has one reader, the one that took it last. Reads by an earlier one fail, so that
// each message is returned to one reader, unless a later one asks for it again. The
// Store notes two positions. What was given was returned to a reader, which may have
// failed before it used that. What was read the reader has told by a later Read, so
// that it need not be kept. A reader that ends in order takes the box under another
// name, and says up to where it has used what it was given; the next reader goes on
// there. After a reader that was killed, the next one goes on behind what was given, or
// at a position that it knows from elsewhere.
//
// What follows the last plus in the name of a reader is its stream: what is read for one
// client, by one reader after another. A reader that goes on with the stream of the one
// before takes over what that one has not used, and no other reader does.
//
// # Names
//
// Parts, names, indexes, limits, boxes, subjects, owners and readers have 1 to
// 128 bytes of printable ASCII without spaces, "{" and "}"; where "" is allowed,
// it stands for none. Anything else is refused with an error, as is whatever a
// comment here forbids; nothing has changed then.
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
	// ErrUnavailable is wrapped by the errors of a Store that may go away by
	// themselves: the engine does not answer, is not in charge any more, or has
	// no memory left. What was to be changed may have been changed, or may be
	// yet. A Store never repeats by itself what changes something.
	ErrUnavailable = errors.New("scale: the store is unavailable")
	// ErrChanged is the Err of an entry that a Put left as it is, because
	// Write.Prev did not hold.
	ErrChanged = errors.New("scale: the entry has changed")
	// ErrFull tells that a limit or a box has no room.
	ErrFull = errors.New("scale: there is no room")
	// ErrTaken tells that another reader has the box.
	ErrTaken = errors.New("scale: the box has another reader")
)

// Rev tells a state of an entry, or a message of a box, from all others of it:
// their Revs grow and are never given twice, even if the engine has lost the
// newest ones and goes on from an older state. So it is a version to compare
// with, an order, and a fencing token for systems outside.
//
// It is the time at which the Store wrote, in microseconds since 1970, or a
// little more. So Revs of different keys are ordered, too, as far as the clock
// of the Store is: a write that began when another had ended has the greater
// one. 0 stands for what is not there.
type Rev int64

// Unread, as the position in a box, stands for the newest message that was returned to a
// reader of the box, Box.Given.
const Unread Rev = -1

// Any as Write.Prev lets a write be made whatever is there.
const Any Rev = -1

// Key is where an entry is. Entries of one Part lie together on one machine of
// an engine, and have indexes and limits in common: a Part should be small
// enough for that, and there should be many of them.
type Key struct{ Part, Name string }

// Entry is what is, or was found, under a Key.
type Entry struct {
	Key   Key
	Rev   Rev    // 0 if there is none
	Owner string // who has it, as the last Write or Due said
	Due   Rev    // when it becomes due, by the clock of the Store; 0 if it is in no index
	// Value is nil if there is no entry, if it is the one that the caller
	// knows, or the one that he has just written. The bytes are shared: nobody
	// may change them.
	Value []byte
	// Err is what stood in the way of this one: nil, ErrChanged, ErrFull, or
	// one that wraps ErrUnavailable, and then the other fields say nothing.
	Err error
}

// Look asks for an entry. If Known is its Rev, the value is left out, and In and
// TTL, if not 0, let it live on: it becomes due after In, if it is in an index,
// and is kept for TTL, both from now. Its Rev stays. So nobody lengthens the life
// of what he does not know.
type Look struct {
	Key     Key
	Known   Rev // 0 if nothing is known
	In, TTL time.Duration
}

// Write replaces an entry, makes one, or deletes it.
type Write struct {
	Key Key
	// Prev is the Rev that the entry must have; 0 if there must be none; Any.
	Prev Rev
	// Value is the new value. It may be empty; nil deletes the entry. The Store
	// keeps the bytes, so nobody may change them afterwards.
	Value []byte
	Owner string // the new owner; "" for none
	// TTL is how long the entry is kept from now on, if nothing else is said
	// later. 0 leaves its end where it was, and cannot be with Prev 0 and Any.
	TTL time.Duration
	// In makes the entry due in Index, so long from now. 0 leaves it where it
	// was; less takes it out of its index. It is in one index at a time.
	In    time.Duration
	Index string // of the Part; needed if In is more than 0
	// Limit, if not "", bounds how many entries of the Part are made with it:
	// if there are Max, the entry is not made, and its Err is ErrFull. An entry
	// counts until it is deleted or its time is over. That of an entry that is
	// there already is not looked at.
	Limit string
	Max   int // at least 1 with a Limit
	// Tell, if not "", is the subject whose watchers are told of the write: a
	// Message with the Key, its new Rev, which is 0 if it was deleted, and the
	// one before as Prev. Whoever is told can get what was written.
	Tell string
}

// Post is a message for a box.
type Post struct {
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
	// error is ErrTaken. The message counts as given to that reader then, and what comes up to
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
	// Prev is the Rev of the message, or of the state of the entry, right before
	// this one, 0 if nothing is known of any. Who has heard or read a box up to
	// r has missed something if Prev is more than r.
	Prev Rev
	Data []byte // of a box's message, and shared: it must not change
}

// Store is what replicas share. Its methods may be called by many goroutines at
// once. What one has returned, every call that begins afterwards sees, in
// whichever replica. Errors that are not named here are those of the context,
// those that wrap ErrUnavailable, and what is the fault of the caller.
//
// The context bounds how long a call waits; a backend for an engine adds a bound
// of its own. Where the context has ended, what was to be changed may have been
// changed.
type Store interface {
	// Get returns the entries of the looks, in their order, in one round trip, or
	// two where some are not as known. The error is that of the first look that was
	// not answered; Entry.Err tells which others were not, since some machines of an
	// engine may answer. Where none has, there may be no entries.
	Get(ctx context.Context, looks ...Look) ([]Entry, error)

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

	// Due gives entries of an index whose time has come to owner, up to max, the
	// longest due first, but perhaps for what was put off: each gets a new Rev, so
	// that whoever holds the one before can write no more, and is due again after
	// lease. Of several who call, one gets an entry. There may be more than are returned, also because
	// the values of one call are about MaxValue together at most, unless it is
	// one that is longer; none are due if none are returned.
	//
	// What is due was not renewed, perhaps because nobody could renew anything.
	// So who calls it should have been in touch with the Part for one lease, by
	// calls that did not fail, and without a gap.
	Due(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]Entry, error)

	// Append adds a message to its box, makes the box if there is none, and
	// tells those who watch the box, or the subject of its reader. It returns the Rev of the message and who
	// reads the box, "" if nobody. Who appends again after ErrUnavailable may
	// append twice.
	Append(ctx context.Context, p Post) (rev Rev, reader string, err error)

	// Read returns the messages of a box that follow after, the oldest first, of
	// about MaxValue together at most, unless it is one that is longer: there
	// are no more if none are returned. Messages have been dropped if Prev of
	// the first is more than after. A box that is not there is empty.
	//
	// With reader "", nothing changes. Otherwise reader must be the one that took the box
	// last; if not, the error is ErrTaken. Messages that it returns count as given, those
	// up to after as read, and the box is kept for at least seven eighths of the TTL
	// of the Take. now is the reader, "" if there is none.
	Read(ctx context.Context, box string, after Rev, reader string) (messages []Message, now string, err error)

	// Take changes who reads a box, makes the box if there is none, and notifies the
	// subject of the reader that it replaces. It returns what the box was until then.
	// Where From is not the reader, nothing changes, and the error is ErrTaken. Every
	// later Read of an earlier reader returns ErrTaken.
	Take(ctx context.Context, t Take) (Box, error)

	// Watch returns a Watcher that calls fn with each message of the boxes and
	// each write told to the subjects that are added to it. It calls fn at most
	// once for each, and those of one subject mostly, but not always, in their
	// order; Message.Prev shows what is missing. When some may be missing from
	// any subject, it calls gap, as soon as it hears of later ones: the
	// connection to the engine was lost, another machine took over, or fn was
	// too slow.
	//
	// fn and gap are called one at a time, on one goroutine of the Watcher. They
	// should return soon, must not panic, and must not call Close.
	Watch(fn func(subject string, m Message), gap func()) Watcher
}

// Watcher watches subjects and boxes, both by their names. Its methods may be
// called by many goroutines at once.
type Watcher interface {
	// Add adds subjects. When it returns nil, whatever happens from then on is
	// heard, and perhaps what happened shortly before. After an error it has added
	// none of them. A subject is watched until it was removed as often as it was
	// added.
	Add(ctx context.Context, subjects ...string) error
	// Remove removes subjects. What was on its way may still be heard. Subjects
	// that were not added are none of its concern.
	Remove(subjects ...string)
	// Close ends the Watcher. It waits until fn and gap have returned, which are
	// not called again.
	Close()
}
