package terminal

import (
	"context"
	"os"
	"os/signal"
)

// UntilSignal returns a context that ends with the first of some signals. The second one
// ends the program at once, also if it comes before anything has noticed the first. stop
// ends the context and gives the signals back.
func UntilSignal(ctx context.Context, which ...os.Signal) (_ context.Context, stop func()) {
	return untilSignal(ctx, nil, which...)
}

// untilSignal is UntilSignal. As long as further receives the signals, too, the second one
// would not end the program: the first one ends that.
func untilSignal(ctx context.Context, further chan<- os.Signal, which ...os.Signal) (_ context.Context, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, which...)
	go func() {
		defer close(done)
		select {
		case <-signals:
		case <-ctx.Done():
			return
		}
		signal.Stop(signals)
		if further != nil {
			signal.Stop(further)
		}
		if len(signals) > 0 { // it has come already
			os.Exit(interrupted)
		}
		cancel()
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
		<-done
	}
}

// interrupted is the exit code of a program that a second signal ends.
const interrupted = 130
