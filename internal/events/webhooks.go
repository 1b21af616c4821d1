package events

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/pause"
	"github.com/talaria-go/mcp/internal/replica"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
)

// Numbers of webhook subscriptions. Those of a principal are in one part of the store.
const (
	DefaultWebhooks = 10_000 // that a replica owns, beyond which it makes no further ones

	webhookSlots   = 4
	perPrincipal   = 100
	minTTL         = 5 * time.Minute
	usualTTL       = time.Hour
	defaultTTL     = 24 * time.Hour   // the longest, with a store that replicas share
	aloneTTL       = 15 * time.Minute // the longest without
	beyondTTL      = time.Hour        // how long the store keeps a subscription after its end
	twoSecrets     = 5 * time.Minute  // how long an earlier secret signs with the new one
	agreedTTL      = 24 * time.Hour   // how long the agreement of an endpoint counts
	agreedMost     = 1_000            // endpoints of a principal that have agreed
	failedTTL      = 30 * time.Second // how long a failed verification counts
	pendingTTL     = 15 * time.Second // how long a verification may take
	pendingLook    = 250 * time.Millisecond
	verifyPlaces   = 10               // verifications of a principal that have not succeeded, within
	verifyTime     = 10 * time.Minute // this time
	maxClaims      = 16 << 10         // bytes of an identity
	challengeBytes = 24
	subscribeTries = 10 // writes that other replicas come before
)

// Words for what became of deliveries and subscriptions, for observers.
const (
	droppedGone      = "gone"
	droppedTooLarge  = "too_large"
	droppedRefused   = "refused"
	droppedRetries   = "retries"
	droppedUndecided = "undecided"
	droppedExpired   = "expired"

	endedUnsubscribed = "unsubscribed"
	endedExpired      = "expired"
	endedForbidden    = "forbidden"
	endedRemoved      = "removed"
)

// Verdict says whether a subscription gets an event.
type Verdict int

const (
	Unasked   Verdict = iota // it was not asked
	Later                    // it cannot be known now
	No                       // it does not
	Yes                      // it does
	Forbidden                // the principal may not have events of this type any more
	Unknown                  // this replica does not have the type, or not with these arguments
)

// Ask is the question whether a subscription gets an event. Package mcp answers it.
type Ask struct {
	Of    *Subscription
	Event []byte

	Verdict Verdict
}

// Observed is an event for observers.
type Observed struct {
	Kind, Reason string
	ID           string // of the subscription
	Name         string // of the event type
	Duration     time.Duration
}

// WebhookConfig says how webhooks work.
type WebhookConfig struct {
	Logs      *Logs
	Shared    bool   // the store of Logs is that of several replicas
	Replica   string // the id of this one
	Seal      *seal.Sealer
	Max       int           // subscriptions of this replica
	TTL       time.Duration // the longest grant; 0 is the default
	Loopback  bool          // allow loopback addresses, and http to them
	Transport http.RoundTripper
	// Identity decodes an identity, for Subscription.Prepared.
	Identity func(claims json.RawMessage) any
	// Ask answers questions, in turn, those of one subscription up to the first answer that
	// is not No. The first that takes longer than AskTimeout is the last: its answer is Later.
	Ask    func(ctx context.Context, asks []*Ask)
	Tell   func(Observed)
	Failed func(error) // reports that the store does not answer
	// Waits logs why subscribers of a type do not receive an event now; it limits itself.
	Waits func(name string, err error)
}

// Subscription is a webhook subscription as the store has it, where its members have short
// names. It is immutable: a change makes a new value.
type Subscription struct {
	ID        string          `json:"-"` // the name of its entry
	Principal string          `json:"p"`
	Identity  json.RawMessage `json:"i,omitempty"`
	Revision  string          `json:"r"`
	Declared  bool            `json:"d,omitempty"` // the client has declared the extension, and gets the codes of the specification
	Name      string          `json:"n"`
	Arguments json.RawMessage `json:"a"`
	URL       string          `json:"u"`
	Secret    []byte          `json:"s"`
	Earlier   []byte          `json:"b,omitempty"` // the secret before this one
	Until     time.Time       `json:"t,omitzero"`  // when it stops to sign
	Expires   time.Time       `json:"x"`
	Ended     string          `json:"e,omitempty"` // why; only the message that says so is still to be sent

	At        string    `json:"c"`           // the cursor up to which all is done
	Gap       bool      `json:"g,omitempty"` // a message about a gap is to be sent
	Delivered time.Time `json:"l,omitzero"`  // last
	LastError string    `json:"f,omitempty"`

	Prepared any `json:"-"` // what WebhookConfig.Identity has returned
}

