package client

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/protocol"
)

// page is one page of a list.
type page[T any] struct {
	items  []T
	broken []error // of entries that are left out
	next   *string // the cursor of the next page, nil on the last
	fresh  time.Duration
}

// brokenError is the error of a list with invalid entries.
type brokenError struct{ entries []error }

func (e *brokenError) Error() string {
	return "the server's list has entries that do not decode: " + errors.Join(e.entries...).Error()
}

// maxBroken is how many broken entries an error names.
const maxBroken = 20

// Limits of a list, against a server whose list does not end.
const (
	maxPages = 10_000
	maxItems = 1 << 20
)

// list iterates over all pages of a list, whose items are in the member with
// that name. check, if not nil, may remove items from a page. The sequence ends
// after an error, on a cursor that occurs twice, beyond maxPages and maxItems, and
// when the server has taken more than Options.MaxTimeout for all pages together.
// Entries that do not decode hide no other: they are left out, and the sequence
// ends with an error for them.
func list[T any](ctx context.Context, c *Client, method, member string, options []CallOption, check func(*page[T])) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		var broken []error
		walk := walk{most: c.most(), seed: maphash.MakeSeed(), seen: map[uint64]bool{}}
		for {
			began := time.Now()
			page, err := pageOf[T](ctx, c, method, member, walk.cursor, options)
			if err != nil {
				yield(none, err)
				return
			}
			walk.took += time.Since(began)
			walk.items += len(page.items)
			broken = append(broken, page.broken[:min(len(page.broken), maxBroken-len(broken))]...)
			if check != nil {
				check(page)
			}
			for _, item := range page.items {
				if !yield(item, nil) {
					return
				}
			}
			more, err := walk.follow(page.next)
			if err == nil && !more && len(broken) > 0 {
				err = invalid(&brokenError{broken})
			}
			if err != nil {
				c.opts.Cache.drop(c.server, method, "") // the server may do better the next time
				yield(none, wrap(method, method, err))
			}
			if err != nil || !more {
				return
			}
		}
	}
}

// walk is the way through the pages of a list.
type walk struct {
	cursor *string       // of the next page; nil for the first
	most   time.Duration // for all pages; no limit if it is not positive
	took   time.Duration
	items  int
	seed   maphash.Seed
	seen   map[uint64]bool // hashes of the cursors, which may be long
}

// follow takes the cursor of a page, and reports whether there are more pages. A
// list that does not end is an error.
func (w *walk) follow(next *string) (more bool, err error) {
	if next == nil {
		return false, nil
	}
	hash, pages := maphash.String(w.seed, *next), len(w.seen)+1
	switch {
	case w.seen[hash]:
		return false, invalid(fmt.Errorf("the list does not end: nextCursor of page %d repeats the cursor %.100q of an earlier page (the last page has no nextCursor)", pages, *next))
	case pages >= maxPages:
		return false, invalid(fmt.Errorf("the list does not end: it has more than %d pages", maxPages))
	case w.items > maxItems:
		return false, invalid(fmt.Errorf("the list does not end: it has more than %d entries", maxItems))
	case w.most > 0 && w.took > w.most:
		return false, &Error{kind: ErrTimeout, Err: fmt.Errorf("the list has not ended within the MaxTimeout of %v, after %d pages", w.most, pages)}
	}
	w.cursor, w.seen[hash] = next, true
	return true, nil
}

// pageOf requests one page of a list. If the server refuses the cursor, the
// cached pages of that list are dropped (server/utilities/caching of
// 2026-07-28, pagination).
func pageOf[T any](ctx context.Context, c *Client, method, member string, cursor *string, options []CallOption) (*page[T], error) {
	var members []byte
	if cursor != nil {
		members = named("cursor", *cursor)
	}
	r, err := c.request(method, method, "", members, options)
	if err != nil {
		return nil, err
	}
	r.safe, r.cache = true, true
	raw, err := r.do(ctx)
	if err != nil {
		if _, refused := errors.AsType[*protocol.Error](err); refused && cursor != nil {
			c.opts.Cache.drop(c.server, method, "") // the pages before are of another list
		}
		return nil, err
	}
	page, err := decodePage[T](raw, member)
	if err != nil {
		c.opts.Cache.drop(c.server, method, "") // the server may do better the next time
		return nil, wrap(method, method, invalid(err))
	}
	page.fresh = freshness(raw).TTL
	if page.next != nil && *page.next == "" && !r.conn.revision().Modern() {
		page.next = nil // the empty text is a cursor from 2026-07-28 on only (server/utilities/pagination)
	}
	return page, nil
}

// each reads the items one by one, after one of them has failed.
func (p *page[T]) each(list []byte) error {
	var texts []json.RawMessage
	if err := jsonx.Unmarshal(list, &texts); err != nil {
		return err
	}
	p.items = make([]T, 0, len(texts))
	for i, text := range texts {
		var item T
		if err := jsonx.Unmarshal(text, &item); err != nil {
			p.broken = append(p.broken, fmt.Errorf("number %d%s: %w", i+1, nameOf(text), err))
			continue
		}
		p.items = append(p.items, item)
	}
	return nil
}

// nameOf returns the name of an entry, for an error.
func nameOf(text []byte) string {
	var named struct{ Name, URI string }
	_ = jsonx.Unmarshal(text, &named) // members of other types do not matter
	if name := cmp.Or(named.Name, named.URI); name != "" {
		return fmt.Sprintf(" (%.100q)", name)
	}
	return ""
}

// decodePage reads the result of a list method, whose items are under the name
// of member.
func decodePage[T any](raw []byte, member string) (*page[T], error) {
	p := &page[T]{}
	found := false
	err := members(raw, func(name []byte, s *jsonx.Scanner) error {
		text := value(s)
		switch string(name) {
		case member:
			found = true
			if jsonx.Unmarshal(text, &p.items) == nil {
				return nil
			}
			return p.each(text)
		case "nextCursor":
			if jsonx.Unmarshal(text, &p.next) != nil {
				return fmt.Errorf("nextCursor must be a string, got %.100s", text)
			}
		}
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("member %s is missing", member)
	}
	if err != nil {
		return nil, fmt.Errorf("the server's list does not decode: %w", err)
	}
	return p, nil
}
