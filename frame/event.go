package frame

import "time"

// Event is an event that belongs to no single message. Kind is one of the words
// below, and Reason is a word of a closed list, so that both can be labels:
//
//	session.opened  a legacy session has begun
//	session.ended   a legacy session has ended: deleted, idle, down or closed
//	stream.opened   a client listens: a subscription over HTTP, the GET of a session,
//	                or a connection over HTTP+SSE, WebSocket or a socket
//	stream.ended    such a stream has ended; Reason is the same word as when it opened
//	task.started    a call has become a task here; Reason is replay for a repeated run
//	task.ended      a task has ended here: completed, failed or cancelled, or released
//	                to another replica
//	store.failed    a use of Options.Store has failed, for sessions, tasks, post,
//	                changes, events or webhooks. At most 64 are reported in a second, and at most 64 wait;
//	                the log has the rest
//	delivery.done   an event was accepted by the endpoint of a webhook
//	delivery.dropped an event was given up for one: gone, too_large, refused, retries,
//	                undecided or expired
//	webhook.opened  a webhook subscription has begun
//	webhook.ended   a webhook subscription has ended: unsubscribed, expired, forbidden or
//	                removed
//	draining        Server.Drain, or Shutdown, was called
//	refused         a message, a batch or an HTTP request was rejected before the Begin
//	                of an observer. auth.Options.OnRefused reports what auth.Resource
//	                rejects
//
// Reason of refused is one of these, or one of Outcome's words for codes:
//
//	host, origin   that header is not allowed
//	http_method    the HTTP method is not POST, or needs a session and has none
//	content_type   the body is not JSON, or is compressed
//	accept         the client accepts no response of that kind
//	upgrade        the request cannot become a WebSocket
//	too_long       it is longer than Limits.Message, or than replicas forward
//	incomplete     the body ended early, or did not arrive in time
//	batch          the revision has no batches, there are too many messages, or one of
//	               them must not be in a batch
//	no_session     initialize comes first
//	initialized    the session was initialized before
//	era            a modern message on a legacy transport, or the reverse
//	duplicate_id   a request with that id is in progress
//	last_event     a stream cannot resume from that Last-Event-ID
//	draining       a stream, while the server drains
//	down           the server or the connection ends
//
// Fields that do not belong to an event are zero.
type Event struct {
	Kind, Reason string
	ID           string        // of the session, the stream, the task or the subscription; it fits no label
	Name         string        // the tool of a task, or an event type, or _OTHER, as Frame.Labels tells it
	Frame        *Frame        // of the message that it belongs to, if there is one
	Transport    Transport     // how it came, if it did
	Duration     time.Duration // of what ended: how long it was there
	Err          error         // the reason, if there is more of it than Reason
}
