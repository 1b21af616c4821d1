package editor

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"sync"
	"time"
)

// keys is what is typed. The library that edits lines gets it line by line: what
// was typed behind the end of a line stays here, where a Ctrl-C is seen.
type keys struct {
	tty     *os.File // of which a deadline ends the reading; nil if there is none
	typed   *bufio.Reader
	in, out *os.File // the pipe to the library; in is standard input without tty
	ended   bool     // there is no more
}

func newKeys() *keys {
	if tty := openKeys(); tty != nil {
		if in, out, err := os.Pipe(); err == nil {
			return &keys{tty: tty, typed: bufio.NewReader(tty), in: in, out: out}
		}
		_ = tty.Close() // it was only read from
	}
	return &keys{in: os.Stdin}
}

const ctrlC = 3

// forward gives what is typed to the library, up to the end of a line, until stop
// is called.
func (k *keys) forward() (stop func()) {
	if k.tty == nil {
		return func() {}
	}
	var forwarding sync.WaitGroup
	forwarding.Go(func() {
		key, err := byte(0), error(nil)
		for err == nil && key != '\r' && key != '\n' && key != ctrlC { // Ctrl-D does not always end it
			if key, err = k.typed.ReadByte(); err == nil {
				_, err = k.out.Write([]byte{key})
			}
		}
		if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
			k.ended = true
			_ = k.out.Close() // the library gets the end, too
		}
	})
	return func() {
		past := time.Unix(1, 0)
		_ = errors.Join(k.tty.SetReadDeadline(past), k.out.SetWriteDeadline(past)) // fails if it is closed already
		forwarding.Wait()
		_ = errors.Join(k.tty.SetReadDeadline(time.Time{}), k.out.SetWriteDeadline(time.Time{})) // the same
	}
}

// interrupted reports whether a Ctrl-C was typed behind the last line, and takes
// it with all that was typed before it.
func (k *keys) interrupted() bool {
	if k.tty == nil || k.tty.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	ahead, _ := k.typed.Peek(k.typed.Size()) // mostly nothing, or less
	i := bytes.LastIndexByte(ahead, ctrlC)
	_, _ = k.typed.Discard(i + 1)          // which is there
	_ = k.tty.SetReadDeadline(time.Time{}) // as it could above
	return i >= 0
}

// close ends the reading of the library.
func (k *keys) close() {
	if k.tty != nil {
		_ = errors.Join(k.in.Close(), k.out.Close(), k.tty.Close()) // some of them may be closed already
	}
}