// keys returns the secrets that sign now.
func (s *Subscription) keys(now time.Time) [][]byte {
	if s.Earlier != nil && now.Before(s.Until) {
		return [][]byte{s.Secret, s.Earlier}
	}
	return [][]byte{s.Secret}
}

// Webhooks are the webhook subscriptions of a server. They are safe for concurrent use.
// The goroutines begin with Start, or with the first subscription, and end with Close. mu
// guards the fields below it, and is not held while the store, users' code or an
// endpoint is asked.
type Webhooks struct {
	config WebhookConfig
	store  scale.Store
	sender *sender
	health replica.Health
	ctx    context.Context
	cancel context.CancelFunc
	wake   chan struct{}   // of the loop that looks after subscriptions; has room for one
	left   <-chan struct{} // closed when this replica leaves
	going  context.Context // ends then
	leave  context.CancelFunc
	ended  sync.WaitGroup

	mu        sync.Mutex
	started   bool
	closed    bool // no further goroutine begins
	draining  bool
	own       map[scale.Key]*subscriber
	users     map[string]*user // of own, by their identities
	feeds     map[string]*feed // by name of the type
	changed   map[scale.Key]scale.Rev
	gone      map[string]bool // types that were removed
	unclaimed bool            // there may be subscriptions that another replica has given away
}

// NewWebhooks returns Webhooks without subscriptions.
func NewWebhooks(config WebhookConfig) *Webhooks {
	if config.TTL == 0 {
		config.TTL = aloneTTL
		if config.Shared {
			config.TTL = defaultTTL
		}
	}
	w := &Webhooks{
		config: config, store: config.Logs.config.Store, sender: newSender(config.Loopback, config.Transport),
		health: replica.Health{Lease: trusted}, wake: make(chan struct{}, 1),
		own: map[scale.Key]*subscriber{}, users: map[string]*user{}, feeds: map[string]*feed{}, changed: map[scale.Key]scale.Rev{}, gone: map[string]bool{},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	w.going, w.leave = context.WithCancel(context.Background())
	w.left = w.going.Done()
	return w
}

// Request is a request to subscribe.
type Request struct {
	Subscription // without ID, Expires and what deliveries change
	Cursor       string
	MaxAge       time.Duration // less than 0 for none
	TTL          time.Duration // 0 for none
}

// digest returns the digest of parts.
func digest(parts ...string) string {
	var h hash.Hash = sha256.New()
	for _, part := range parts {
		wire.WriteParts(h, []byte(part))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:digestSize])
}

// partitionOf returns the part of the store that has what belongs to a principal.
func partitionOf(principal string) string {
	sum := sha256.Sum256([]byte(principal))
	return replica.Partition("webhook", int(sum[0])%webhookSlots)
}

// keyOf returns where a subscription is.
func keyOf(s *Subscription) scale.Key {
	return scale.Key{Partition: partitionOf(s.Principal), Name: "sub_" + digest(s.Principal, s.URL, s.Name, string(s.Arguments))}
}

// Subscribe makes a subscription, or refreshes it. Errors are for the client, with codes
// of the specification; those of the store wrap its own.
func (w *Webhooks) Subscribe(ctx context.Context, r Request) (wire.EventSubscription, error) {
	var none wire.EventSubscription
	if len(r.Identity) > maxClaims {
		return none, exhausted(fmt.Sprintf("the identity has %d bytes; a webhook subscription keeps at most %d", len(r.Identity), maxClaims), "identity", maxClaims)
	}
	u, err := url.Parse(r.URL)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || u.Scheme != "https" && (u.Scheme != "http" || !w.config.Loopback) {
		return none, protocol.Errorf(protocol.CodeInvalidParams, "params.delivery.url must be an absolute https URL without user and fragment")
	}
	if w.sender.outbound.Check(u) != nil {
		if u.Scheme != "https" {
			return none, protocol.Errorf(protocol.CodeInvalidParams, "params.delivery.url must be an https URL")
		}
		return none, callback(wire.ReasonRefused)
	}
	if err := w.Start(); err != nil {
		return none, err
	}
	key := keyOf(&r.Subscription)
	r.ID = key.Name
	if err := w.verify(ctx, &r.Subscription); err != nil {
		return none, err
	}
	if r.TTL == 0 {
		r.TTL = usualTTL
	}
	r.Expires = time.Now().Add(min(max(r.TTL, minTTL), w.config.TTL)).UTC().Truncate(time.Second)
	for range subscribeTries {
		found, err := w.get(ctx, key)
		if err != nil {
			return none, err
		}
		if old := w.read(found); old != nil && old.Ended == "" && time.Now().Before(old.Expires) {
			if granted, done, err := w.refresh(ctx, key, found, old, &r); done || err != nil {
				return granted, err
			}
			continue
		}
		if granted, done, err := w.create(ctx, key, found.Rev, &r); done || err != nil {
			return granted, err
		}
	}
	return none, fmt.Errorf("events: other replicas change the subscription: %w", scale.ErrUnavailable)
}

