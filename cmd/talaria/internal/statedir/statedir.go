// Package statedir is where this program keeps what it remembers for its user: below
// XDG_STATE_HOME or ~/.local/state, and what macOS and Windows have for it.
package statedir

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
)

// Make returns a folder below that of this program, and makes it, readable only
// by its user.
func Make(parts ...string) (string, error) {
	dir := os.Getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) { // the specification says to ignore others
		home, err := os.UserHomeDir()
		if err != nil {
			return "", err
		}
		switch runtime.GOOS {
		case "darwin":
			dir = filepath.Join(home, "Library", "Application Support")
		case "windows":
			if dir, err = os.UserCacheDir(); err != nil {
				return "", err
			}
		default:
			dir = filepath.Join(home, ".local", "state")
		}
	}
	dir = filepath.Join(append([]string{dir, "talaria"}, parts...)...)
	return dir, os.MkdirAll(dir, 0o700)
}

// Replace writes a whole file, readable only by its owner. A reader in the
// meantime, or after a crash, has the old text or the new one.
func Replace(path string, text []byte) error {
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*") // mode 0600
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}
