package record

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// Streams are those of the program that a command takes the place of.
type Streams struct {
	In       io.Reader
	Out, Err io.Writer
	Signals  <-chan os.Signal // passed on to the command
}

// lastData is how long the output of a command is read after its end, while a
// process that it started holds its pipes.
const lastData = time.Second

// endTime is how long a command may live on after SIGTERM was passed on to it. Then it is
// killed: killing this process instead would leave the command behind.
const endTime = 10 * time.Second

// Command runs a command with the streams, the environment and the folder of this
// process, and records what passes, until the command ends. It returns its exit
// code; err is that it could not be started.
//
// A message is recorded before it is passed on, so that a question is before its
// answer. A Read of In that waits when the command ends is abandoned: the process
// ends with it.
func Command(ctx context.Context, w *recording.Writer, words []string, s Streams) (code int, err error) {
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.WaitDelay = lastData
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	stdout, stderr := &tee{to: s.Out}, &tee{to: s.Err}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ready := make(chan struct{}) // the lines have the number of the process
	stdout.ready, stderr.ready = ready, ready
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	conn := strconv.Itoa(cmd.Process.Pid)
	note := func(format string, args ...any) {
		w.Add(recording.Entry{Dir: recording.Note, Conn: conn, Text: fmt.Appendf(nil, format, args...)})
	}
	note("started %s", filepath.Base(words[0]))
	stdout.lines, stderr.lines = newLines(w, recording.In, conn), newLines(w, recording.Err, conn)
	close(ready)
	go func() {
		sent := newLines(w, recording.Out, conn)
		_, _ = io.Copy(stdin, io.TeeReader(s.In, sent)) // a command that reads no more has its reasons
		sent.flush()
		stdin.Close()
	}()
	ended := make(chan struct{})
	passed := make(chan struct{})
	go func() {
		defer close(passed)
		var late <-chan time.Time
		for {
			select {
			case sig := <-s.Signals:
				_ = cmd.Process.Signal(sig) // it may have ended
				if sig == syscall.SIGTERM && late == nil {
					late = time.After(endTime)
				}
			case <-late:
				_ = cmd.Process.Kill()
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	close(ended)
	<-passed
	stdout.lines.flush()
	stderr.lines.flush()
	note("ended: %s", cmd.ProcessState)
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited && !errors.Is(err, exec.ErrWaitDelay) && stdout.err == nil && stderr.err == nil {
		return 0, err
	}
	return exitCode(cmd.ProcessState), nil
}

// exitCode is what a shell says of the end of a process.
func exitCode(state *os.ProcessState) int {
	if code := state.ExitCode(); code >= 0 {
		return code
	}
	return 128 + signalOf(state)
}

// tee writes to one place and makes lines of it for another.
type tee struct {
	to    io.Writer
	ready <-chan struct{} // closed when there are lines
	lines *lines
	err   error // of to
}

func (t *tee) Write(p []byte) (int, error) {
	<-t.ready
	_, _ = t.lines.Write(p) // never fails
	n, err := t.to.Write(p)
	if err != nil {
		t.err = err
	}
	return n, err
}
