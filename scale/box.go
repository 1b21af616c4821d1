package scale

import (
	"slices"
	"sort"
)

// box is one of a local. Its end is in local.ends.
type box struct {
	name   string
	reader string // "" if nobody has taken it
	read   Rev    // the reader has what comes up to it
	last   Rev    // of the newest message, also if it has been dropped
	size   int    // of the messages, as size counts them
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
// with Post.Refuse those must stay that the reader does not have.
func (b *box) makeRoom(p Post) bool {
	rest, n := b.size, 0
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
