package tasks

import (
	"time"

	"github.com/talaria-go/mcp/internal/replica"
)

// The times of tasks.
const (
	DefaultTTL   = time.Hour         // of tasks that name none
	DefaultLease = replica.DeadAfter // for which a task that was not renewed still has its replica
	mostPatience = 10 * time.Second  // of a shutdown with the client of a task that asks rarely
	noteEvery    = time.Second       // between notes of one task to a Shared
	atOnce       = time.Millisecond  // until a task is due that a replica gives away
)
