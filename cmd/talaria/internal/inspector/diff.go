package inspector

import (
	"errors"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// maxCompared is how long a result is at most that is compared, in bytes.
const maxCompared = 256 << 10

// maxCompareLine is how much of a line of a comparison is shown, in bytes.
const maxCompareLine = 2 << 10

// compared returns the lines of two results, as showDiff describes them.
func compared(before, after string) ([]string, error) {
	if len(before) > maxCompared || len(after) > maxCompared {
		return nil, errors.New("the results are too long to compare (limit 256 KiB)")
	}
	text := udiff.Unified("before", "after", unfolded(before)+"\n", unfolded(after)+"\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) <= 2 {
		return []string{}, nil
	}
	lines = lines[2:] // without the names
	lines = lines[:min(len(lines), 5000)]
	for n, line := range lines {
		if len(line) > maxCompareLine {
			cut := maxCompareLine
			for !utf8.RuneStart(line[cut]) {
				cut--
			}
			lines[n] = line[:cut] + "…"
		}
	}
	return lines, nil
}

// stringLine matches a line of indented JSON with a string: what is before it, the string, and what
// is behind it.
var stringLine = regexp.MustCompile(`^(\s*)("(?:[^"\\]|\\.)*": )?("(?:[^"\\]|\\.)*")(,?)$`)

// unfolded is indented JSON with the lines of each text in it on lines of their own: those of
// text, and of JSON in a text.
func unfolded(text string) string {
	var b strings.Builder
	for n, line := range strings.Split(text, "\n") {
		if n > 0 {
			b.WriteByte('\n')
		}
		parts := stringLine.FindStringSubmatch(line)
		var inner string
		if parts == nil || jsonx.Unmarshal([]byte(parts[3]), &inner) != nil {
			b.WriteString(line)
			continue
		}
		if begin := strings.TrimSpace(inner); strings.HasPrefix(begin, "{") || strings.HasPrefix(begin, "[") {
			inner = indented([]byte(inner))
		}
		if !strings.Contains(inner, "\n") {
			b.WriteString(line)
			continue
		}
		b.WriteString(parts[1] + parts[2] + "\"")
		for row := range strings.SplitSeq(inner, "\n") {
			b.WriteString("\n" + parts[1] + "  " + strings.TrimSuffix(row, "\r"))
		}
		b.WriteString("\n" + parts[1] + "\"" + parts[4])
	}
	return b.String()
}
