// Package dev builds a program again after each change of its sources.
package dev

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/talaria-go/mcp/internal/pause"
)

// Loop makes and starts a program, again after each change. Its functions are called by
// one goroutine at a time, except for Scan, which runs next to Make and Start.
type Loop struct {
	// Make finds the sources of the program and builds it. No sources means that they
	// cannot be found.
	Make func(ctx context.Context) (sources Sources, file string, err error)
	// Start puts the program at file in the place of the one before.
	Start func(ctx context.Context, file string) error
	// Scan looks at the sources.
	Scan func(Sources) Snapshot
	// Failed receives the errors of Make and Start. The program before continues.
	Failed func(error)
}

const (
	scanInterval = 300 * time.Millisecond // between two looks at the sources, at least
	maxInterval  = time.Second            // between two looks that take long
	scanShare    = 50                     // an interval is this many times as long as a look, for 2 % of a CPU
	quietTime    = 200 * time.Millisecond // without a further change, before a build starts
)

// errChanged ends what a further change has made useless.
var errChanged = errors.New("the sources have changed")

// turn is the outcome of one Make and Start.
type turn struct {
	sources Sources
	err     error
}

// Run makes and starts the program until ctx ends. It returns an error if the sources
// cannot be found the first time.
func (l *Loop) Run(ctx context.Context) error {
	var sources Sources
	var seen Snapshot
	for {
		began := time.Now()
		working, stop := context.WithCancelCause(ctx)
		done := make(chan turn, 1)
		go func() { done <- l.turn(working) }()
		finish := func(t turn) {
			done = nil
			if t.sources.found() {
				sources, seen = t.sources, seen.renewed(l.Scan(t.sources), began)
			}
			if t.err != nil && working.Err() == nil && sources.found() {
				l.Failed(t.err)
			}
		}
		look := time.NewTicker(scanInterval)
		var failed error
		for changed := false; !changed && failed == nil; {
			select {
			case t := <-done:
				if finish(t); !sources.found() {
					failed = t.err
				}
			case <-look.C:
				start := time.Now()
				changed = !maps.Equal(l.Scan(sources), seen)
				look.Reset(min(max(scanInterval, scanShare*time.Since(start)), maxInterval))
			case <-ctx.Done():
				changed = true
			}
		}
		look.Stop()
		stop(errChanged)
		if done != nil {
			finish(<-done)
		}
		if failed != nil || ctx.Err() != nil {
			return failed
		}
		for now := l.Scan(sources); ; now = seen {
			if pause.For(ctx, quietTime) != nil {
				return nil
			}
			if seen = l.Scan(sources); maps.Equal(now, seen) {
				break
			}
		}
	}
}

// turn makes the program and starts it.
func (l *Loop) turn(ctx context.Context) turn {
	sources, file, err := l.Make(ctx)
	if err == nil {
		err = l.Start(ctx, file)
	}
	return turn{sources, err}
}
