package scaletest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/scale"
)

// broken is a Store whose methods can be exchanged.
type broken struct {
	scale.Store
	get    func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error)
	put    func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error)
	due    func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error)
	append func(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error)
	read   func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error)
	take   func(ctx context.Context, t scale.Take) (scale.Box, error)
	watch  func(fn func(string, scale.Message), gap func()) scale.Watcher
}

func (b *broken) Take(ctx context.Context, t scale.Take) (scale.Box, error) { return b.take(ctx, t) }

func (b *broken) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	return b.get(ctx, looks...)
}

func (b *broken) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	return b.put(ctx, writes...)
}

func (b *broken) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	return b.due(ctx, part, index, owner, max, lease)
}

func (b *broken) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	return b.append(ctx, p)
}

func (b *broken) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	return b.read(ctx, box, after, reader)
}

func (b *broken) Watch(fn func(string, scale.Message), gap func()) scale.Watcher {
	return b.watch(fn, gap)
}

// watcher is a Watcher whose methods can be exchanged.
type watcher struct {
	scale.Watcher
	add    func(ctx context.Context, subjects ...string) error
	remove func(subjects ...string)
	close  func()
}

func (w *watcher) Add(ctx context.Context, subjects ...string) error {
	if w.add != nil {
		return w.add(ctx, subjects...)
	}
	return w.Watcher.Add(ctx, subjects...)
}

func (w *watcher) Remove(subjects ...string) {
	if w.remove != nil {
		w.remove(subjects...)
		return
	}
	w.Watcher.Remove(subjects...)
}

func (w *watcher) Close() {
	if w.close != nil {
		w.close()
		return
	}
	w.Watcher.Close()
}

// writes is a Put that changes the writes first.
func writes(change func(w *scale.Write)) func(b *broken) {
	return func(b *broken) {
		put := b.put
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			writes = slices.Clone(writes)
			for i := range writes {
				change(&writes[i])
			}
			return put(ctx, writes...)
		}
	}
}

// written is a Put that changes what it returns.
func written(change func(es []scale.Entry)) func(b *broken) {
	return func(b *broken) {
		put := b.put
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			es, err := put(ctx, writes...)
			change(es)
			return es, err
		}
	}
}

// found is a Get that changes what it returns.
func found(change func(es []scale.Entry, err error) ([]scale.Entry, error)) func(b *broken) {
	return func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			return change(get(ctx, looks...))
		}
	}
}

// looks is a Get that changes the looks first.
func looks(change func(look *scale.GetOp)) func(b *broken) {
	return func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			looks = slices.Clone(looks)
			for i := range looks {
				change(&looks[i])
			}
			return get(ctx, looks...)
		}
	}
}

// takes is a Take that changes what it is asked for, or what it returns.
func takes(change func(t *scale.Take, found *scale.Box)) func(b *broken) {
	return func(b *broken) {
		do := b.take
		b.take = func(ctx context.Context, t scale.Take) (scale.Box, error) {
			change(&t, &scale.Box{})
			found, err := do(ctx, t)
			change(&scale.Take{}, &found)
			return found, err
		}
	}
}

// posts is an Append that changes the message first.
func posts(change func(p *scale.AppendOp)) func(b *broken) {
	return func(b *broken) {
		do := b.append
		b.append = func(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
			change(&p)
			return do(ctx, p)
		}
	}
}

// hears is a Watch that exchanges fn.
func hears(change func(fn func(string, scale.Message)) func(string, scale.Message)) func(b *broken) {
	return func(b *broken) {
		watch := b.watch
		b.watch = func(fn func(string, scale.Message), gap func()) scale.Watcher { return watch(change(fn), gap) }
	}
}

// watches is a Watch that exchanges methods of the Watcher.
func watches(change func(w *watcher)) func(b *broken) {
	return func(b *broken) {
		watch := b.watch
		b.watch = func(fn func(string, scale.Message), gap func()) scale.Watcher {
			w := &watcher{Watcher: watch(fn, gap)}
			change(w)
			return w
		}
	}
}

// clean makes a name of what cannot be one.
func clean(name string) string {
	if name == "" || len(name) > 128 || strings.ContainsAny(name, " {}\x00\nä") {
		return "clean"
	}
	return name
}

