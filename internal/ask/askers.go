package ask

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/talaria-go/mcp/internal/core"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/seal"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
)

// The defaults of AskersConfig.
const (
	DefaultExpiry    = 15 * time.Minute
	DefaultMaxRounds = 10
	DefaultMaxState  = 32 << 10
	DefaultMaxOpen   = 1000
)

// AskersConfig bounds the rounds of a request.
type AskersConfig struct {
	Expiry    time.Duration // how long a client may take to answer; 0 means DefaultExpiry
	MaxRounds int           // how often one request may be asked; 0 means DefaultMaxRounds
	MaxState  int           // bytes of a sealed state; 0 means DefaultMaxState
	MaxOpen   int           // unanswered questions of a legacy session; 0 means DefaultMaxOpen
}

// Askers makes the askers of requests. It does not change after New and is safe
// for concurrent use.
type Askers struct {
	sealer *seal.Sealer
	config AskersConfig
}

// NewAskers returns Askers that seal with sealer, which is one for seal.Rounds.
func NewAskers(sealer *seal.Sealer, config AskersConfig) *Askers {
	if config.Expiry <= 0 {
		config.Expiry = DefaultExpiry
	}
	if config.MaxRounds <= 0 {
		config.MaxRounds = DefaultMaxRounds
	}
	if config.MaxState <= 0 {
		config.MaxState = DefaultMaxState
	}
	return &Askers{sealer, config}
}

// Asker implements core.Askers. It sends nothing: questions are in the
// response.
func (a *Askers) Asker(of core.AskerRequest) core.Asker {
	return &request{asker: a, of: of}
}

// state has the answers and values of a request so far, as sealed JSON. The
// names of its members are short, because it counts against AskersConfig.MaxState and
// travels in both directions in each round.
type state struct {
	Expires int64                      `json:"e"` // Unix seconds
	Round   int                        `json:"r"`
	Asked   map[string]wire.Digest     `json:"q,omitempty"` // in the round that the client answers next
	Answers map[string]answer          `json:"a,omitempty"`
	Kept    map[string]json.RawMessage `json:"k,omitempty"`
}

// answer is the client's answer to one question.
type answer struct {
	To   wire.Digest     `json:"q"`
	Text json.RawMessage `json:"v"`
}

// request is the core.Asker of one request. It opens the client's state when
// it is first needed, since most requests have none. mu guards all fields below
// it, as handlers may ask from several goroutines.
type request struct {
	asker *Askers
	of    core.AskerRequest

	mu     sync.Mutex
	opened bool
	fault  error
	state  state
	ahead  map[string]json.RawMessage // answers of a first round
	asked  []protocol.InputRequest
}

var _ core.Asker = (*request)(nil)

// asking are the methods whose answer may be a question.
var asking = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// Ask implements core.Asker. It returns the answers if the client has sent all
// of them. Otherwise it records the questions without one for Required and
// returns wire.ErrInputRequired, which the handler has to return. It never
// waits.
func (r *request) Ask(_ context.Context, questions []protocol.InputRequest) ([]json.RawMessage, error) {
	if !asking[r.of.Method] {
		return nil, fmt.Errorf("mcp: revision %s lets only tools/call, prompts/get and resources/read ask the client, not %s", r.of.Revision, r.of.Method)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return nil, err
	}
	answers := make([]json.RawMessage, len(questions))
	missing := false
	for i, q := range questions {
		if text, ok := r.answer(q); ok {
			answers[i] = text
			continue
		}
		missing = true
		r.ask(q)
	}
	if missing {
		return nil, wire.ErrInputRequired
	}
	return answers, nil
}

// answer returns the client's answer to a question. An answer to a different
// question under the same key does not count: the user has not seen this one.
// An answer that a client gave ahead of its first round is taken for one to
// this question, as nothing tells which one it was meant for. r.mu is held.
func (r *request) answer(q protocol.InputRequest) (json.RawMessage, bool) {
	own := wire.DigestOf(q)
	if text, ok := r.ahead[q.Key]; ok {
		r.keep(q.Key, answer{own, text})
	}
	a, ok := r.state.Answers[q.Key]
	return a.Text, ok && a.To == own
}

// keep keeps an answer for the rounds to come: the client sends each only once.
// r.mu is held.
func (r *request) keep(key string, a answer) {
	if r.state.Answers == nil {
		r.state.Answers = make(map[string]answer)
	}
	r.state.Answers[key] = a
}

// ask records a question for the result of this round. Of two with one key the
// first counts: the client can answer a key once. r.mu is held.
func (r *request) ask(q protocol.InputRequest) {
	for _, before := range r.asked {
		if before.Key == q.Key {
			return
		}
	}
	r.asked = append(r.asked, q)
}

// Unanswered returns the keys of the questions of this round.
func (r *request) Unanswered() (keys []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, q := range r.asked {
		keys = append(keys, q.Key)
	}
	return keys
}

// Recall implements core.Asker. It returns what Keep was given in this round
// or one before; ok is false if that is nothing.
func (r *request) Recall(key string) (json.RawMessage, bool, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.open(); err != nil {
		return nil, false, err
	}
	value, ok := r.state.Kept[key]
	return value, ok, nil
}

// Keep implements core.Asker. The value reaches the next round only if this
// one ends with a question. Its size is checked then, by Required.
func (r *request) Keep(_ context.Context, key string, value json.RawMessage) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.state.Kept == nil {
		r.state.Kept = make(map[string]json.RawMessage)
	}
	r.state.Kept[key] = value
	return nil
}

