package redis

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/scale"
)

// engine is the Store behind Store, with arguments that have been checked.
type engine struct {
	client  rueidis.Client
	opt     rueidis.ClientOption
	prefix  string // of keys after their brace, and of channels
	timeout time.Duration
	bounds  deadlines // of that time
	log     *zerolog.Logger
	calls   chan struct{} // has an element for each call that is at the engine
	givenUp atomic.Int32  // calls that have ended without an answer, since there was one
	conns   conns
	ranges  [ranges]breaker // of slots; without a cluster all is in the first
	cluster bool

	ctx    context.Context // ends with close
	cancel context.CancelFunc
	probes sync.WaitGroup

	mu       sync.Mutex
	closed   bool
	watchers map[*watcher]bool
}

var _ scale.Store = (*engine)(nil)

var prefixes = regexp.MustCompile(`^[a-z0-9-]{1,32}$`)

// newEngine returns an engine without a client.
func newEngine(o Options) (*engine, error) {
	if !prefixes.MatchString(o.Prefix) {
		return nil, fmt.Errorf("redis: Options.Prefix is %q, not 1 to 32 of a-z, 0-9 and -", o.Prefix)
	}
	if o.Timeout < 0 || o.MaxCalls < 0 {
		return nil, fmt.Errorf("redis: Options.Timeout is %v, MaxCalls %d", o.Timeout, o.MaxCalls)
	}
	e := &engine{prefix: "talaria:" + o.Prefix + ":", timeout: o.Timeout, log: o.Logger, watchers: map[*watcher]bool{}}
	if e.timeout == 0 {
		e.timeout = time.Second
	}
	e.bounds.timeout = e.timeout
	if o.MaxCalls == 0 {
		o.MaxCalls = 60
	}
	if e.log == nil {
		nobody := zerolog.Nop()
		e.log = &nobody
	}
	e.calls = make(chan struct{}, o.MaxCalls)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	return e, nil
}

// close ends what runs in the background.
func (e *engine) close() {
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	e.cancel()
	e.probes.Wait()
}

// ownCalls is how many calls, such as pings, the library of the client makes by itself at
// a time on one connection, at most.
const ownCalls = 4

// topologyEvery is the interval at which the engine is asked for its machines.
const topologyEvery = 5 * time.Second

// options makes what the client library needs of Options.
func (e *engine) options(o Options) (rueidis.ClientOption, error) {
	opt, err := rueidis.ParseURL(o.URL)
	if err != nil {
		// The cause may quote the URL, which has a password.
		return opt, errors.New("redis: Options.URL is not as redis://user:password@host:port")
	}
	if o.TLS != nil {
		opt.TLSConfig = o.TLS
	}
	if o.Credentials != nil {
		opt.AuthCredentialsFn = func(rueidis.AuthCredentialsContext) (c rueidis.AuthCredentials, err error) {
			err = safely.Try(func() (err error) {
				c.Username, c.Password, err = o.Credentials()
				return err
			})
			return c, err
		}
	}
	opt.Sentinel.Username, opt.Sentinel.Password, opt.Sentinel.TLSConfig = o.SentinelUser, o.SentinelPassword, opt.TLSConfig
	// Sentinels report a failover once; a client that missed it would stay with a machine
	// that has become a replica.
	opt.Sentinel.TopologyRefreshInterval = topologyEvery
	opt.ClusterOption.ShardsRefreshInterval = topologyEvery
	// Nothing is cached here: what an invalidation does not reach in time is wrong.
	opt.DisableCache = true
	// A call that is given up must not end the connection of others. All calls go over
	// one connection, as in a cluster: what comes at the same time then leaves, and is
	// answered, together, which costs both sides less than a few connections do.
	opt.AlwaysPipelining, opt.PipelineMultiplex = true, -1
	// The pool has places for all calls, as many that were given up and keep theirs until
	// the reply, and its own. A call that waits for a place does not end in time. Each
	// place is work for the garbage collector, even if unused.
	opt.RingScaleEachConn = bits.Len(uint(2*cap(e.calls) + ownCalls - 1))
	// Calls that wait leave together, this long after the last that did. That halves the
	// engine's work for a look and saves the replica a quarter. A single call leaves at
	// once.
	opt.MaxFlushDelay = 100 * time.Microsecond
	// A machine that does not answer is found before the call ends, so that the
	// client looks for the one that took over; and an idle connection that leads
	// nowhere within these two and a second.
	opt.Dialer.Timeout = e.timeout / 2
	opt.Dialer.KeepAlive = time.Second
	opt.ConnWriteTimeout = 2 * time.Second
	opt.ReadBufferEachConn, opt.WriteBufferEachConn = 4<<10, 8<<10
	opt.DialCtxFn = e.conns.dialer(opt.DialCtxFn)
	return opt, nil
}

