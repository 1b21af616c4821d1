package transporttest_test

import (
	"testing"

	"github.com/talaria-go/mcp/transport"
	"github.com/talaria-go/mcp/transport/transporttest"
)

// In a file of tests, for a transport of your own.
func ExampleRun() {
	_ = func(t *testing.T) { // func TestMyTransport
		transporttest.Run(t, func(*testing.T) transporttest.Link {
			a, b := transport.Pipe() // two connected ends of yours
			return transporttest.Link{A: a, B: b}
		})
	}
}
