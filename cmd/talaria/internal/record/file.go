// Package record keeps what goes between a client and a server: it taps the two
// into a recording, byte for byte.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/statedir"
	"github.com/talaria-go/mcp/internal/tooling/files"
	"github.com/talaria-go/mcp/internal/tooling/recording"
)

// MaxFile is how long a recording may become, in bytes.
const MaxFile = 1 << 30

// Open opens a recording to be appended to; it is made if it is missing,
// readable only by its owner, and so is the folder of a name that Fresh has
// returned.
func Open(name string) (*os.File, error) {
	f, err := files.Append(name, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = Check(f)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600) // it will have secrets
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// maxHead is how many bytes of a file Check reads at most.
const maxHead = 64 << 10

// Check returns an error if a file has something in it and does not begin like a
// recording: with an entry, or with the first part of a long one. The file stays at its
// beginning.
func Check(f *os.File) error {
	head, err := io.ReadAll(io.NewSectionReader(f, 0, maxHead))
	if err != nil {
		return err
	}
	first, _, whole := bytes.Cut(bytes.TrimSpace(head), []byte("\n"))
	if !whole && bytes.HasPrefix(first, []byte(`{"at":"`)) && bytes.IndexByte(first, 0) < 0 {
		return nil // it is long, or breaks off
	}
	for _, err := range recording.Read(bytes.NewReader(append(first, '\n'))) {
		if err != nil {
			return fmt.Errorf("%s is not a recording of talaria tap or mcptest.Record: %w", f.Name(), err)
		}
		return nil
	}
	return nil
}

// Fresh returns the name of a file for a recording of that program or host, in a
// folder of the user's.
func Fresh(what string, at time.Time) (string, error) {
	folder, err := statedir.Make("recordings")
	if err != nil {
		return "", err
	}
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_':
			return r
		}
		return '-'
	}, filepath.Base(what))
	return filepath.Join(folder, fmt.Sprintf("%s-%s-%d.jsonl", at.Format("20060102-150405"), plain, os.Getpid())), nil
}