// deadline bounds a call.
func (e *engine) deadline(ctx context.Context) (context.Context, context.CancelFunc) {
	if ctx.Done() == nil {
		return e.bounds.next(), func() {}
	}
	return context.WithTimeout(ctx, e.timeout)
}

// enter takes a place among the calls at the engine, which leave gives back. It waits for
// one until bounded ends, which is the context of the caller with a bound.
func (e *engine) enter(ctx, bounded context.Context, key string) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	if n := int(e.givenUp.Load()); n >= cap(e.calls) {
		e.note(key, false)
		return fmt.Errorf("%w: it has not answered %d calls", scale.ErrUnavailable, n)
	}
	select {
	case e.calls <- struct{}{}:
		return nil
	default:
	}
	select {
	case e.calls <- struct{}{}:
		if bounded.Err() == nil {
			return nil
		}
		e.leave() // what has no time left would say of the engine that it does not answer
	case <-bounded.Done():
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("redis: %w", err)
	}
	return fmt.Errorf("%w: %d calls wait for it", scale.ErrUnavailable, cap(e.calls))
}

func (e *engine) leave() { <-e.calls }

// do makes a call that is for no key of a Store, and returns its text, "" if there
// is none.
func (e *engine) do(ctx context.Context, client rueidis.Client, cmd rueidis.Completed) (string, error) {
	bounded, cancel := e.deadline(ctx)
	defer cancel()
	text, err := client.Do(bounded, cmd).ToString()
	if rueidis.IsRedisNil(err) {
		return "", nil
	}
	return text, e.failed(ctx, "", err)
}

// response is what the engine has answered to a command.
type response struct {
	answer []rueidis.RedisMessage
	err    error
}

// one sends a command and returns the response. If the engine does not have its script, it
// has done nothing, and the command is repeated with the text of the script. Nothing else
// is repeated, except looks without a script, which the client library repeats.
func (e *engine) one(ctx context.Context, c *command) (r response) {
	bounded, cancel := e.deadline(ctx)
	defer cancel()
	key := c.keys[0]
	if r.err = e.enter(ctx, bounded, key); r.err != nil {
		return r
	}
	defer e.leave()
	if !e.breaker(key).allows() {
		r.err = errOpen
		return r
	}
	result := e.client.Do(bounded, c.build(e.client, false))
	if lacksScript(result) {
		result = e.client.Do(bounded, c.build(e.client, true))
	}
	answer, err := result.ToArray()
	return response{answer, e.failed(ctx, key, err)}
}

// lacksScript reports whether the engine does not know the script that it was to run.
func lacksScript(result rueidis.RedisResult) bool {
	fault, ok := rueidis.IsRedisErr(result.Error())
	return ok && fault.IsNoScript()
}

// ask is one for several commands, which are sent together.
func (e *engine) ask(ctx context.Context, list []command) []response {
	responses := make([]response, len(list))
	switch len(list) {
	case 0:
		return responses
	case 1:
		responses[0] = e.one(ctx, &list[0])
		return responses
	}
	bounded, cancel := e.deadline(ctx)
	defer cancel()
	if err := e.enter(ctx, bounded, list[0].keys[0]); err != nil {
		for i := range responses {
			responses[i].err = err
		}
		return responses
	}
	defer e.leave()
	var all []int
	for i := range list {
		if e.breaker(list[i].keys[0]).allows() {
			all = append(all, i)
		} else {
			responses[i].err = errOpen
		}
	}
	for _, whole := range []bool{false, true} {
		commands := make([]rueidis.Completed, len(all))
		for i, at := range all {
			commands[i] = list[at].build(e.client, whole)
		}
		var again []int
		for i, result := range e.client.DoMulti(bounded, commands...) {
			at := all[i]
			if !whole && lacksScript(result) {
				again = append(again, at)
				continue
			}
			answer, err := result.ToArray()
			responses[at] = response{answer, e.failed(ctx, list[at].keys[0], err)}
		}
		if all = again; len(all) == 0 {
			break
		}
	}
	return responses
}

