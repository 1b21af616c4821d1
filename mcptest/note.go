package mcptest

import (
	"encoding/json"
	"slices"

	"github.com/talaria-go/mcp/protocol"
)

// Notification is a notification of the server.
type Notification struct {
	Method string
	Params json.RawMessage
	taken  bool
}

// Log is a log message of the server.
type Log struct {
	Level  protocol.Level  `json:"level"`
	Logger string          `json:"logger"`
	Data   json.RawMessage `json:"data"`
}

// Text returns the data if that is a string, else as JSON.
func (l Log) Text() string {
	var text string
	if json.Unmarshal(l.Data, &text) == nil {
		return text
	}
	return string(l.Data)
}

// Progress is how far the server said that a request has come.
type Progress struct {
	Progress float64 `json:"progress"`
	Total    float64 `json:"total"`
	Message  string  `json:"message"`
}

// note takes a notification.
func (c *Client) note(m *protocol.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch m.Method {
	case protocol.MethodLog:
		var log Log
		if err := json.Unmarshal(m.Params, &log); err != nil {
			c.t.Errorf("mcptest: the server logged %s: %v", m.Params, err)
		}
		c.logs = append(c.logs, log)
	case protocol.MethodProgress:
		var p struct {
			Token any `json:"progressToken"`
			Progress
		}
		if err := json.Unmarshal(m.Params, &p); err != nil {
			c.t.Errorf("mcptest: the server told %s: %v", m.Params, err)
		}
		if token, ok := p.Token.(string); ok { // else it is not one of TryCall
			c.progress[token] = append(c.progress[token], p.Progress)
		}
	}
	c.notifications = append(c.notifications, Notification{Method: m.Method, Params: m.Params})
	close(c.another)
	c.another = make(chan struct{})
}

// Logs returns the log messages that have come so far.
func (c *Client) Logs() []Log {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.logs)
}

// Notifications returns every notification that has come so far.
func (c *Client) Notifications() []Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.notifications)
}

// take returns the first notification of a method that was not taken yet, or
// else what is closed when there is another.
func (c *Client) take(method string) (params json.RawMessage, ok bool, another <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.notifications {
		if n := &c.notifications[i]; n.Method == method && !n.taken {
			n.taken = true
			return n.Params, true, nil
		}
	}
	return nil, false, c.another
}
