package frame

import "context"

// Observer is notified of every message that a server serves: of requests and
// notifications, each one of a batch, and of each run of a task, over every
// transport. It is outside of all middleware. mcp.Server.Observe adds one. Any
// function may be nil; all must return soon, and are called by many goroutines at
// once.
type Observer struct {
	// Begin is called before anything of the message runs, on the goroutine that serves it.
	// The context that it returns is the handler's and has to come from f; f itself is one.
	// An error refuses the message, and so does a panic: nothing of it runs, the client
	// gets protocol.CodeInternal without the text, and the observers that began before are
	// notified of the end.
	Begin func(f *Frame) (context.Context, error)
	// End is called once for each Begin that returned no error, in reverse order,
	// when the answer has been made and before it is sent. f has the context of the
	// last Begin. Whether the response arrives is unknown. A panic is logged, and
	// changes nothing.
	End func(f *Frame, o Outcome)
	// Event is called for what belongs to no one message, on a separate
	// goroutine, which the code that reports it waits for. For store.failed only
	// Shutdown waits; the next one comes when it has returned.
	Event func(e Event)
}
