// Package dev builds a program again after each change of its sources.
package dev

import (
	"context"
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

// Run makes and starts the program until ctx ends. It returns an error if the sources
// cannot be found the first time.
func (l *Loop) Run(ctx context.Context) error {
	var sources Sources
	var seen Snapshot
	look := time.NewTicker(scanInterval)
	defer look.Stop()
	// changed waits for a change of the sources or the end of ctx, unless done tells an
	// outcome before.
	changed := func(done <-chan error) (changed bool, err error) {
		for {
			select {
			case err := <-done:
				return false, err
			case <-look.C:
				start := time.Now()
				if now := l.Scan(sources); !maps.Equal(now, seen) {
					seen = now
					return true, nil
				}
				look.Reset(min(max(scanInterval, scanShare*time.Since(start)), maxInterval))
			case <-ctx.Done():
				return true, nil
			}
		}
	}
	for ctx.Err() == nil {
		began := time.Now()
		look.Reset(scanInterval)
		working, stop := context.WithCancel(ctx)
		var made Sources
		done := make(chan error, 1)
		go func() {
			found, file, err := l.Make(working)
			if made = found; err == nil {
				err = l.Start(working, file)
			}
			done <- err
		}()
		useless, err := changed(done)
		stop()
		if useless {
			<-done
		}
		if made.found() {
			sources, seen = made, seen.renewed(l.Scan(made), began)
		}
		if !useless && err != nil {
			if !sources.found() {
				return err
			}
			l.Failed(err)
		}
		if !useless {
			_, _ = changed(nil)
		}
		for quiet := false; !quiet && pause.For(ctx, quietTime) == nil; {
			now := l.Scan(sources)
			quiet, seen = maps.Equal(now, seen), now
		}
	}
	return nil
}
