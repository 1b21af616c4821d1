package events

import (
	"slices"
	"sort"
	"time"

	"github.com/talaria-go/mcp/scale"
)

// Limits of what is in memory of a log.
const (
	maxTail    = 1 << 20     // bytes of the newest events; the page of a reader that is further behind is as large
	eventCost  = 128         // bytes that an event counts in addition to its text
	memoryTime = time.Minute // how long they are kept after a reader
)

// part is what follows a position of a log: all its events, the oldest first. It does not
// change, so readers share the events.
type part struct {
	from, to scale.Rev // behind which the first event is; up to which there are no others
	events   []Event   // one that no key opens has no text
	size     int       // bytes that they count
	more     bool      // the log probably has more
}

// behind returns what of p follows a position.
func (p part) behind(after scale.Rev) part {
	at := sort.Search(len(p.events), func(i int) bool { return p.events[i].At > after })
	p.events = p.events[at:len(p.events):len(p.events)]
	return p
}

// memory is what is in memory of a log that is read here. A reader at its end makes the
// store return only what is new, and many readers of the same page read it once.
type memory struct {
	tail  part      // the newest events
	known bool      // there is a tail
	now   scale.Rev // a time of the store's clock at which the tail had all events
	old   part      // the page that was read last by a reader further behind
	used  time.Time
}

// keep keeps what was read at the end of base, and returns a part that begins at after or
// before, unless events are missing. Only the tail of m grows in place.
func (m *memory) keep(base, read part, after, now scale.Rev) part {
	switch {
	case m.known && m.tail.from <= after && m.tail.to > read.to: // another reader was faster
		return m.tail
	case m.known && m.tail.from <= after && read.from <= m.tail.to:
		all := m.tail
		all.join(read)
		if m.tail = all.newest(); !read.more {
			m.now = max(m.now, now)
		}
		return all
	case read.from > base.to:
		base = read
	default:
		base.events = base.events[:len(base.events):len(base.events)]
		base.join(read)
	}
	switch {
	case read.more:
		m.old = base
		m.known = m.known && read.from <= m.tail.to // or events are missing in between
	case !m.known || base.to >= m.tail.to:
		m.tail, m.known, m.now = base.newest(), true, now
	}
	return base
}

// add appends an event.
func (p *part) add(e Event) {
	p.events, p.to, p.size = append(p.events, e), e.At, p.size+len(e.Text)+eventCost
}

// join appends what read has behind p.
func (p *part) join(read part) {
	for _, e := range read.behind(p.to).events {
		p.add(e)
	}
	p.more = read.more
}

// newest returns the newest events of p, as many as are kept.
func (p part) newest() part {
	n := 0
	for ; p.size > maxTail && n < len(p.events); n++ {
		p.size -= len(p.events[n].Text) + eventCost
		p.from = p.events[n].At
	}
	if n > 0 {
		p.events = slices.Clone(p.events[n:])
	}
	return p
}
