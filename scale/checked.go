package scale

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"
)

// checked is a Store whose arguments are checked before it is called, and what it
// returns afterwards.
type checked struct{ Store }

// checkedWatcher is the Watcher of one.
type checkedWatcher struct{ Watcher }

// Checked returns a Store that refuses what the comments of this package forbid,
// and leaves the rest to s. It is for backends, which need not look at their
// arguments then. What s returns that no caller could make use of, as fewer entries
// than it was asked for, becomes an error that says so. Servers check the Stores that
// they are given.
func Checked(s Store) Store {
	switch s.(type) {
	case checked, bounded:
		return s
	}
	return checked{s}
}

// Get implements Store.
func (c checked) Get(ctx context.Context, looks ...GetOp) ([]Entry, error) {
	for i := range looks {
		if err := looks[i].check(); err != nil {
			return nil, err
		}
	}
	found, err := c.Store.Get(ctx, looks...)
	if err := counted("Get", len(found), len(looks), err); err != nil {
		return nil, err
	}
	failed := false
	for i := range found {
		switch e, look := &found[i], &looks[i]; {
		case e.Err != nil:
			failed, err = true, cmp.Or(err, e.Err)
		case e.Key != look.Key || e.Rev < 0 || e.Value == nil && e.Rev != 0 && e.Rev != look.Known:
			return nil, wrong(err, "answers a look at %v with %v, Rev %d, a value: %v", look.Key, e.Key, e.Rev, e.Value != nil)
		}
	}
	if err != nil && !failed {
		return nil, wrong(err, "returns an error of Get that is of no entry")
	}
	return found, err
}

// Put implements Store.
func (c checked) Put(ctx context.Context, writes ...Write) ([]Entry, error) {
	for i := range writes {
		if err := writes[i].check(); err != nil {
			return nil, err
		}
	}
	made, err := c.Store.Put(ctx, writes...)
	if err := counted("Put", len(made), len(writes), err); err != nil {
		return nil, err
	}
	failed := false
	for i := range made {
		e, w := &made[i], &writes[i]
		fits := e.Key == w.Key
		switch {
		case e.Err == nil:
			fits = fits && (e.Rev > 0) == (w.Value != nil)
		case errors.Is(e.Err, ErrChanged):
			fits = fits && w.Prev != Any && e.Rev != w.Prev && (e.Rev > 0) == (e.Value != nil)
		case !errors.Is(e.Err, ErrFull):
			failed, fits, err = true, true, cmp.Or(err, e.Err)
		}
		if !fits {
			return nil, wrong(cmp.Or(err, e.Err), "answers a write of %v with Prev %d with %v, Rev %d, a value: %v", w.Key, w.Prev, e.Key, e.Rev, e.Value != nil)
		}
	}
	if err != nil && !failed {
		return nil, wrong(err, "returns an error of Put that is of no entry")
	}
	return made, err
}

// ClaimDue implements Store.
func (c checked) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]Entry, error) {
	if err := checkNames(part, index, owner); err != nil {
		return nil, err
	}
	if max < 1 || lease <= 0 {
		return nil, fmt.Errorf("scale: Due of %d entries for %v", max, lease)
	}
	due, err := c.Store.ClaimDue(ctx, part, index, owner, max, lease)
	if err != nil {
		return nil, err
	}
	if len(due) > max {
		return nil, wrong(nil, "gives %d entries that are due, of %d that it was asked for", len(due), max)
	}
	for _, e := range due {
		if e.Err != nil || e.Key.Partition != part || e.Rev <= 0 || e.Value == nil {
			return nil, wrong(e.Err, "gives %v, Rev %d, as due in %s, with %d bytes", e.Key, e.Rev, part, len(e.Value))
		}
	}
	return due, nil
}

// Append implements Store.
func (c checked) Append(ctx context.Context, p AppendOp) (Rev, string, error) {
	if err := p.check(); err != nil {
		return 0, "", err
	}
	rev, reader, err := c.Store.Append(ctx, p)
	if err == nil && rev <= 0 {
		err = wrong(nil, "gives a message of %s the Rev %d", p.Box, rev)
	}
	return rev, reader, err
}

// Read implements Store.
func (c checked) Read(ctx context.Context, box string, after Rev, reader string) ([]Message, string, error) {
	if err := checkRead(box, after, reader); err != nil {
		return nil, "", err
	}
	messages, before, err := c.Store.Read(ctx, box, after, reader)
	if err != nil {
		return nil, before, err
	}
	last := after
	for _, m := range messages {
		if m.Rev <= last || m.Prev >= m.Rev {
			return nil, before, wrong(nil, "has a message with Rev %d and Prev %d after Rev %d of %s", m.Rev, m.Prev, last, box)
		}
		last = m.Rev
	}
	return messages, before, nil
}

