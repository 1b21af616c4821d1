package scale

import (
	"slices"
	"sort"
	"strings"
	"time"
)

// box is one of a local. Its end is in local.ends.
type box struct {
	name   string
	reader string        // "" before the first Take
	ttl    time.Duration // of the last Take
	read   Rev           // the reader has what comes up to it
	given  Rev           // the newest message that was returned to a reader
	again  string        // see Box.Resumed
	last   Rev           // of the newest message, also if it has been dropped
	size   int           // of the messages, as size counts them
	kept   []Message
	end    alarm
}

// overhead is what a message counts for besides its length, so that empty ones
// are bounded as well.
const overhead = 64

// size is what a message counts for.
func size(data []byte) int { return len(data) + overhead }

// makeRoom drops the oldest messages that are in the way of a new one, which is
// not longer than the box. It drops none and reports false if that is refused:
// with AppendOp.Refuse those must stay that the reader does not have.
func (b *box) makeRoom(p AppendOp) bool {
	rest, n := b.size, 0
	for ; p.Recent > 0 && n < len(b.kept) && b.kept[n].Rev <= b.read && rest > p.Recent; n++ {
		rest -= size(b.kept[n].Data)
	}
	for ; n < len(b.kept) && rest+size(p.Data) > p.Keep; n++ {
		if p.Refuse && b.kept[n].Rev > b.read {
			return false
		}
		rest -= size(b.kept[n].Data)
	}
	clear(b.kept[:n])
	b.size, b.kept = rest, b.kept[n:]
	return true
}

// add adds a message, for which there is room.
func (b *box) add(m Message) {
	b.kept = append(b.kept, m)
	b.size += size(m.Data)
	b.last = m.Rev
}

// after returns the messages that follow rev, as Store.Read does.
func (b *box) after(rev Rev) []Message {
	from := sort.Search(len(b.kept), func(i int) bool { return b.kept[i].Rev > rev })
	to, sum := from, 0
	for ; to < len(b.kept); to++ {
		if sum += len(b.kept[to].Data); sum > MaxValue && to > from {
			break
		}
	}
	return slices.Clone(b.kept[from:to])
}

// position returns after, or what Unread stands for.
func (b *box) position(after Rev) Rev {
	if after == Unread {
		return b.given
	}
	return after
}

// maxResumed is how many streams Box.Resumed has.
const maxResumed = 8

// resume notes that reader has taken the box by Take.Resume.
func (b *box) resume(reader string) {
	names := slices.DeleteFunc(strings.Fields(b.again), func(name string) bool { return stream(name) == stream(reader) })
	names = append(names, reader)
	b.again = strings.Join(names[max(0, len(names)-maxResumed):], " ")
}

// stream returns the stream of a reader, "" if its name has none.
func stream(reader string) string {
	if i := strings.LastIndexByte(reader, '+'); i >= 0 {
		return reader[i+1:]
	}
	return ""
}

// subject returns what is notified for a reader, if its name has one.
func subject(reader string) (subject string, ok bool) {
	subject, _, ok = strings.Cut(reader, "/")
	return subject, ok
}
