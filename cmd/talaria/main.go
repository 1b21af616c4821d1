// Command talaria works with MCP servers from a terminal: an interactive shell,
// one-shot commands for scripts, a proxy between transports, installation into
// desktop clients, and new server projects.
//
//	talaria stdio npx -y @modelcontextprotocol/server-everything
//	talaria call http://127.0.0.1:8080/mcp calculate operation=add a=1 b=2
//	talaria help
//
// Its exit codes are those of exit.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"syscall"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

func main() {
	log.SetOutput(io.Discard) // net/http writes there what its errors say, too
	// A write into a closed pipe is an error, and not the end of the process: what
	// is open is closed first.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	os.Exit(run(context.Background(), os.Args[1:], console.New(os.Stdin, os.Stdout, os.Stderr)))
}

// run is main with its surroundings as arguments; it returns the exit code.
func run(ctx context.Context, args []string, c *console.Console) int {
	root, help := newRoot(c)
	root.SetArgs(args)
	root.SetIn(c.In)
	root.SetOut(c)
	root.SetErr(c.Err)
	err := root.ExecuteContext(ctx)
	if err == nil {
		err = help.unknown
	}
	if broken := c.Broken(); err == nil || broken != nil && errors.Is(err, broken) {
		err = unwritten(c)
	} else if lost := unwritten(c); lost != nil {
		c.Failf("%v", lost)
	}
	if err == nil {
		return exitOK
	}
	code, text, hint := explain(err)
	if text != "" {
		c.Failf("%s", text)
	}
	if hint != "" {
		c.Notef("%s", hint)
	}
	return code
}

// unwritten is the error of results that could not be written. A reader that
// closes a pipe, as head does, needs no more of them.
func unwritten(c *console.Console) error {
	err := c.Broken()
	if err == nil || errors.Is(err, syscall.EPIPE) {
		return nil
	}
	return failed(exitTool, fmt.Errorf("the output cannot be written: %w", err))
}