// breakages each break one promise of the interface.
var breakages = map[string]func(b *broken){
	"Prev is not looked at": writes(func(w *scale.Write) {
		if w.Value != nil && w.TTL > 0 {
			w.Prev = scale.Any
		}
	}),
	"Prev is looked at, and then it is written": func(b *broken) {
		put := b.put
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			if len(writes) == 1 && writes[0].Prev > 0 && writes[0].Value != nil {
				w := writes[0]
				es, err := b.Store.Get(ctx, scale.GetOp{Key: w.Key})
				if err != nil || es[0].Rev != w.Prev {
					es[0].Err = scale.ErrChanged
					return es, err
				}
				runtime.Gosched()
				w.Prev, w.TTL = scale.Any, long
				return put(ctx, w)
			}
			return put(ctx, writes...)
		}
	},
	"what has changed is not told": written(func(es []scale.Entry) {
		for i := range es {
			es[i].Value = nil
		}
	}),
	"what was written is told": written(func(es []scale.Entry) {
		for i := range es {
			if es[i].Value == nil && es[i].Rev > 0 {
				es[i].Value = []byte("x")
			}
		}
	}),
	"the last look is not answered": found(func(es []scale.Entry, err error) ([]scale.Entry, error) { return es[:max(len(es)-1, 0)], err }),
	"no look is answered":           found(func([]scale.Entry, error) ([]scale.Entry, error) { return nil, nil }),
	"an error leaves entries out": found(func(es []scale.Entry, err error) ([]scale.Entry, error) {
		if err != nil {
			return make([]scale.Entry, 1), err
		}
		return es, nil
	}),
	"an error is of no entry": found(func(es []scale.Entry, err error) ([]scale.Entry, error) {
		if err != nil {
			return make([]scale.Entry, 2), err
		}
		return es, nil
	}),
	"the last write is not answered": func(b *broken) {
		put := b.put
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			es, err := put(ctx, writes...)
			return es[:max(len(es)-1, 0)], err
		}
	},
	"messages come again": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			return read(ctx, box, max(after-1, 0), reader)
		}
	},
	"answers are in no order": written(slices.Reverse[[]scale.Entry]),
	"Revs are those of before": written(func(es []scale.Entry) {
		for i := range es {
			if es[i].Err == nil && es[i].Rev > 0 {
				es[i].Rev--
			}
		}
	}),
	"an empty value is none": func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			es, err := get(ctx, looks...)
			for i := range es {
				if len(es[i].Value) == 0 {
					es[i].Value = nil
				}
			}
			return es, err
		}
	},
	"what is not there is an error": func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			es, err := get(ctx, looks...)
			for _, e := range es {
				if e.Rev == 0 && err == nil {
					err = errors.New("there is none")
				}
			}
			return es, err
		}
	},
	"what is known is told": looks(func(look *scale.GetOp) { look.Known = 0 }),
	"reads lag behind": func(b *broken) {
		get := b.get
		var mu sync.Mutex
		old := map[scale.Key]scale.Entry{}
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			es, err := get(ctx, looks...)
			mu.Lock()
			defer mu.Unlock()
			for i, e := range es {
				if was, ok := old[e.Key]; ok {
					es[i] = was
				}
				old[e.Key] = e
			}
			return es, err
		}
	},
	"nothing is deleted": writes(func(w *scale.Write) {
		if w.Value == nil && w.Prev != 0 {
			w.Value, w.TTL = []byte{}, long
		}
	}),
	"owners are forgotten":  writes(func(w *scale.Write) { w.Owner = "" }),
	"entries live too long": writes(func(w *scale.Write) { w.TTL *= 10 }),
	"entries end early":     writes(func(w *scale.Write) { w.TTL /= 4 }),
	"a write without TTL prolongs": writes(func(w *scale.Write) {
		if w.TTL == 0 && w.Prev > 0 && w.Value != nil {
			w.TTL = long
		}
	}),
	"looks do not prolong":    looks(func(look *scale.GetOp) { look.TTL = 0 }),
	"looks do not put off":    looks(func(look *scale.GetOp) { look.In = 0 }),
	"looks put off, with TTL": looks(func(look *scale.GetOp) { look.In = max(look.In, look.TTL) }),
	"looks do not say when": func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			es, err := get(ctx, looks...)
			for i := range es {
				es[i].Due = 0
			}
			return es, err
		}
	},
	"writes do not say when": written(func(es []scale.Entry) {
		for i := range es {
			es[i].Due = 0
		}
	}),
	"what was put off comes sooner": looks(func(look *scale.GetOp) { look.In = min(look.In, brief) }),
	"who knows nothing prolongs": func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			es, err := get(ctx, looks...)
			for i, look := range looks {
				if err == nil && look.TTL > 0 {
					_, err = get(ctx, scale.GetOp{Key: look.Key, Known: es[i].Rev, TTL: look.TTL, In: look.In})
				}
			}
			return es, err
		}
	},
	"a write without In takes out": writes(func(w *scale.Write) {
		if w.DueIn == 0 && w.Prev > 0 && w.Value != nil {
			w.DueIn = -1
		}
	}),
	"a write does not take out": writes(func(w *scale.Write) { w.DueIn = max(w.DueIn, 0) }),
	"a write does not move": writes(func(w *scale.Write) {
		if w.Prev > 0 {
			w.DueIn = min(w.DueIn, 0)
		}
	}),
	"there is one index": writes(func(w *scale.Write) {
		if w.Index != "" {
			w.Index = "due"
		}
	}),
	"there is one part": func(b *broken) {
		get, put := b.get, b.put
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			looks = slices.Clone(looks)
			for i := range looks {
				looks[i].Key.Partition = "part"
			}
			return get(ctx, looks...)
		}
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			writes = slices.Clone(writes)
			for i := range writes {
				writes[i].Key.Partition = "part"
			}
			return put(ctx, writes...)
		}
	},
	"limits are not looked at": writes(func(w *scale.Write) { w.Limit = "" }),
	"limits are one too many":  writes(func(w *scale.Write) { w.Max++ }),
	"limits count what is there": func(b *broken) {
		put := b.put
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			if len(writes) == 1 && writes[0].Limit != "" && writes[0].Prev != 0 {
				return []scale.Entry{{Key: writes[0].Key, Err: scale.ErrFull}}, nil
			}
			return put(ctx, writes...)
		}
	},
	"due are more than asked for": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			return due(ctx, part, index, owner, max*2, lease)
		}
	},
	"due are the same at once": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			return due(ctx, part, index, owner, max, lease/50)
		}
	},
	"due are never again": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			return due(ctx, part, index, owner, max, 100*lease)
		}
	},
	"due are without owner": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			return due(ctx, part, index, "nobody", max, lease)
		}
	},
	"due are in no order": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			es, err := due(ctx, part, index, owner, max, lease)
			slices.Reverse(es)
			return es, err
		}
	},
	"due are all at once": func(b *broken) {
		due := b.due
		b.due = func(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
			var all []scale.Entry
			for len(all) < max {
				es, err := due(ctx, part, index, owner, max-len(all), lease)
				if all = append(all, es...); err != nil || len(es) == 0 {
					return all, err
				}
			}
			return all, nil
		}
	},
	"writes are not told": writes(func(w *scale.Write) { w.Notify = "" }),
	"all writes are told": writes(func(w *scale.Write) { w.Notify = "subject" }),
	"writes are told before they are made": func(b *broken) {
		put, tell := b.put, []func(string, scale.Message){}
		b.put = func(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
			for _, w := range writes {
				if w.Notify == "subject" && w.Prev == 0 && strings.Trim(w.Key.Name, "0123456789") == "" {
					for _, fn := range tell {
						fn("subject", scale.Message{Key: w.Key, Rev: scale.Rev(time.Now().UnixMicro())})
					}
				}
			}
			return put(ctx, writes...)
		}
		watch := b.watch
		b.watch = func(fn func(string, scale.Message), gap func()) scale.Watcher {
			tell = append(tell, fn)
			return watch(fn, gap)
		}
	},
	"boxes keep everything":     posts(func(p *scale.AppendOp) { p.Keep *= 100 }),
	"boxes keep little":         posts(func(p *scale.AppendOp) { p.Keep = min(p.Keep, 700) }),
	"boxes keep what is told":   posts(func(p *scale.AppendOp) { p.Keep, p.TTL = max(p.Keep, 1000), max(p.TTL, long) }),
	"boxes drop what is unread": posts(func(p *scale.AppendOp) { p.Refuse = false }),
	"boxes refuse":              posts(func(p *scale.AppendOp) { p.Refuse = true }),
	"boxes live too long":       posts(func(p *scale.AppendOp) { p.TTL *= 10 }),
	"boxes end early":           posts(func(p *scale.AppendOp) { p.TTL = min(p.TTL, brief/2) }),
	"the reader is not told": func(b *broken) {
		do := b.append
		b.append = func(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
			rev, _, err := do(ctx, p)
			return rev, "", err
		}
	},
	"readers are not fenced": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			ms, before, err := read(ctx, box, after, reader)
			if errors.Is(err, scale.ErrNotReader) {
				return read(ctx, box, after, "")
			}
			return ms, before, err
		}
	},
	"reading says what was read": func(b *broken) {
		read, take := b.read, b.take
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			ms, before, err := read(ctx, box, after, reader)
			if len(ms) > 0 && reader != "" {
				_, err = take(ctx, scale.Take{Box: box, Reader: reader, After: ms[len(ms)-1].Rev, TTL: long})
			}
			return ms, before, err
		}
	},
	"what is read is not given": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			if _, now, err := read(ctx, box, after, ""); reader != "" && now != reader {
				return nil, now, cmp.Or(err, scale.ErrNotReader)
			}
			return read(ctx, box, after, "")
		}
	},
	"what is looked at is given": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			if _, now, err := read(ctx, box, after, ""); reader == "" && err == nil {
				reader = now
			}
			return read(ctx, box, after, reader)
		}
	},
	"the one before is not told":      takes(func(_ *scale.Take, found *scale.Box) { found.Reader = "" }),
	"what was given is not told":      takes(func(_ *scale.Take, found *scale.Box) { found.Given = 0 }),
	"the newest is not told":          takes(func(_ *scale.Take, found *scale.Box) { found.Last = found.Given }),
	"who resumed is not told":         takes(func(_ *scale.Take, found *scale.Box) { found.Resumed = "" }),
	"nobody resumes":                  takes(func(t *scale.Take, _ *scale.Box) { t.Resume = "" }),
	"everybody resumes":               takes(func(t *scale.Take, _ *scale.Box) { t.Reader = cmp.Or(t.Resume, t.Reader) }),
	"a message is given to nobody":    posts(func(p *scale.AppendOp) { p.From = "" }),
	"a take ends early":               takes(func(t *scale.Take, _ *scale.Box) { t.TTL = min(t.TTL, brief/2) }),
	"a box cannot be deleted":         takes(func(t *scale.Take, _ *scale.Box) { t.TTL = max(t.TTL, brief); t.Reader = cmp.Or(t.Reader, "x") }),
	"From does not matter":            takes(func(t *scale.Take, _ *scale.Box) { t.From = "" }),
	"who takes begins at the end":     takes(func(t *scale.Take, _ *scale.Box) { t.After = 1 << 60 }),
	"who leaves returns nothing":      takes(func(t *scale.Take, _ *scale.Box) { t.After = scale.Unread }),
	"readers have no subject":         takes(func(t *scale.Take, _ *scale.Box) { t.Reader = strings.ReplaceAll(t.Reader, "/", ".") }),
	"all is kept of what was read":    posts(func(p *scale.AppendOp) { p.Recent = 0 }),
	"nothing is kept of what is read": posts(func(p *scale.AppendOp) { p.Recent = min(p.Recent, 1) }),
	"what was not read is dropped": posts(func(p *scale.AppendOp) {
		if p.Recent > 0 {
			p.Keep, p.Refuse = p.Recent+64, false
		}
	}),
	"a lost take counts": func(b *broken) {
		take := b.take
		b.take = func(ctx context.Context, t scale.Take) (scale.Box, error) {
			found, err := take(ctx, t)
			if errors.Is(err, scale.ErrNotReader) {
				return found, nil
			}
			return found, err
		}
	},
	"everything is read": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			return read(ctx, box, max(0, after-1), reader)
		}
	},
	"what is missing does not show": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			ms, before, err := read(ctx, box, after, reader)
			if len(ms) > 0 {
				ms[0].Prev = min(after, ms[0].Prev)
			}
			return ms, before, err
		}
	},
	"a box is read at once": func(b *broken) {
		read := b.read
		b.read = func(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
			var all []scale.Message
			for {
				ms, before, err := read(ctx, box, after, reader)
				if all = append(all, ms...); err != nil || len(ms) == 0 {
					return all, before, err
				}
				after = ms[len(ms)-1].Rev
			}
		}
	},
	"hints have no Prev": hears(func(fn func(string, scale.Message)) func(string, scale.Message) {
		return func(subject string, m scale.Message) { m.Prev = 0; fn(subject, m) }
	}),
	"hints come twice": hears(func(fn func(string, scale.Message)) func(string, scale.Message) {
		return func(subject string, m scale.Message) { fn(subject, m); fn(subject, m) }
	}),
	"hints get lost": hears(func(fn func(string, scale.Message)) func(string, scale.Message) {
		n := 0
		return func(subject string, m scale.Message) {
			if n++; n%7 != 0 {
				fn(subject, m)
			}
		}
	}),
	"everybody hears everything": watches(func(w *watcher) {
		w.add = func(ctx context.Context, subjects ...string) error {
			return w.Watcher.Add(ctx, append(subjects, "other")...)
		}
	}),
	"a subject is in force later": watches(func(w *watcher) {
		w.add = func(ctx context.Context, subjects ...string) error {
			time.AfterFunc(time.Millisecond, func() { _ = w.Watcher.Add(ctx, subjects...) })
			return nil
		}
	}),
	"a subject is added once": watches(func(w *watcher) {
		var mu sync.Mutex
		added := map[string]bool{}
		w.add = func(ctx context.Context, subjects ...string) error {
			mu.Lock()
			defer mu.Unlock()
			for _, subject := range subjects {
				if !added[subject] {
					added[subject] = true
					if err := w.Watcher.Add(ctx, subject); err != nil {
						return err
					}
				}
			}
			return nil
		}
		w.remove = func(subjects ...string) {
			mu.Lock()
			defer mu.Unlock()
			for _, subject := range subjects {
				delete(added, subject)
			}
			w.Watcher.Remove(subjects...)
		}
	}),
	"a subject is removed at once": watches(func(w *watcher) {
		w.remove = func(subjects ...string) {
			for range 10 {
				w.Watcher.Remove(subjects...)
			}
		}
	}),
	"nothing is removed":  watches(func(w *watcher) { w.remove = func(...string) {} }),
	"Close does not wait": watches(func(w *watcher) { w.close = func() { go w.Watcher.Close() } }),
	"contexts are not looked at": func(b *broken) {
		get := b.get
		b.get = func(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
			return get(context.WithoutCancel(ctx), looks...)
		}
	},
	"bad subjects are taken": writes(func(w *scale.Write) {
		if w.Notify != "" {
			w.Notify = clean(w.Notify)
		}
	}),
	"bad boxes are taken": posts(func(p *scale.AppendOp) { p.Box = clean(p.Box) }),
	"bad names are taken": looks(func(look *scale.GetOp) { look.Key.Name = clean(look.Key.Name) }),
	"no TTL is long enough": writes(func(w *scale.Write) {
		if w.TTL == 0 && w.Prev <= 0 && w.Value != nil {
			w.TTL = long
		}
	}),
	"what is too long is cut": writes(func(w *scale.Write) { w.Value = w.Value[:min(len(w.Value), scale.MaxValue):len(w.Value)] }),
}