// failed notes how a call for a key ended, and returns its error for the caller.
// Whatever an engine says against a call is its own state and may pass: no
// memory, a failover, a user whose rights are being changed.
func (e *engine) failed(ctx context.Context, key string, err error) error {
	if err == nil {
		e.note(key, true)
		return nil
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		e.givenUp.Add(1)
		if given := ctx.Err(); given != nil {
			return fmt.Errorf("redis: %w", given) // by the caller, which says nothing of the engine
		}
	}
	e.note(key, answers(err))
	if fault, ok := rueidis.IsRedisErr(err); ok && isOf(fault, "READONLY") {
		// The machine has been made a replica. The client would stay with it.
		e.conns.closeAll()
	}
	return fmt.Errorf("%w: %w", scale.ErrUnavailable, err)
}

// base is what the keys of a part begin with, and tag of a box.
func (e *engine) base(part string) string { return "{" + e.prefix + part + "}:" }

// entry is the key of an entry.
func (e *engine) entry(k scale.Key) string { return "{" + e.prefix + k.Partition + "}:e:" + k.Name }

// Get implements scale.Store.
func (e *engine) Get(ctx context.Context, looks ...scale.GetOp) ([]scale.Entry, error) {
	found := make([]scale.Entry, len(looks))
	if len(looks) == 1 { // as requests of sessions ask
		c := e.look(&looks[0])
		entryOf(&found[0], &looks[0], e.one(ctx, &c))
	} else {
		list := make([]command, len(looks))
		for i := range looks {
			list[i] = e.look(&looks[i])
		}
		for i, r := range e.ask(ctx, list) {
			entryOf(&found[i], &looks[i], r)
		}
	}
	var changed []int
	for i := range found {
		if found[i].Err == nil && found[i].Rev != looks[i].Known && found[i].Rev != 0 && found[i].Value == nil {
			changed = append(changed, i)
		}
	}
	if len(changed) > 0 {
		e.lookAgain(ctx, looks, found, changed)
	}
	return found, first(found)
}

// entryOf fills in what a look has found.
func entryOf(found *scale.Entry, look *scale.GetOp, r response) {
	found.Key, found.Err = look.Key, r.err
	if r.err == nil {
		found.Err = fill(found, r.answer, look.Known)
	}
}

// look returns the command of a look.
func (e *engine) look(look *scale.GetOp) command {
	keys := []string{e.entry(look.Key)}
	switch {
	case look.Known != 0 && (look.TTL > 0 || look.In > 0):
		return command{&touchScript, keys, []string{e.base(look.Key.Partition), look.Key.Name, number(look.Known), millis(look.TTL), micros(look.In)}}
	case look.Known != 0:
		return command{nil, keys, knownFields}
	default:
		return command{nil, keys, allFields}
	}
}

// allFields are the fields of an entry that a look reads. knownFields are those of one that
// is probably as known: its value is read only if it differs.
var (
	allFields   = []string{"r", "o", "d", "v"}
	knownFields = allFields[:3:3]
)

// lookAgain looks once more at entries that are not as known.
func (e *engine) lookAgain(ctx context.Context, looks []scale.GetOp, found []scale.Entry, at []int) {
	list := make([]command, len(at))
	for i, place := range at {
		list[i] = e.look(&scale.GetOp{Key: looks[place].Key})
	}
	for i, r := range e.ask(ctx, list) {
		place := at[i]
		found[place] = scale.Entry{}
		entryOf(&found[place], &looks[place], r)
	}
}

