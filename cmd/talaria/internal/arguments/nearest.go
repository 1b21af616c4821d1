package arguments

import naming "github.com/talaria-go/mcp/internal/names"

// Nearest returns the name that was probably meant; see names.Nearest.
func Nearest(typed string, names []string) string { return naming.Nearest(typed, names) }
