// Package record keeps what goes between a client and a server: it taps the two
// into a recording, byte for byte.
package record

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/talaria-go/mcp/cmd/talaria/internal/statedir"
)

// MaxFile is how long a recording may become, in bytes.
const MaxFile = 1 << 30

// Open opens a recording to be appended to; it is made if it is missing, for its
// owner alone, and so is the folder of a name that Fresh has returned.
func Open(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o077 != 0 {
		err = f.Chmod(0o600) // it will have secrets
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
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