// Put implements scale.Store.
func (e *engine) Put(ctx context.Context, writes ...scale.Write) ([]scale.Entry, error) {
	list := make([]command, len(writes))
	for i := range writes {
		list[i] = e.write(&writes[i])
	}
	made := make([]scale.Entry, len(writes))
	var err error // of the first that was not answered
	for i, r := range e.ask(ctx, list) {
		made[i].Key = writes[i].Key
		if r.err == nil {
			r.err = outcome(&made[i], r.answer)
		}
		if r.err != nil {
			made[i].Err, err = r.err, cmp.Or(err, r.err)
		}
	}
	return made, err
}

// write returns the command of a write.
func (e *engine) write(w *scale.Write) command {
	base := e.base(w.Key.Partition)
	remains, channel := "1", ""
	if w.Value == nil {
		remains = ""
	}
	if w.Notify != "" {
		channel = e.prefix + w.Notify
	}
	keys := []string{e.entry(w.Key)}
	if w.Index != "" {
		keys = append(keys, base+"i:"+w.Index)
	}
	if w.Limit != "" {
		keys = append(keys, base+"l:"+w.Limit)
	}
	return command{&putScript, keys, []string{
		base, w.Key.Name, number(w.Prev), remains, rueidis.BinaryString(w.Value), w.Owner, millis(w.TTL), micros(w.DueIn), w.Index,
		w.Limit, strconv.Itoa(w.Max), channel, w.Key.Partition + " " + w.Key.Name,
	}}
}

// ClaimDue implements scale.Store.
func (e *engine) ClaimDue(ctx context.Context, part, index, owner string, max int, lease time.Duration) ([]scale.Entry, error) {
	base := e.base(part)
	c := command{&dueScript, []string{base + "i:" + index},
		[]string{base, index, owner, strconv.Itoa(min(max, maxDue)), micros(lease), strconv.Itoa(scale.MaxValue)}}
	for {
		r := e.one(ctx, &c)
		if r.err != nil {
			return nil, r.err
		}
		more, due, err := dues(r.answer, part, owner)
		if err != nil || !more {
			return due, err
		}
	}
}

// maxDue is how many names of an index a script looks at, which keeps others
// waiting for a millisecond.
const maxDue = 200

// boxKeys are the keys of a box and of its messages.
func (e *engine) boxKeys(box string) []string {
	base := e.base(box)
	return []string{base + "b", base + "s"}
}

// Append implements scale.Store.
func (e *engine) Append(ctx context.Context, p scale.AppendOp) (scale.Rev, string, error) {
	refuse := "0"
	if p.Refuse {
		refuse = "1"
	}
	r := e.one(ctx, &command{&appendScript, e.boxKeys(p.Box),
		[]string{rueidis.BinaryString(p.Data), strconv.Itoa(p.Keep), millis(p.TTL), refuse, strconv.Itoa(p.Recent), e.prefix, p.Box, p.From, number(p.After)}})
	if r.err != nil {
		return 0, "", r.err
	}
	if len(r.answer) != 2 {
		return 0, "", odd(fmt.Errorf("%d values", len(r.answer)))
	}
	if text, err := r.answer[0].ToString(); err == nil && text == "-1" {
		return 0, "", scale.ErrNotReader
	}
	rev, err := parseRev(&r.answer[0])
	if err != nil {
		return 0, "", err
	}
	if rev == 0 {
		return 0, "", scale.ErrFull
	}
	reader, err := r.answer[1].ToString()
	if err != nil {
		return 0, "", odd(err)
	}
	return rev, reader, nil
}

// tell publishes text for a subject, by the machine that has a box.
func (e *engine) tell(ctx context.Context, box, subject, text string) error {
	return e.one(ctx, &command{&appendScript, e.boxKeys(box), []string{text, "0", "0", "0", "0", e.prefix, subject, "", "0"}}).err
}

