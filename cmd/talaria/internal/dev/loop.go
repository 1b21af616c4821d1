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
	look := time.NewTicker(scanInterval)
	defer look.Stop()
	// changed waits for a change of the sources or the end of ctx, unless a turn ends before.
	changed := func(done <-chan turn) (turn, bool) {
		for {
			select {
			case t := <-done:
				return t, false
			case <-look.C:
				start := time.Now()
				if now := l.Scan(sources); !maps.Equal(now, seen) {
					seen = now
					return turn{}, true
				}
				look.Reset(min(max(scanInterval, scanShare*time.Since(start)), maxInterval))
			case <-ctx.Done():
				return turn{}, true
			}
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		look.Reset(scanInterval)
		working, stop := context.WithCancelCause(ctx)
		done := make(chan turn, 1)
		go func() {
			sources, file, err := l.Make(working)
			if err == nil {
				err = l.Start(working, file)
			}
			done <- turn{sources, err}
		}()
		made, useless := changed(done)
		if useless {
			stop(errChanged)
			made = <-done
		}
		stop(nil)
		if ctx.Err() != nil { // which may be why it failed
			break
		}
		if made.sources.found() {
			sources, seen = made.sources, seen.renewed(l.Scan(made.sources), began)
		}
		if !useless {
			if made.err != nil {
				if !sources.found() {
					return made.err
				}
				l.Failed(made.err)
			}
			changed(nil)
		}
		for quiet := false; !quiet && pause.For(ctx, quietTime) == nil; {
			now := l.Scan(sources)
			quiet, seen = maps.Equal(now, seen), now
		}
	}
	return nil
}