// Known implements core.Asker. A state that cannot be opened knows nothing.
func (r *request) Known() core.Recorded {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open() != nil {
		return core.Recorded{}
	}
	known := core.Recorded{Kept: maps.Clone(r.state.Kept), Asked: make(map[string]wire.Digest), Answers: make(map[string]json.RawMessage)}
	for key, a := range r.state.Answers {
		known.Asked[key], known.Answers[key] = a.To, a.Text
	}
	return known
}

// Required implements core.Asker. It is called once, when the handler has
// returned ErrInputRequired, and makes the result with the questions and the
// sealed state. It fails if nothing was asked, or a bound of the AskersConfig is
// reached.
func (r *request) Required() (protocol.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.asked) == 0 {
		return nil, fmt.Errorf("mcp: the handler of %s returned ErrInputRequired but asked nothing", r.of.Method)
	}
	if r.state.Round++; r.state.Round > r.asker.config.MaxRounds {
		return nil, fmt.Errorf("mcp: the request was asked in %d rounds, the limit; a question that changes each time is asked each time: keep its parts with Once", r.asker.config.MaxRounds)
	}
	r.state.Asked = make(map[string]wire.Digest, len(r.asked))
	for _, q := range r.asked {
		r.state.Asked[q.Key] = wire.DigestOf(q)
	}
	r.state.Expires = time.Now().Add(r.asker.config.Expiry).Unix()
	text, err := json.Marshal(r.state)
	if err != nil {
		return nil, err
	}
	sealed := base64.RawURLEncoding.EncodeToString(r.asker.sealer.Seal(nil, text, r.binding()))
	if len(sealed) > r.asker.config.MaxState {
		return nil, fmt.Errorf("mcp: the request's state has %d bytes, over the limit of %d: ask for less, keep less with Once, or raise Limits.RequestState", len(sealed), r.asker.config.MaxState)
	}
	return &protocol.InputRequiredResult{Requests: r.asked, State: sealed}, nil
}

// open reads what the client sent back. It does so once: later calls return the
// same error, so that a request whose state was refused cannot continue as if
// it were a first round. r.mu is held.
func (r *request) open() error {
	if r.opened {
		return r.fault
	}
	r.opened = true
	params := r.of.Params
	if params.RequestState != "" {
		if r.fault = r.openState(params.RequestState); r.fault != nil {
			return r.fault
		}
	}
	if params.InputResponses != nil {
		r.fault = r.take(params.InputResponses)
	}
	return r.fault
}

// take keeps the answers to what the round before has asked. The rest is ignored
// (Error Handling in basic/patterns/mrtr of 2026-07-28): an answer is given once,
// and to the question that the user has seen. A first round has none before it; a
// client that answers ahead there starts again, and undoes nothing.
func (r *request) take(text []byte) error {
	var responses map[string]json.RawMessage
	if err := jsonx.Unmarshal(text, &responses); err != nil {
		return protocol.Errorf(protocol.CodeInvalidParams, "params.inputResponses: %w", err)
	}
	if r.state.Round == 0 {
		r.ahead = responses
		return nil
	}
	for key, to := range r.state.Asked {
		if response, ok := responses[key]; ok {
			r.keep(key, answer{to, response})
		}
	}
	return nil
}

// openState checks the state that came back and makes it that of r. Its size is
// checked before anything is decoded. r.mu is held.
func (r *request) openState(sealed string) error {
	if len(sealed) > r.asker.config.MaxState {
		return refused("it is larger than the limit of %d bytes", r.asker.config.MaxState)
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(sealed)
	if err != nil {
		return refused("%w", errNotOurs)
	}
	text, _, err := r.asker.sealer.Open(raw, r.binding())
	if err != nil {
		return refused("%w", errNotOurs)
	}
	if err := json.Unmarshal(text, &r.state); err != nil {
		return refused("%w", err)
	}
	if time.Now().Unix() >= r.state.Expires {
		r.state = state{}
		return refused("it has expired: send the request again without it")
	}
	return nil
}

// errNotOurs is the error of a state that cannot be opened: it is not base64,
// was changed, was sealed with a key that the server no longer has, or belongs
// to another request. The client does not learn which.
var errNotOurs = errors.New("it was not made by this server, or for another request")

// refused returns the error of a request whose state cannot be used, -32602.
func refused(format string, args ...any) error {
	return protocol.Errorf(protocol.CodeInvalidParams, "params.requestState is refused: "+format, args...)
}

// binding is what a state belongs to: the principal, the method, the name and
// the arguments of its request, as the client has sent it: they are the same in
// every round, and for every question.
func (r *request) binding() []byte {
	h := sha256.New()
	wire.WriteParts(h, []byte(core.Principal(r.of.Context)), []byte(r.of.Method), []byte(r.of.Params.Name), canonical(r.of.Params.Arguments))
	return h.Sum(nil)
}

// canonical returns JSON text with its members sorted and its space removed,
// since a client may write the same arguments another way.
func canonical(text []byte) []byte {
	if len(text) == 0 {
		return []byte("{}")
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if d.Decode(&value) != nil {
		return text
	}
	sorted, err := json.Marshal(value)
	if err != nil {
		return text
	}
	return sorted
}
