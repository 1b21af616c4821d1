package conn

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/call"
	"github.com/talaria-go/mcp/internal/post"
	"github.com/talaria-go/mcp/internal/principal"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/streamable"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/session"
)

// The kinds of messages between replicas. The bodies are letters.
const (
	letterEnded      = "ended"      // to all: a session has ended
	letterSubscribed = "subscribed" // to all: a session has other subscriptions
	letterCancel     = "cancel"     // to all: a client cancels a request, which is under way at some replica
	letterAnswer     = "answer"     // to the one that asked: the response to a question
	letterPosted     = "posted"     // to the one that has a stream of HTTP+SSE: a message for it
	letterTaken      = "taken"      // back: what has become of that
)

// letter is what one replica tells another of a session.
type letter struct {
	Session string            `json:"session"`
	Message *protocol.Message `json:"message,omitempty"`
}

// posted is a message for a stream of HTTP+SSE at another replica, and what of
// the request that brought it handlers see there: this, a newline, and the
// message.
type posted struct {
	Number    uint64          `json:"number"` // of the sender
	Stream    string          `json:"stream"`
	Principal string          `json:"principal,omitempty"`
	Identity  *frame.Identity `json:"identity,omitempty"`
	URL       string          `json:"url"`
	Host      string          `json:"host"`
	Remote    string          `json:"remote"`
	Header    http.Header     `json:"header"`
}

// taken says what has become of a message that was posted.
type taken struct {
	Number uint64        `json:"number"`
	Code   protocol.Code `json:"code,omitempty"` // of the error; 0 if it was taken
	Error  string        `json:"error,omitempty"`
}

const (
	maxHanded = 1<<20 - 4<<10 // bytes of what is handed to another replica
	roomFor   = time.Second   // is waited there for room, as for what comes to it at once
	// takenWithin is waited until it says what has become of it: two replicas may
	// each find by a look alone what the other has sent.
	takenWithin = 11*time.Second + roomFor
)

// postTimeout bounds how long a client waits until a message has been handed to
// another replica.
const postTimeout = 5 * time.Second

// Replicas is a Manager as the other replicas of its server reach it, and it
// them.
type Replicas Manager

// tell tells all other replicas.
func (r *Replicas) tell(kind string, l letter) error {
	body, err := json.Marshal(l)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
	defer cancel()
	return r.Post.Tell(ctx, kind, body)
}

// SessionChanged tells the other replicas that a session has ended, or has other
// subscriptions. One that does not hear of it finds out when the session is used
// there.
func (r *Replicas) SessionChanged(id string, ended bool) {
	kind := letterSubscribed
	if ended {
		kind = letterEnded
	}
	if err := r.tell(kind, letter{Session: id}); err != nil {
		safely.Log(r.Logger.Warn().Err(visible.Error(err)).Str("kind", kind), "the other replicas were not told of a session")
	}
}

// Delivered handles a message of another replica. It does not wait for anything.
func (r *Replicas) Delivered(message post.Message) {
	switch message.Kind {
	case letterPosted:
		r.posted(message)
		return
	case letterTaken:
		r.taken(message)
		return
	}
	var l letter
	if !r.read(message, message.Body, &l) {
		return
	}
	switch message.Kind {
	case letterEnded, letterSubscribed:
		r.Sessions.Changed(l.Session, message.Kind == letterEnded)
	}
	x := r.Sessions.Here(l.Session)
	if x == nil || l.Message == nil {
		return
	}
	switch message.Kind {
	case letterCancel:
		cancelRequest(&x.Inflight, l.Message.Params)
	case letterAnswer:
		x.Pending.Answer(l.Message)
	}
}

// answered takes the response of a client to a question, which another replica
// may have asked. One that nobody waits for is dropped. The fault says that the
// replica that waits could not be reached.
func (r *Replicas) answered(x *session.Session, response *protocol.Message) *protocol.Error {
	if x.Pending.Answer(response) || r.Post == nil {
		return nil
	}
	node, _, ok := strings.Cut(strings.Trim(response.ID.String(), `"`), "-")
	if !ok || node == r.Post.Node() || !post.IsNode(node) {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), postTimeout)
	defer cancel()
	body, err := json.Marshal(letter{x.ID(), response})
	if err == nil {
		err = r.Post.Send(ctx, node, letterAnswer, body)
	}
	switch {
	case err == nil, errors.Is(err, post.ErrNobody):
		return nil
	case errors.Is(err, scale.ErrFull), errors.Is(err, scale.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		return wire.Unavailable("the answer cannot be handed to the replica that asked", err)
	}
	safely.Log(r.Logger.Warn().Err(visible.Error(err)), "an answer did not reach the replica that asked")
	return wire.Refused("too_long", protocol.CodeInvalidRequest, "the answer cannot be handed to the replica that asked: it may have %d bytes", scale.MaxValue/2)
}

// cancelled cancels a request of a session, wherever it is under way.
func (r *Replicas) cancelled(x *session.Session, notification *protocol.Message) {
	id, found := cancelRequest(&x.Inflight, notification.Params)
	if found || id.IsZero() || r.Post == nil {
		return
	}
	// Not as it came: all replicas get it.
	short, err := protocol.NewNotification(notification.Method, map[string]any{"requestId": id, "reason": reasonOf(notification.Params)})
	if err == nil {
		err = r.tell(letterCancel, letter{x.ID(), &short})
	}
	if err != nil {
		safely.Log(r.Logger.Debug().Err(visible.Error(err)), "the other replicas were not told of a cancellation")
	}
}

// reasonOf returns why a client cancels a request, cut for a log.
func reasonOf(params []byte) string {
	var cancelled wire.CancelledParams
	_ = json.Unmarshal(params, &cancelled) // cancelRequest has read it
	return visible.Line(cancelled.Reason, visible.Sentence)
}

