package hosts

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/talaria-go/mcp/internal/tooling/files"
)

// maxConfig bounds what is taken for a configuration file.
const maxConfig = 16 << 20

// ErrChanged is the error of a file that was changed in the meantime.
var ErrChanged = errors.New("the file was changed by another program; try again")

// Read returns a configuration file, nil if there is none.
func Read(path string) ([]byte, error) {
	if info, err := files.Existing(path); info == nil {
		return nil, err
	}
	return files.Read(path, maxConfig)
}

// Write replaces a configuration file, whole or not at all, unless it is not
// what old says any more. It returns where the old one is kept, "" if there was
// none. Links stay links, and the file keeps its permissions; only its owner
// can read a new one, since it may hold secrets.
func Write(path string, old, text []byte, now time.Time) (backup string, err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return "", err
	}
	mode := fs.FileMode(0o600)
	current, err := Read(path)
	if err != nil {
		return "", err
	}
	if !bytes.Equal(current, old) {
		return "", ErrChanged
	}
	if old != nil {
		info, err := os.Stat(path)
		if err != nil {
			return "", err
		}
		mode = info.Mode().Perm()
		if backup, err = keep(path, old, mode, now); err != nil {
			return "", err
		}
	}
	temp, err := os.CreateTemp(filepath.Dir(path), ".talaria-*")
	if err != nil {
		return backup, err
	}
	defer os.Remove(temp.Name()) // gone already if all went well
	_, err = temp.Write(text)
	err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close())
	if err != nil {
		return backup, err
	}
	return backup, os.Rename(temp.Name(), path)
}

// keep copies what was there next to it, under a name that nothing has.
func keep(path string, old []byte, mode fs.FileMode, now time.Time) (string, error) {
	name := path + ".backup-" + now.Format("20060102-150405")
	for i := 2; ; i++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if errors.Is(err, fs.ErrExist) && i < 100 {
			name = fmt.Sprintf("%s.backup-%s-%d", path, now.Format("20060102-150405"), i)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = f.Write(old)
		return name, errors.Join(err, f.Close())
	}
}
