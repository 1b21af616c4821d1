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
	next   string  // the cursor of the next page, "" on the last
}

// brokenError is the error of a list with entries that are none.
type brokenError struct{ entries []error }

func (e *brokenError) Error() string {
	return "the server's list has entries that do not decode: " + errors.Join(e.entries...).Error()
}

// maxBroken is how many broken entries an error names.
const maxBroken = 20

// maxPages is how many pages a list may have, as the guard against a server
// that never ends.
const maxPages = 10000

// list iterates over all pages of a list, whose items are in the member with
// that name. check, if not nil, removes items from a page. The sequence ends
// after an error, on a cursor that occurs twice, and when the server has taken
// more than Options.MaxTimeout for all pages together. Entries that do not decode
// hide no other: they are left out, and the sequence ends with an error for them.
func list[T any](ctx context.Context, c *Client, method, member string, options []CallOption, check func([]T) []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		op, cursor, most := "list "+member, "", c.most()
		hash, seen := maphash.MakeSeed(), map[uint64]bool{} // hashes of cursors, which may be long
		var took time.Duration
		var broken []error
		for {
			begin := time.Now()
			page, err := pageOf[T](ctx, c, op, method, member, cursor, options)
			took += time.Since(begin)
			switch {
			case err != nil:
				yield(none, err)
				return
			case page.next != "" && most > 0 && took > most:
				yield(none, &Error{Op: op, kind: ErrTimeout, Err: fmt.Errorf("the list has not ended within the MaxTimeout of %v, after %d pages", most, len(seen)+1)})
				return
			case page.next != "" && (seen[maphash.String(hash, page.next)] || len(seen) >= maxPages):
				yield(none, wrap(op, method, "", invalid(fmt.Errorf("the server's pages do not end: %d pages, and cursor %.100q goes on", len(seen)+1, page.next))))
				return
			}
			if check != nil {
				page.items = check(page.items)
			}
			for _, item := range page.items {
				if !yield(item, nil) {
					return
				}
			}
			broken = append(broken, page.broken[:min(len(page.broken), maxBroken-len(broken))]...)
			if page.next == "" {
				if len(broken) > 0 {
					yield(none, wrap(op, method, "", invalid(&brokenError{broken})))
				}
				return
			}
			cursor = page.next
			seen[maphash.String(hash, cursor)] = true
		}
	}
}

// pageOf requests one page of a list. If the server refuses the cursor, the
// cached pages of that list are dropped (server/utilities/caching of
// 2026-07-28, pagination).
func pageOf[T any](ctx context.Context, c *Client, op, method, member, cursor string, options []CallOption) (*page[T], error) {
	var members []byte
	if cursor != "" {
		members = named("cursor", cursor)
	}
	r, err := c.request(op, method, "", members, options)
	if err != nil {
		return nil, err
	}
	r.safe, r.cache = true, true
	raw, err := r.do(ctx)
	if err != nil {
		if _, refused := errors.AsType[*protocol.Error](err); refused && cursor != "" {
			c.opts.Cache.drop(c.server, method, "") // the pages before are of another list
		}
		return nil, err
	}
	page, err := decodePage[T](raw, member)
	return page, wrap(op, method, "", invalid(err))
}

// each reads the items one by one, after one of them has failed.
func (p *page[T]) each(list []byte) error {
	var texts []json.RawMessage
	if err := json.Unmarshal(list, &texts); err != nil {
		return err
	}
	p.items = make([]T, 0, len(texts))
	for i, text := range texts {
		var item T
		if err := json.Unmarshal(text, &item); err != nil {
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
	_ = json.Unmarshal(text, &named) // members of other types do not matter
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
			if json.Unmarshal(text, &p.items) == nil {
				return nil
			}
			return p.each(text)
		case "nextCursor":
			return json.Unmarshal(text, &p.next)
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