// read reads what another replica has sent.
func (r *Replicas) read(message post.Message, text []byte, v any) bool {
	err := json.Unmarshal(text, v)
	if err != nil {
		safely.Log(r.Logger.Error().Err(visible.Error(err)).Str("kind", visible.Line(message.Kind, visible.Name)), "a message of another replica cannot be read")
	}
	return err == nil
}

// handOver gives a message for a stream of HTTP+SSE to the replica that has it.
// nil says that it was taken: as long as that replica has not said so, it may
// refuse it. The values of by's context do not travel, but for who it comes from;
// neither do credentials.
func (r *Replicas) handOver(stream string, by *http.Request, message []byte) *protocol.Error {
	node, _, ok := strings.Cut(stream, ".")
	if !ok || r.Post == nil || len(stream) > 64 || !post.IsNode(node) || node == r.Post.Node() {
		return streamable.StreamNotFound()
	}
	p := posted{
		Number: r.numbers.Add(1), Stream: stream, Principal: principal.Of(by.Context()), Identity: frame.Internal(call.Private{}).Identity(by.Context()),
		URL: by.URL.String(), Host: by.Host, Remote: by.RemoteAddr, Header: by.Header.Clone(),
	}
	for _, name := range []string{"Authorization", "Proxy-Authorization", "Cookie", "Dpop"} {
		p.Header.Del(name)
	}
	body, err := json.Marshal(p)
	if err != nil {
		return &protocol.Error{Code: protocol.CodeInternal, Message: "the message cannot be handed to the replica that has the stream", Err: err}
	}
	if body = append(append(body, '\n'), message...); len(body) > maxHanded {
		return wire.Refused("too_long", protocol.CodeInvalidRequest, "the message has to be handed to the replica that has the stream, and with the headers it has %d bytes; the limit is %d", len(body), maxHanded)
	}
	reply := make(chan *protocol.Error, 1)
	r.handed.Store(p.Number, reply)
	defer r.handed.Delete(p.Number)
	ctx, cancel := context.WithTimeout(by.Context(), takenWithin)
	defer cancel()
	sending, sent := context.WithTimeout(ctx, postTimeout)
	err = r.Post.Send(sending, node, letterPosted, body)
	sent()
	switch {
	case errors.Is(err, post.ErrUnsure), errors.Is(err, post.ErrSilent):
		return notSure(err)
	case errors.Is(err, post.ErrNobody):
		return streamable.StreamNotFound()
	case err != nil:
		return wire.Unavailable("the message cannot be handed to the replica that has the stream", err)
	}
	select {
	case fault := <-reply:
		return fault
	case <-ctx.Done():
		return notSure(ctx.Err())
	}
}

// notSure is the error of a message that may have been taken, or may be yet.
func notSure(err error) *protocol.Error {
	return &protocol.Error{
		Code: protocol.CodeInternal, Message: "whether the replica that has the stream gets the message is not known",
		Data: map[string]string{"executed": "unknown"}, Err: err,
	}
}

// posted takes a message that another replica has got for a stream here. The
// client must be the one that opened the stream, as for what comes here at once.
func (r *Replicas) posted(message post.Message) {
	header, text, _ := bytes.Cut(message.Body, []byte("\n"))
	var p posted
	if !r.read(message, header, &p) {
		return
	}
	take := func(time.Duration) *protocol.Error { return streamable.StreamNotFound() }
	if stream, ok := r.streams.Load(p.Stream); ok {
		take = func(wait time.Duration) *protocol.Error {
			return stream.(streamable.Posted).Take(p.request(), text, wait)
		}
	}
	fault := take(0)
	task, ok := r.Running.Begin(context.Background())
	if !ok {
		return // the other replica sees when this one is gone
	}
	go func() {
		defer task.End()
		if fault != nil && fault.Code == protocol.CodeBusy { // its client waits, and sends nothing that would overtake this
			fault = take(roomFor)
		}
		answer := taken{Number: p.Number}
		if fault != nil {
			answer.Code, answer.Error = fault.Code, fault.Message
		}
		body, err := json.Marshal(answer)
		if err == nil {
			ctx, cancel := context.WithTimeout(task, postTimeout)
			defer cancel()
			err = r.Post.Reply(ctx, message.From, letterTaken, body)
		}
		if err != nil {
			safely.Log(r.Logger.Debug().Err(visible.Error(err)), "a replica was not told what has become of its message")
		}
	}()
}

// request returns the request that has brought p, as far as it could travel.
func (p *posted) request() *http.Request {
	by := &http.Request{Method: http.MethodPost, URL: &url.URL{}, Host: p.Host, RemoteAddr: p.Remote, Header: p.Header, Body: http.NoBody, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1}
	if asked, err := url.Parse(p.URL); err == nil {
		by.URL = asked
	}
	if by.Header == nil {
		by.Header = http.Header{}
	}
	ctx := principal.With(context.Background(), p.Principal)
	if p.Identity != nil {
		ctx = principal.WithGrant(ctx, &principal.Grant{Name: p.Principal, Identity: p.Identity})
	}
	return by.WithContext(ctx)
}

// taken hands over what has become of a message that was posted here.
func (r *Replicas) taken(message post.Message) {
	var t taken
	if !r.read(message, message.Body, &t) {
		return
	}
	reply, ok := r.handed.LoadAndDelete(t.Number)
	if !ok {
		return // nobody waits any more
	}
	var fault *protocol.Error
	if t.Code != 0 {
		fault = &protocol.Error{Code: t.Code, Message: t.Error}
	}
	reply.(chan *protocol.Error) <- fault
}
