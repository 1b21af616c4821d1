//go:build unix

package redis

import (
	"testing"

	"github.com/talaria-go/mcp/scale"
	"github.com/talaria-go/mcp/scale/scaletest"
)

// suite holds a Store on servers to the contract, with a user who has the rights
// that the documentation names.
func suite(t *testing.T, servers ...*server) {
	stores := map[scale.Store]*Store{}
	scaletest.Run(t, scaletest.Backend{
		Open: func(t *testing.T) (a, b scale.Store) {
			o := user(t, servers...)
			first, second := open(t, o), open(t, o)
			stores[first] = first
			return first, second
		},
		Lose: func(_ *testing.T, s scale.Store) { stores[s].engine.conns.closeAll() },
	})
}

func TestAlone(t *testing.T) { suite(t, start(t)) }

func TestCluster(t *testing.T) { suite(t, startCluster(t, 0)...) }
