package editor

import (
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
	in, out *os.File // the pipe to the library; in is standard input without tty
	ahead   []byte   // typed behind the line that was read last
	ended   bool     // there is no more
}

func newKeys() *keys {
	if tty := openKeys(); tty != nil {
		if in, out, err := os.Pipe(); err == nil {
			return &keys{tty: tty, in: in, out: out}
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
		for {
			line := k.ahead
			i := bytes.IndexAny(line, "\r\n\x03") // and not Ctrl-D, which also deletes
			if i >= 0 {
				line = line[:i+1]
			}
			k.ahead = k.ahead[len(line):]
			_, err := k.out.Write(line)
			if err == nil && i < 0 {
				err = k.read()
			}
			if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
				k.ended = true
				_ = k.out.Close() // the library gets the end, too
			}
			if err != nil || i >= 0 {
				return
			}
		}
	})
	return func() {
		past := time.Unix(1, 0)
		_ = errors.Join(k.tty.SetReadDeadline(past), k.out.SetWriteDeadline(past)) // fails if it is closed already
		forwarding.Wait()
		_ = errors.Join(k.tty.SetReadDeadline(time.Time{}), k.out.SetWriteDeadline(time.Time{}))
	}
}

func (k *keys) read() error {
	var buffer [4096]byte
	n, err := k.tty.Read(buffer[:])
	k.ahead = append(k.ahead, buffer[:n]...)
	return err
}

// interrupted tells whether a Ctrl-C was typed behind the last line, and takes it
// with all that was typed before it.
func (k *keys) interrupted() bool {
	if k.tty == nil || k.tty.SetReadDeadline(time.Now().Add(time.Millisecond)) != nil {
		return false
	}
	_ = errors.Join(k.read(), k.tty.SetReadDeadline(time.Time{})) // mostly, nothing was typed
	i := bytes.LastIndexByte(k.ahead, ctrlC)
	k.ahead = k.ahead[i+1:]
	return i >= 0
}

// close ends the reading of the library.
func (k *keys) close() {
	if k.tty != nil {
		_ = errors.Join(k.in.Close(), k.out.Close(), k.tty.Close()) // some of them may be closed already
	}
}