// refresh extends a subscription. Its owner and its position stay. done is false if
// another write came before.
func (w *Webhooks) refresh(ctx context.Context, key scale.Key, found scale.Entry, old *Subscription, r *Request) (granted wire.EventSubscription, done bool, err error) {
	now := time.Now()
	s := *old
	s.Expires, s.Identity, s.Revision, s.Declared = r.Expires, r.Identity, r.Revision, r.Declared
	if !bytes.Equal(old.Secret, r.Secret) {
		s.Secret, s.Earlier, s.Until = r.Secret, old.Secret, now.Add(twoSecrets)
	}
	written, err := w.put(ctx, scale.Write{Key: key, Prev: found.Rev, Value: w.encode(&s, key), Owner: found.Owner, TTL: s.kept(), Notify: key.Partition})
	if err != nil || errors.Is(written.Err, scale.ErrChanged) {
		return granted, false, err
	}
	waits := false // events follow that this replica has in memory
	w.mu.Lock()
	if mine := w.own[key]; mine != nil && found.Owner == w.config.Replica {
		w.adopt(mine, &s, written.Rev)
		s.At = cursorAt(mine.birth, mine.at)
		waits = mine.at < mine.feed.tail.to
	}
	w.mu.Unlock()
	granted = wire.EventSubscription{ID: s.ID, RefreshBefore: s.Expires, Cursor: s.At, Status: &wire.DeliveryStatus{Active: true}}
	if !s.Delivered.IsZero() {
		granted.Status.LastDeliveryAt = &s.Delivered
	}
	if s.LastError != "" {
		granted.Status.LastError = &s.LastError
	}
	if !waits {
		granted.Cursor = w.config.Logs.quiet(ctx, s.Name, s.At)
	}
	return granted, true, nil
}

// create makes a subscription that this replica owns. done is false if another write came
// before.
func (w *Webhooks) create(ctx context.Context, key scale.Key, prev scale.Rev, r *Request) (granted wire.EventSubscription, done bool, err error) {
	w.mu.Lock()
	full, leaving := len(w.own) >= w.config.Max, w.leaves()
	w.mu.Unlock()
	if full {
		return granted, false, exhausted(fmt.Sprintf("the server has %d webhook subscriptions, which is the limit", w.config.Max), "webhooks", w.config.Max)
	}
	if leaving && !w.config.Shared {
		return granted, false, protocol.Errorf(protocol.CodeBusy, "the server shuts down")
	}
	page, err := w.config.Logs.Read(ctx, r.Name, r.Cursor, r.MaxAge)
	if err != nil {
		return granted, false, err
	}
	s := r.Subscription
	s.At = page.From
	write := scale.Write{
		Key: key, Prev: prev, Value: w.encode(&s, key), Owner: w.config.Replica, TTL: s.kept(),
		Limit: "s" + digest(s.Principal), Max: perPrincipal, Notify: key.Partition,
	}
	if w.config.Shared {
		write.DueIn, write.Index = lease, leased
		if leaving {
			write.Owner, write.DueIn, write.Index = "", time.Millisecond, offered
		}
	}
	began := time.Now()
	written, err := w.put(ctx, write)
	switch {
	case err != nil || errors.Is(written.Err, scale.ErrChanged):
		return granted, false, err
	case errors.Is(written.Err, scale.ErrFull):
		return granted, false, exhausted(fmt.Sprintf("this user has %d webhook subscriptions, which is the limit", perPrincipal), "subscriptions", perPrincipal)
	}
	w.tell("webhook.opened", "", &s, 0)
	w.forgetKey(key) // one that has ended, with its position and its last message
	if !leaving {
		w.enter(key, &s, written.Rev, began)
	}
	return wire.EventSubscription{ID: s.ID, RefreshBefore: s.Expires, Cursor: s.At, Truncated: page.Truncated}, true, nil
}

