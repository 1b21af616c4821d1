package scale

import (
	"context"
	"fmt"
	"time"
)

// checked is a Store whose arguments have been checked before it is called.
type checked struct{ Store }

// checkedWatcher is the Watcher of one.
type checkedWatcher struct{ Watcher }

// Checked returns a Store that refuses what the comments of this package forbid,
// and leaves the rest to s. It is for backends, which need not look at their
// arguments then.
func Checked(s Store) Store { return checked{s} }

// Get implements Store.
func (c checked) Get(ctx context.Context, looks ...Look) ([]Entry, error) {
	for i := range looks {
		if err := looks[i].check(); err != nil {
			return nil, err
		}
	}
	return c.Store.Get(ctx, looks...)
}

// Put implements Store.
func (c checked) Put(ctx context.Context, writes ...Write) ([]Entry, error) {
	for i := range writes {
		if err := writes[i].check(); err != nil {
			return nil, err
		}
	}
	return c.Store.Put(ctx, writes...)
}

// Due implements Store.
func (c checked) Due(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]Entry, error) {
	if err := checkNames(part, index, owner); err != nil {
		return nil, err
	}
	if max < 1 || lease <= 0 {
		return nil, fmt.Errorf("scale: Due of %d entries for %v", max, lease)
	}
	return c.Store.Due(ctx, part, index, owner, max, lease)
}

// Append implements Store.
func (c checked) Append(ctx context.Context, p Post) (Rev, string, error) {
	if err := p.check(); err != nil {
		return 0, "", err
	}
	return c.Store.Append(ctx, p)
}

// Read implements Store.
func (c checked) Read(ctx context.Context, box string, after Rev, reader string, take time.Duration) ([]Message, string, error) {
	if err := checkRead(box, after, reader, take); err != nil {
		return nil, "", err
	}
	return c.Store.Read(ctx, box, after, reader, take)
}

// Watch implements Store.
func (c checked) Watch(fn func(subject string, m Message), gap func()) Watcher {
	return checkedWatcher{c.Store.Watch(fn, gap)}
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
func (look *Look) check() error {
	if look.Known < 0 || look.In < 0 || look.TTL < 0 {
		return fmt.Errorf("scale: Look of %v with Known %d, In %v, TTL %v", look.Key, look.Known, look.In, look.TTL)
	}
	return checkNames(look.Key.Part, look.Key.Name)
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
	case w.In > 0 && w.Index == "":
		why = "no Index"
	case w.Limit != "" && w.Max < 1:
		why = "no Max"
	}
	if why != "" {
		return fmt.Errorf("scale: Write of %v: %s", w.Key, why)
	}
	if err := checkNames(w.Key.Part, w.Key.Name); err != nil {
		return err
	}
	return checkOptional(w.Owner, w.Index, w.Limit, w.Tell)
}

// check refuses a message that cannot be.
func (p *Post) check() error {
	if len(p.Data) > MaxValue || p.Keep < 0 || p.TTL < 0 || p.Keep > 0 && p.TTL == 0 {
		return fmt.Errorf("scale: Post of %d bytes to %s with Keep %d, TTL %v", len(p.Data), p.Box, p.Keep, p.TTL)
	}
	return checkNames(p.Box)
}

// checkRead refuses a reader that cannot be.
func checkRead(box string, after Rev, reader string, take time.Duration) error {
	if after < 0 || take < 0 || take > 0 && reader == "" {
		return fmt.Errorf("scale: Read of %s by %q after %d for %v", box, reader, after, take)
	}
	if err := checkNames(box); err != nil {
		return err
	}
	return checkOptional(reader)
}