// Read implements scale.Store.
func (e *engine) Read(ctx context.Context, box string, after scale.Rev, reader string) ([]scale.Message, string, error) {
	r := e.one(ctx, &command{&readScript, e.boxKeys(box), []string{number(after), reader, strconv.Itoa(scale.MaxValue)}})
	if r.err != nil {
		return nil, "", r.err
	}
	answer := r.answer
	if len(answer)%3 != 2 {
		return nil, "", odd(fmt.Errorf("%d values", len(answer)))
	}
	may, err := answer[0].AsInt64()
	if err != nil {
		return nil, "", odd(err)
	}
	before, err := answer[1].ToString()
	if err != nil {
		return nil, "", odd(err)
	}
	if may == 0 {
		return nil, before, scale.ErrNotReader
	}
	var messages []scale.Message
	for rest := answer[2:]; len(rest) > 0; rest = rest[3:] {
		m, err := messageOf(rest)
		if err != nil {
			return nil, "", err
		}
		messages = append(messages, m)
	}
	return messages, before, nil
}

// Take implements scale.Store.
func (e *engine) Take(ctx context.Context, t scale.Take) (found scale.Box, err error) {
	r := e.one(ctx, &command{&takeScript, e.boxKeys(t.Box), []string{t.From, t.Reader, number(t.After), millis(t.TTL), e.prefix, t.Box, t.Resume}})
	if r.err != nil {
		return found, r.err
	}
	if len(r.answer) != 5 {
		return found, odd(fmt.Errorf("%d values", len(r.answer)))
	}
	if found.Resumed, err = r.answer[4].ToString(); err != nil {
		return found, odd(err)
	}
	if found.Reader, err = r.answer[1].ToString(); err != nil {
		return found, odd(err)
	}
	if found.Given, err = parseRev(&r.answer[2]); err != nil {
		return found, err
	}
	if found.Last, err = parseRev(&r.answer[3]); err != nil {
		return found, err
	}
	done, err := r.answer[0].AsInt64()
	if err != nil {
		return found, odd(err)
	}
	if done == 0 {
		return found, scale.ErrNotReader
	}
	return found, nil
}

// Watch implements scale.Store.
func (e *engine) Watch(fn func(subject string, m scale.Message), gap func()) scale.Watcher {
	w := &watcher{engine: e, fn: fn, gap: gap, todo: make(chan struct{}, 1), wake: make(chan struct{}, 1), subjects: map[string]*subject{}}
	w.ctx, w.cancel = context.WithCancel(e.ctx)
	if e.cluster {
		w.echo = newEcho(w)
		w.subjects[w.echo.subject] = &subject{count: 1, ready: make(chan struct{})}
		w.changed = []string{w.echo.subject}
		w.ended.Go(func() { w.echo.run(w.ctx) })
	}
	e.mu.Lock()
	e.watchers[w] = true
	e.mu.Unlock()
	w.ended.Go(w.connect)
	w.ended.Go(w.call)
	return w
}

// gaps makes all Watchers call gap after they reconnect.
func (e *engine) gaps() {
	e.mu.Lock()
	defer e.mu.Unlock()
	for w := range e.watchers {
		w.suspect(false)
	}
}

// breaker returns the one for a key.
func (e *engine) breaker(key string) *breaker {
	if !e.cluster {
		return &e.ranges[0]
	}
	return &e.ranges[rangeOf(key)]
}

// note notes whether a call for a key was answered.
func (e *engine) note(key string, answered bool) {
	if answered && e.givenUp.Load() > 0 {
		e.givenUp.Store(0) // answers come in the order of calls
	}
	b := e.breaker(key)
	if !b.note(answered) {
		return
	}
	safely.Log(e.log.Warn().Str("prefix", e.prefix), "the engine does not answer")
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.closed {
		e.probes.Go(func() { e.probe(b, key) })
	}
}

// probe asks for a key until there is a reply. The Watchers may have missed earlier
// messages.
func (e *engine) probe(b *breaker, key string) {
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	for {
		select {
		case <-e.ctx.Done():
			return
		case <-ticker.C:
		}
		ctx, cancel := e.deadline(e.ctx)
		err := e.client.Do(ctx, e.client.B().Exists().Key(key).Build()).Error()
		cancel()
		if answers(err) {
			e.givenUp.Store(0)
			b.close()
			safely.Log(e.log.Info().Str("prefix", e.prefix), "the engine answers again")
			e.gaps()
			return
		}
	}
}
