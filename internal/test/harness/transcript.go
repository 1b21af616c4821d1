package harness

import (
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/protocol"
)

var Update = flag.Bool("update", false, "write the transcripts anew")

func Expand(line string, rev protocol.Revision) string {
	meta := `"_meta":{"io.modelcontextprotocol/protocolVersion":"$REV","io.modelcontextprotocol/clientInfo":{"name":"script","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}`
	line = strings.ReplaceAll(line, "$META+", strings.TrimSuffix(meta, "}"))
	line = strings.ReplaceAll(line, "$META", meta)
	return strings.ReplaceAll(line, "$REV", rev.String())
}

func FirstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(w), len(g)) {
		a, b := "(end)", "(end)"
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			return fmt.Sprintf("line %d\nwant %s\ngot  %s", i+1, a, b)
		}
	}
	return ""
}

// IsRequest reports whether a line wants an answer: it has an id, or cannot be
// read at all.
func IsRequest(line string) bool {
	line = strings.TrimLeft(line, "\ufeff")
	type message struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	var batch []message
	if json.Unmarshal([]byte(line), &batch) == nil && len(batch) > 0 {
		return slices.ContainsFunc(batch, func(m message) bool { return m.ID != nil })
	}
	var m message
	return json.Unmarshal([]byte(line), &m) != nil || m.ID != nil || m.Method == ""
}
