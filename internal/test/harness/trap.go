package harness

import (
	"sync/atomic"
)

// Trap does not return while it is armed.
type Trap struct {
	Armed atomic.Bool
	Way   func()
}

func (a *Trap) Spring() {
	if a.Armed.Load() {
		a.Way()
	}
}
