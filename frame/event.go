package frame

import "time"

// Event is something that belongs to no one message. Kind is one of these, and Why
// a word of a closed list, so that both fit labels:
//
//	session.opened  a legacy session has begun
//	session.ended   it is over: deleted, idle, down or closed
//	stream.opened   a client listens: by a subscription over HTTP, by the GET of a
//	                session, or by a connection over HTTP+SSE, WebSocket or a socket
//	stream.ended    it does no longer, by this stream; Why is the same word
//	task.started    a call has become a task here; Why is replay for one that has
//	                run before
//	task.ended      it has run here: completed, failed or cancelled, or released to
//	                another replica
//	store.failed    Options.Store did not do what it was asked, for sessions, tasks,
//	                post or changes. Beyond 64 in a second, or while 64 others wait
//	                to be reported, the rest is dropped: the log has more
//	draining        Server.Drain, or Shutdown, was called
//	refused         a message, a batch or an HTTP request was refused before an
//	                observer's Begin. What auth.Resource refuses,
//	                auth.Options.Refused tells
//
// Why of refused is one of these, or one of Outcome's words for codes:
//
//	host, origin   that header is not allowed
//	http_method    neither POST nor what needs a session, or that without one
//	content_type   the body is not JSON, or is compressed
//	accept         the client takes no answer of that kind
//	upgrade        no WebSocket could be made of the request
//	too_long       it is longer than Limits.Message, or than replicas hand over
//	incomplete     it broke off, or was not there in time
//	batch          no batches in this revision, too many messages, or one of a kind
//	               that must not be in one
//	no_session     initialize comes first
//	initialized    it has come before
//	era            a modern message on a legacy transport, or the other way round
//	duplicate_id   a request with that id is in progress
//	last_event     a stream cannot resume from that Last-Event-ID
//	draining       a stream, while the server drains
//	down           the server or the connection ends
//
// Fields that do not belong to an event are zero.
type Event struct {
	Kind, Why string
	ID        string        // of the session, the stream or the task; it fits no label
	Name      string        // the tool of a task, or _OTHER, as Frame.Labels tells it
	Frame     *Frame        // of the message that it belongs to, if there is one
	Via       Transport     // how it came, if it did
	Took      time.Duration // of what ended: how long it was there
	Err       error         // the reason, if there is more of it than Why
}
