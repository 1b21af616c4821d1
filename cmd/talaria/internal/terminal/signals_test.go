//go:build unix

package terminal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/talaria-go/mcp/internal/test/testproc"
)

// The test binary also is a program that takes an hour to end.
func init() {
	if os.Getenv("TALARIA_ENDS_SLOWLY") == "" {
		return
	}
	ctx, _ := UntilSignal(context.Background(), os.Interrupt, syscall.SIGTERM)
	fmt.Println("ready")
	<-ctx.Done()
	fmt.Println("ending")
	select {}
}

// A second signal ends the program, however soon it comes after the first.
func TestUntilSignal(t *testing.T) {
	start := func() *exec.Cmd {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), "TALARIA_ENDS_SLOWLY=yes")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		return cmd
	}
	for range 3 {
		cmd := start()
		testproc.SignalTwice(t, cmd.Process)
		if err := cmd.Wait(); !testproc.Killed(cmd.ProcessState, interrupted) {
			t.Errorf("it ended with %v", err)
		}
	}
}

// A context that a caller ends leaves the signals as they were.
func TestUntilSignalStopped(t *testing.T) {
	cause := errors.New("over")
	parent, end := context.WithCancelCause(t.Context())
	ctx, stop := UntilSignal(parent, syscall.SIGUSR1)
	end(cause)
	<-ctx.Done()
	stop()
	if context.Cause(ctx) != cause {
		t.Errorf("got %v", context.Cause(ctx))
	}
	ctx, stop = UntilSignal(t.Context(), syscall.SIGUSR1)
	if err := syscall.Kill(os.Getpid(), syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
	stop()
	stop()
}
