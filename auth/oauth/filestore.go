package oauth

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/gofrs/flock"
)

// NewFileStore returns a store in one JSON file that only its owner can read (mode
// 0600; a file that others can read is refused). Writes are atomic. Files next to
// it, whose names begin with its own and end in .lock, keep programs from writing
// at the same time. The file and its directory are made when something is to be
// kept.
func NewFileStore(path string) Store { return &fileStore{path: path} }

// fileStore is the Store of NewFileStore. It keeps nothing in memory: every
// call reads the file, which other programs may have changed. An update holds
// the lock of its key while change runs, and the lock of the file only while it
// writes.
type fileStore struct{ path string }

// lockInterval is how often a store looks whether another program has released
// a lock.
const lockInterval = 20 * time.Millisecond

// lockTime is how long a store waits for a lock. It is longer than refreshing a
// token can take.
const lockTime = 90 * time.Second

// Load implements Store.
func (f *fileStore) Load(_ context.Context, key string) (json.RawMessage, error) {
	values, err := f.read()
	return values[key], err
}

// Update implements Store.
func (f *fileStore) Update(ctx context.Context, key string, change func(json.RawMessage) (json.RawMessage, error)) error {
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return f.failed("make the directory of", err)
	}
	digest := sha256.Sum256([]byte(key))
	return f.locked(ctx, "."+hex.EncodeToString(digest[:4]), func() error {
		values, err := f.read()
		if err != nil {
			return err
		}
		value, err := change(values[key])
		if err != nil {
			return err
		}
		return f.locked(ctx, "", func() error { return f.put(key, value) })
	})
}

// locked calls do while no other process or goroutine holds the lock with this
// name.
func (f *fileStore) locked(ctx context.Context, name string, do func() error) (err error) {
	limited, stop := context.WithTimeout(ctx, lockTime)
	defer stop()
	lock := flock.New(f.path+name+".lock", flock.SetPermissions(0o600))
	if _, err := lock.TryLockContext(limited, lockInterval); err != nil {
		if ctx.Err() == nil && limited.Err() != nil {
			err = fmt.Errorf("another program has held it for %v: %w", lockTime, err)
		}
		return f.failed("lock", err)
	}
	defer func() { err = errors.Join(err, lock.Unlock()) }() // also if what do calls panics
	return do()
}

// put changes one value in the file as it is now, because other keys may have
// changed since it was read. The lock of the file is held.
func (f *fileStore) put(key string, value json.RawMessage) error {
	values, err := f.read()
	if err != nil {
		return err
	}
	if values == nil {
		values = map[string]json.RawMessage{}
	}
	if value == nil {
		delete(values, key)
	} else {
		values[key] = value
	}
	text, err := json.MarshalIndent(values, "", "  ")
	if err != nil {
		return f.failed("encode", err)
	}
	return f.replace(append(text, '\n'))
}

// replace writes the whole file under another name and then renames it, so that
// a reader sees the old or the new text and never a part.
func (f *fileStore) replace(text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(f.path), filepath.Base(f.path)+".*") // mode 0600
	if err != nil {
		return f.failed("write", err)
	}
	_, err = file.Write(text)
	err = errors.Join(err, file.Sync(), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), f.path)
	}
	if err != nil {
		return f.failed("write", errors.Join(err, os.Remove(file.Name())))
	}
	return nil
}

// read returns the contents of the file, nil if there is none. A file that
// others can read is refused.
func (f *fileStore) read() (map[string]json.RawMessage, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, f.failed("read", err)
	}
	if !info.Mode().IsRegular() { // opening a pipe would wait for its writer
		return nil, f.failed("read", errors.New("it is not a regular file"))
	}
	file, err := os.Open(f.path)
	if err != nil {
		return nil, f.failed("read", err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil { // of the open file, even if it was replaced
		return nil, f.failed("read", err)
	}
	// On Windows a file has no such mode; the directory of the user keeps
	// others out.
	if mode := info.Mode().Perm(); runtime.GOOS != "windows" && mode&0o077 != 0 {
		return nil, f.failed("trust", fmt.Errorf("others can read it (mode %04o); run chmod 600, and log in again if someone may have", mode))
	}
	text, err := io.ReadAll(file)
	if err != nil {
		return nil, f.failed("read", err)
	}
	var values map[string]json.RawMessage
	if err := json.Unmarshal(text, &values); err != nil {
		return nil, f.failed("read", errors.New("it is no JSON object of this package; remove it and log in again"))
	}
	return values, nil
}

// failed returns the error for an operation on the file.
func (f *fileStore) failed(what string, err error) error {
	return &Error{Step: StepStore, URL: f.path, Problem: "cannot " + what + " the file", Err: err}
}
