// Package files opens files that a user names, if these are regular: a pipe or a
// terminal would wait for its other end, and a device may have no end.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// MaxSecret is the limit, in bytes, of a file with a token, a key or variables.
const MaxSecret = 1 << 20

// byteOrderMark begins texts that some editors on Windows write.
var byteOrderMark = []byte("\xef\xbb\xbf")

// Open opens a regular file for reading.
func Open(name string) (*os.File, error) { return open(name, os.O_RDONLY, 0) }

// Append opens a regular file for reading and for writing at its end. It creates a file
// that does not exist, with that mode.
func Append(name string, mode fs.FileMode) (*os.File, error) {
	return open(name, os.O_RDWR|os.O_APPEND|os.O_CREATE, mode)
}

// Read returns what is in a regular file of at most limit bytes.
func Read(name string, limit int64) ([]byte, error) {
	f, err := Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// The size of some files of the system is 0 although there is something in them.
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if size := max(info.Size(), int64(len(text))); err == nil && size > limit {
		return nil, fault(name, "it has %d bytes, which exceeds the limit of %d", size, limit)
	}
	return text, err
}

// Text is Read without a byte order mark at the beginning.
func Text(name string, limit int64) ([]byte, error) {
	text, err := Read(name, limit)
	return bytes.TrimPrefix(text, byteOrderMark), err
}

// Existing returns what is at name, for a file that is to be written: nil if there is
// nothing. Anything but a regular file is an error.
func Existing(name string) (fs.FileInfo, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		if _, broken := os.Lstat(name); broken == nil {
			return nil, fault(name, "it is a link that leads nowhere")
		}
		return nil, nil
	}
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, err
	}
	return info, nil
}

// Replace writes a whole file or leaves it as it is. A link stays, and its target is
// replaced; a file keeps its mode, and a new one gets that mode.
func Replace(name string, mode fs.FileMode, write func(io.Writer) error) error {
	info, err := Existing(name)
	if err != nil {
		return err
	}
	if info != nil {
		mode = info.Mode().Perm()
		if name, err = filepath.EvalSymlinks(name); err != nil {
			return err
		}
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".talaria-*")
	if err != nil {
		return err
	}
	err = write(f)
	if err = errors.Join(err, f.Chmod(mode), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
}

// open opens a file that is regular before it is opened and after it. It does not wait
// for the other end of a pipe that was put there in between.
func open(name string, flag int, mode fs.FileMode) (*os.File, error) {
	if info, err := os.Stat(name); err == nil { // else to open it says what is wrong
		if err := regular(name, info); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, mode)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil {
		err = regular(name, info)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func regular(name string, info fs.FileInfo) error {
	switch {
	case info.IsDir():
		return fault(name, "it is a directory, not a file")
	case !info.Mode().IsRegular():
		return fault(name, "it is not a regular file")
	}
	return nil
}

// fault returns an error of this package, in the form of those of the system.
func fault(name, format string, args ...any) error {
	return &fs.PathError{Op: "open", Path: name, Err: fmt.Errorf(format, args...)}
}