// outcome is a test that notes that it failed.
type outcome struct {
	testing.TB
	mu     sync.Mutex
	failed []string
}

func (o *outcome) Helper() {}

func (o *outcome) fail(what string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.failed = append(o.failed, what)
}

func (o *outcome) Error(args ...any)                 { o.fail(fmt.Sprint(args...)) }
func (o *outcome) Errorf(format string, args ...any) { o.fail(fmt.Sprintf(format, args...)) }
func (o *outcome) Fatal(args ...any)                 { o.Error(args...); runtime.Goexit() }
func (o *outcome) Fatalf(format string, args ...any) { o.Errorf(format, args...); runtime.Goexit() }
func (o *outcome) Skip(...any)                       { runtime.Goexit() }

// failures returns what a check says of a Store that is broken in one way, or in
// none.
func failures(t *testing.T, c check, breakage func(b *broken)) []string {
	o := &outcome{}
	synctest.Test(t, func(t *testing.T) {
		b := &broken{Store: scale.NewLocal()}
		b.get, b.put, b.due, b.append, b.read, b.take, b.watch = b.Store.Get, b.Store.Put, b.Store.ClaimDue, b.Store.Append, b.Store.Read, b.Store.Take, b.Store.Watch
		if breakage != nil {
			breakage(b)
		}
		o.TB = t
		done := make(chan struct{})
		go func() {
			defer close(done)
			c.check(&kit{TB: o, a: b, b: b})
		}()
		<-done
		time.Sleep(time.Second) // for what a broken one left behind
	})
	return o.failed
}

// The suite notices each promise that is broken, and finds no fault with what
// breaks none.
func TestSuiteNotices(t *testing.T) {
	testdep.NoRace(t, "the checks themselves run with it")
	for _, c := range checks {
		if failed := failures(t, c, nil); len(failed) > 0 {
			t.Errorf("%s fails for what works: %s", c.name, failed[0])
		}
	}
	for what, breakage := range breakages {
		var noticed []string
		for _, c := range checks {
			if failed := failures(t, c, breakage); len(failed) > 0 {
				noticed = append(noticed, c.name+": "+failed[0])
			}
		}
		if len(noticed) == 0 {
			t.Errorf("%s, and no check notices", what)
			continue
		}
		t.Logf("%s: %d checks notice; %.160s", what, len(noticed), noticed[0])
	}
}
