// Package names makes names of tools that every host accepts: letters, digits, '_' and
// '-', up to a length. It serves what takes names from elsewhere, such as a gateway and a
// document of an API. The package has no state.
package names

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Max is the longest name that every host accepts, in characters.
const Max = 64

// MinLimit is the least limit of Fit: a letter, '_' and the shortest digest.
const MinLimit = 2 + shortDigest

// shortDigest is the number of hexadecimal digits that tell a changed name from others.
const shortDigest = 8

// Fit returns a name for each of the originals, with at most limit characters. A name that
// fits stays as it is. Other characters become '_'. A name that is too long is cut, and
// ends with '_' and 8 digits of the SHA-256 of the original; so does each of the changed
// names that would equal another name. The names differ from each other, and do not depend
// on the order of the originals. limit is MinLimit at least.
func Fit(originals []string, limit int) map[string]string {
	fitted := make(map[string]string, len(originals))
	taken := make(map[string]int, len(originals))
	var changed []string
	for _, original := range originals {
		if _, again := fitted[original]; again {
			continue
		}
		name := safe(original)
		if name == "" {
			name = "_"
		}
		if len(name) > limit {
			name = digested(original, name, shortDigest, limit)
		}
		fitted[original] = name
		if taken[name]++; name != original {
			changed = append(changed, original)
		}
	}
	// In each round all that collide get a longer digest. Names that were not changed keep
	// theirs, whatever the others are.
	for digits := shortDigest; len(changed) > 0 && digits <= 2*sha256.Size; digits += shortDigest {
		changed = slices.DeleteFunc(changed, func(original string) bool { return taken[fitted[original]] == 1 })
		for _, original := range changed {
			fitted[original] = digested(original, safe(original), min(digits, limit-2), limit)
		}
		clear(taken)
		for _, name := range fitted {
			taken[name]++
		}
	}
	return fitted
}

// Owner returns which of n prefixes a full name belongs to: the longest that it begins
// with, or -1. prefix returns the prefix at an index. A name does not begin with a prefix
// that it equals.
func Owner(full string, n int, prefix func(i int) string) int {
	owner, longest := -1, -1
	for i := range n {
		if p := prefix(i); len(p) > longest && len(p) < len(full) && strings.HasPrefix(full, p) {
			owner, longest = i, len(p)
		}
	}
	return owner
}

// digested returns as much of name as fits before '_' and the digits of the original.
func digested(original, name string, digits, limit int) string {
	sum := sha256.Sum256([]byte(original))
	tail := "_" + hex.EncodeToString(sum[:])[:digits]
	return name[:min(len(name), limit-len(tail))] + tail
}

// safe returns text with every other character as one '_'.
func safe(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, text)
}
