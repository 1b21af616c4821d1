// Package testexec is for tests that start a program which serves an address:
// it finds a free one, starts the program and waits until it listens.
package testexec

import (
	"context"
	"net"
	"os/exec"
	"testing"
	"time"
)

// startTimeout is how long a program may take until it listens.
const startTimeout = 10 * time.Second

// FreeAddr returns a free address of this machine.
func FreeAddr(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// Start starts a program that serves address, and returns when it accepts
// connections. The program is killed when the test ends.
func Start(t testing.TB, program, address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program)
	if err := cmd.Start(); err != nil {
		cancel()
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it was killed, or else is of no use
		close(ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	late := time.After(startTimeout)
	for {
		if conn, err := net.Dial("tcp", address); err == nil {
			_ = conn.Close()
			return
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ended:
			t.Fatalf("%s has ended and does not listen on %s", program, address)
		case <-late:
			t.Fatalf("%s does not listen on %s", program, address)
		}
	}
}