// Unsubscribe ends a subscription. It reports whether there was one.
func (w *Webhooks) Unsubscribe(ctx context.Context, s *Subscription) (bool, error) {
	key := keyOf(s)
	for range subscribeTries {
		found, err := w.get(ctx, key)
		if err != nil || found.Rev == 0 {
			return false, err
		}
		old := w.read(found)
		written, err := w.put(ctx, scale.Write{Key: key, Prev: found.Rev, Notify: key.Partition})
		if err != nil {
			return false, err
		}
		if written.Err == nil {
			w.forgetKey(key)
			if old == nil || old.Ended != "" || time.Now().After(old.Expires) {
				return false, nil
			}
			w.tell("webhook.ended", endedUnsubscribed, old, 0)
			return true, nil
		}
	}
	return false, fmt.Errorf("events: other replicas change the subscription: %w", scale.ErrUnavailable)
}

// The states of an endpoint in the store.
const (
	endpointPending = "pending"
	endpointAgreed  = "agreed"
	endpointFailed  = "failed " // and the reason
)

// verify asks an endpoint whether it agrees to deliveries, unless its answer is known.
func (w *Webhooks) verify(ctx context.Context, s *Subscription) error {
	key := scale.Key{Partition: partitionOf(s.Principal), Name: "v" + digest(s.Principal, s.URL)}
	binding := seal.Binding("endpoint", key.Name)
	for {
		found, err := w.get(ctx, key)
		if err != nil {
			return err
		}
		if found.Rev != 0 {
			state, _, err := w.config.Seal.Open(found.Value, binding)
			switch reason, failed := bytes.CutPrefix(state, []byte(endpointFailed)); {
			case err != nil: // under a key that has gone: it is asked again
			case string(state) == endpointAgreed:
				return nil
			case failed:
				return callback(string(reason))
			default:
				if err := pause.For(ctx, pendingLook); err != nil {
					return err
				}
				continue
			}
		}
		pending, err := w.put(ctx, scale.Write{
			Key: key, Prev: found.Rev, Value: w.config.Seal.Seal(nil, []byte(endpointPending), binding), TTL: pendingTTL,
			Limit: "v" + digest(s.Principal), Max: agreedMost,
		})
		switch {
		case err != nil:
			return err
		case errors.Is(pending.Err, scale.ErrFull):
			return exhausted(fmt.Sprintf("this user has %d callbacks, which is the limit", agreedMost), "verifications", agreedMost)
		case pending.Err != nil:
			continue // another request asks
		}
		err = w.ask(ctx, s)
		write := scale.Write{Key: key, Prev: pending.Rev} // whether it agrees is not known
		if err == nil {
			write.Value, write.TTL = w.config.Seal.Seal(nil, []byte(endpointAgreed), binding), agreedTTL
		} else if fault, ok := errors.AsType[*protocol.Error](err); ok && fault.Code == wire.CodeEventCallback {
			write.Value, write.TTL = w.config.Seal.Seal(nil, []byte(endpointFailed+fault.Data.(callbackData).Reason), binding), failedTTL
		}
		// A client that gives up must not leave others waiting.
		if _, kept := w.put(context.WithoutCancel(ctx), write); err == nil {
			err = kept
		}
		return err
	}
}

