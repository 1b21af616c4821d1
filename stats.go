package mcp

// Stats is what a server does at a moment: see Server.Stats.
type Stats struct {
	Draining    bool // Server.Drain, or Shutdown, was called
	Requests    Load // messages in progress, including handlers that continue after their time
	Waiting     Load // bytes of messages that wait for a worker of their connection
	Sessions    Load // legacy sessions that are known here
	Streams     Load // event streams; see Event
	Connections Load // other than standard input and output, and requests over HTTP
	Tasks       Load // that run here
}

// Load is how much there is of something, and how much there may be: 0 is without a
// limit of its own.
type Load struct{ Now, Max int }
