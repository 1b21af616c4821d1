package editor

import (
	"fmt"
	"path/filepath"

	"github.com/talaria-go/mcp/cmd/talaria/internal/statedir"
)

// HistoryFile returns where the history is kept, in the folder of what this program
// remembers, which it makes.
func HistoryFile() (string, error) {
	dir, err := statedir.Make()
	if err != nil {
		return "", fmt.Errorf("the history is not kept: %w", err)
	}
	return filepath.Join(dir, "history"), nil
}
