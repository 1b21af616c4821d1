package main

import (
	"context"
	"errors"
	"os"
	"sync"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/dev"
	"github.com/talaria-go/mcp/cmd/talaria/internal/inspector"
)

// watched serves the page of a Go package, which is built and connected to again after each
// change of its sources, until ctx ends.
func (b *inBrowser) watched(ctx context.Context, args []string, options client.Options) (err error) {
	temp, err := os.MkdirTemp("", "talaria-inspect-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(temp)) }()
	tool := &dev.Tool{Package: args[0], Temp: temp}
	var mu sync.Mutex
	file := "" // the last that was built
	seen := b.inspectorOf(args[0], append([]string{"go", "run"}, args...), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string{file}, args[1:]...)
	}, options)
	defer seen.Close()
	seen.Building("")
	loop := dev.Loop{
		Make: func(ctx context.Context) (dev.Sources, string, error) {
			b.console.Notef("building %s", args[0])
			return tool.Make(ctx)
		},
		Start: func(_ context.Context, built string) error {
			mu.Lock()
			file = built
			mu.Unlock()
			seen.Rebuilt()
			tool.Keep(built)
			return nil
		},
		Scan: dev.Scan,
		Failed: func(err error) {
			text := lines(reason(err).Error())
			b.console.Failf("%s", text)
			seen.Building(text)
		},
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wrong error
	var running sync.WaitGroup
	running.Go(func() {
		defer stop()
		wrong = loop.Run(ctx)
	})
	served := b.serve(ctx, []*inspector.Inspector{seen}, args...)
	stop()
	running.Wait()
	if wrong != nil {
		return usage("%w", wrong).with("with --watch, TARGET is a directory, such as . or ./cmd/weather, or an import path")
	}
	return served
}
