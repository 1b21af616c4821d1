package editor

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// HistoryFile returns where the history is kept, below the directory for state
// of the user, which it makes: XDG_STATE_HOME or ~/.local/state, and what macOS
// and Windows have for it.
func HistoryFile() (string, error) {
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
	dir = filepath.Join(dir, "talaria")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("the history is not kept: %w", err)
	}
	return filepath.Join(dir, "history"), nil
}