// ask sends a challenge to the endpoint. It takes one of the places of the principal, and
// gives it back if the endpoint agrees.
func (w *Webhooks) ask(ctx context.Context, s *Subscription) error {
	place := scale.Key{Partition: partitionOf(s.Principal), Name: "p" + rand.Text()}
	taken, err := w.put(ctx, scale.Write{Key: place, Value: []byte{}, TTL: verifyTime, Limit: "p" + digest(s.Principal), Max: verifyPlaces})
	if err != nil {
		return err
	}
	if errors.Is(taken.Err, scale.ErrFull) {
		fault := exhausted(fmt.Sprintf("%d callbacks of this user failed lately; try again in %d minutes", verifyPlaces, verifyTime/time.Minute), "verifications", verifyPlaces)
		return fault
	}
	if err := w.sender.turns.take(ctx, s.Principal); err != nil { // nothing was sent
		_, _ = w.put(context.WithoutCancel(ctx), scale.Write{Key: place, Prev: scale.Any})
		return err
	}
	defer w.sender.turns.give(s.Principal)
	var raw [challengeBytes]byte
	_, _ = rand.Read(raw[:]) // never fails since Go 1.24
	challenge := base64.RawURLEncoding.EncodeToString(raw[:])
	body := wire.AppendControl(nil, wire.ControlVerification, "challenge", []byte(`"`+challenge+`"`))
	out, err := w.sender.post(ctx, s, controlID(wire.ControlVerification), body, maxChallenge)
	if err != nil {
		return err
	}
	var answer struct{ Challenge string }
	switch {
	case out.status == 0:
		return callback(out.reason)
	case !out.accepted(), jsonx.Unmarshal(out.body, &answer) != nil, subtle.ConstantTimeCompare([]byte(answer.Challenge), []byte(challenge)) != 1:
		return callback(wire.ReasonChallenge)
	}
	_, err = w.put(ctx, scale.Write{Key: place, Prev: scale.Any})
	return err
}

// controlID returns a new webhook-id of a body that is not an event.
func controlID(kind string) string { return "msg_" + kind + "_" + rand.Text() }

// callbackData is the data of an error about an endpoint.
type callbackData struct {
	Reason string `json:"reason"`
}

// callback returns the error for an endpoint that does not take deliveries.
func callback(reason string) *protocol.Error {
	text := "the callback cannot be reached"
	if reason == wire.ReasonChallenge {
		text = "the callback did not return the challenge"
	}
	return &protocol.Error{Code: wire.CodeEventCallback, Message: text, Data: callbackData{reason}}
}

// exhausted returns the error for a limit.
func exhausted(text, limit string, most int) *protocol.Error {
	return &protocol.Error{Code: wire.CodeEventsExhausted, Message: text, Data: struct {
		Limit string `json:"limit"`
		Max   int    `json:"max"`
	}{limit, most}}
}

// kept returns how long the store keeps the subscription.
func (s *Subscription) kept() time.Duration {
	return max(time.Until(s.Expires), 0) + beyondTTL
}

// encode returns the sealed form of a subscription.
func (w *Webhooks) encode(s *Subscription, key scale.Key) []byte {
	text, err := json.Marshal(s)
	if err != nil { // what is in it was JSON
		panic("events: a subscription does not encode: " + err.Error())
	}
	return w.config.Seal.Seal(nil, text, seal.Binding("subscription", key.Name))
}

// read returns the subscription of an entry; nil if there is none, or none that opens.
func (w *Webhooks) read(e scale.Entry) *Subscription {
	if e.Rev == 0 {
		return nil
	}
	var s Subscription
	text, _, err := w.config.Seal.Open(e.Value, seal.Binding("subscription", e.Key.Name))
	if err == nil {
		err = jsonx.Unmarshal(text, &s)
	}
	if err != nil || keyOf(&s) != e.Key {
		w.failed(fmt.Errorf("events: a subscription in the store does not open: %w", errors.Join(err)))
		return nil
	}
	s.ID = e.Key.Name
	return &s
}

// get returns an entry of the store.
func (w *Webhooks) get(ctx context.Context, key scale.Key) (scale.Entry, error) {
	found, err := w.store.Get(ctx, scale.GetOp{Key: key})
	if err != nil {
		return scale.Entry{}, err
	}
	return found[0], found[0].Err
}

// put makes one write. The error is that of the store; Entry.Err has the others.
func (w *Webhooks) put(ctx context.Context, write scale.Write) (scale.Entry, error) {
	written, err := w.store.Put(ctx, write)
	if err != nil {
		return scale.Entry{}, err
	}
	if e := written[0]; e.Err != nil && !errors.Is(e.Err, scale.ErrChanged) && !errors.Is(e.Err, scale.ErrFull) {
		return e, e.Err
	}
	return written[0], nil
}

// failed reports an error of the store.
func (w *Webhooks) failed(err error) {
	if err != nil && w.ctx.Err() == nil && w.config.Failed != nil {
		w.config.Failed(err)
	}
}

// tell tells observers.
func (w *Webhooks) tell(kind, reason string, s *Subscription, took time.Duration) {
	w.config.Tell(Observed{Kind: kind, Reason: reason, ID: s.ID, Name: s.Name, Duration: took})
}
