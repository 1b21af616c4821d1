package scale_test

import (
	"testing"

	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/scale/scaletest"
)

// TestLocal holds the Store within the process to the contract.
func TestLocal(t *testing.T) {
	scaletest.Run(t, scaletest.Backend{Bubble: true, Open: func(*testing.T) (a, b scale.Store) {
		s := scale.NewLocal()
		return s, s
	}})
}