// Take implements Store.
func (c checked) Take(ctx context.Context, t Take) (Box, error) {
	if err := t.check(); err != nil {
		return Box{}, err
	}
	found, err := c.Store.Take(ctx, t)
	if err == nil && min(found.Given, found.Last) < 0 {
		err = wrong(nil, "has messages of %s up to the Rev %d, and given up to %d", t.Box, found.Last, found.Given)
	}
	return found, err
}

// Watch implements Store.
func (c checked) Watch(fn func(subject string, m Message), gap func()) Watcher {
	w := c.Store.Watch(fn, gap)
	if w == nil {
		return noWatcher{}
	}
	return checkedWatcher{w}
}

// noWatcher takes the place of one that a Store has not made.
type noWatcher struct{}

// Add implements Watcher.
func (noWatcher) Add(context.Context, ...string) error { return wrong(nil, "has no Watcher") }

// Remove implements Watcher.
func (noWatcher) Remove(...string) {}

// Close implements Watcher.
func (noWatcher) Close() {}

// wrong returns an error for a Store that breaks its contract, in addition to the one that
// it has returned; nil if there is none.
func wrong(err error, format string, values ...any) error {
	text := "scale: a fault of the Store: it " + fmt.Sprintf(format, values...)
	if err != nil {
		return fmt.Errorf("%s: %w", text, err)
	}
	return errors.New(text)
}

// counted returns the error of a Store that has answered less or more than it was
// asked. It may have an error and no answers.
func counted(what string, answers, questions int, err error) error {
	switch {
	case err != nil && answers == 0:
		return err
	case answers != questions:
		return wrong(err, "answers %s of %d with %d entries", what, questions, answers)
	}
	return nil
}

// Add implements Watcher.
func (w checkedWatcher) Add(ctx context.Context, subjects ...string) error {
	if err := checkNames(subjects...); err != nil {
		return err
	}
	return w.Watcher.Add(ctx, subjects...)
}

// checkNames refuses what cannot be a name.
func checkNames(names ...string) error {
	for _, name := range names {
		if !isName(name) {
			return fmt.Errorf("scale: %.140q cannot be a name", name)
		}
	}
	return nil
}

// isName reports whether text can be a name.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c > '~' || c == '{' || c == '}' {
			return false
		}
	}
	return text != "" && len(text) <= 128
}

// checkOptional is checkNames of what may be empty.
func checkOptional(names ...string) error {
	for _, name := range names {
		if name != "" && !isName(name) {
			return checkNames(name)
		}
	}
	return nil
}

// check refuses a look that says what it must not.
func (look *GetOp) check() error {
	if look.Known < 0 || look.In < 0 || look.TTL < 0 {
		return fmt.Errorf("scale: Look of %v with Known %d, In %v, TTL %v", look.Key, look.Known, look.In, look.TTL)
	}
	return checkNames(look.Key.Partition, look.Key.Name)
}

// check refuses a write that says what it must not.
func (w *Write) check() error {
	why := ""
	switch {
	case w.Prev < Any:
		why = "a Prev that no entry can have"
	case w.Value == nil && w.Prev == 0:
		why = "nothing to delete"
	case len(w.Value) > MaxValue:
		why = "a value that is too long"
	case w.TTL < 0 || w.TTL == 0 && w.Value != nil && w.Prev <= 0:
		why = "no TTL"
	case w.DueIn > 0 && w.Index == "":
		why = "no Index"
	case w.Limit != "" && w.Max < 1:
		why = "no Max"
	}
	if why != "" {
		return fmt.Errorf("scale: Write of %v: %s", w.Key, why)
	}
	if err := checkNames(w.Key.Partition, w.Key.Name); err != nil {
		return err
	}
	return checkOptional(w.Owner, w.Index, w.Limit, w.Notify)
}

// check refuses a message that cannot be.
func (p *AppendOp) check() error {
	if len(p.Data) > MaxValue || min(p.Keep, p.Recent) < 0 || p.TTL < 0 || p.Keep > 0 && p.TTL == 0 || p.After < 0 || p.Keep == 0 && p.From != "" {
		return fmt.Errorf("scale: Post of %d bytes to %s by %q after %d with Keep %d, Recent %d, TTL %v", len(p.Data), p.Box, p.From, p.After, p.Keep, p.Recent, p.TTL)
	}
	if err := checkNames(p.Box); err != nil {
		return err
	}
	return checkOptional(p.From)
}

// checkRead refuses a reader that cannot be.
func checkRead(box string, after Rev, reader string) error {
	if after < Unread {
		return fmt.Errorf("scale: Read of %s by %q after %d", box, reader, after)
	}
	if err := checkNames(box); err != nil {
		return err
	}
	return checkOptional(reader)
}

// check refuses a change of readers that cannot be.
func (t *Take) check() error {
	if t.After < Unread || t.TTL < 0 || t.TTL > 0 && t.Reader == "" {
		return fmt.Errorf("scale: Take of %s by %q after %d for %v", t.Box, t.Reader, t.After, t.TTL)
	}
	if err := checkNames(t.Box); err != nil {
		return err
	}
	return checkOptional(t.From, t.Reader, t.Resume)
}
