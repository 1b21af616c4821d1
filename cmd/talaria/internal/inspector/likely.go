package inspector

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/record"
)

// leastUnnamed is how long a value is at least that is a secret though its name does not
// say so, in bytes.
const leastUnnamed = 8

// likely reports whether a value of a header, an environment or a query is a secret that
// is masked wherever it is. Other values, such as true, 3000 or a path, would match
// unrelated texts; if the name marks one as a secret, it is masked in its place, by
// inPlace.
func likely(name, value string) bool {
	value = strings.TrimSpace(value)
	if isWord(value) || isShortNumber(value) {
		return false
	}
	if record.SecretName(name) {
		return len(value) >= minSecret
	}
	return len(value) >= leastUnnamed && !isPath(value)
}

// isWord reports whether a text is one of the words of settings.
func isWord(text string) bool {
	return slices.Contains([]string{"true", "false", "null", "none", "auto", "enabled", "disabled"}, strings.ToLower(text))
}

func isShortNumber(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil && len(text) < leastUnnamed
}

// paths matches one path, or a list of them.
var paths = regexp.MustCompile(`^([A-Za-z]:[\\/]|~?/|\.\.?/)[\w .@~/\\:;-]*$`)

// isPath reports whether a text is a path. One with a part that is very long may as
// well be a secret that begins like one.
func isPath(text string) bool {
	long := func(part string) bool { return len(part) > 32 }
	return paths.MatchString(text) && !slices.ContainsFunc(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(`/\:;`, r) }), long)
}

// setting is a name and a value, as flags have them.
var setting = regexp.MustCompile(`(?s)^([^=:]*)([=:]\s*)(.*)$`)

// queried is where a value in the query of a URL begins, with its name. The URL may be
// in JSON or HTML, and what was masked may have had a part of the name.
var queried = regexp.MustCompile("(?:&amp;|\\\\u0026|[?&#;]|\\*\\*\\*)([^=&#;\\s\"'`<>\\\\]*)=")

// value is one in a query, with what JSON escapes in it, but &.
var value = regexp.MustCompile("^(?:[^&#\\s\"'`<>\\\\]|\\\\+/|(?i:\\\\+u(?:[1-9a-f][0-9a-f]{3}|0[1-9a-f][0-9a-f]{2}|00[013-9a-f][0-9a-f]|002[0-57-9a-f])))+")

// inPlace masks the values of a query whose names say that they are secrets.
func inPlace(text string) string {
	var b strings.Builder
	for {
		at := queried.FindStringSubmatchIndex(text)
		if at == nil {
			return b.String() + text
		}
		b.WriteString(text[:at[1]])
		begin, name := text[at[0]:at[1]], text[at[2]:at[3]]
		text = text[at[1]:]
		plain, err := url.QueryUnescape(name)
		if err == nil && !record.SecretName(plain) && !strings.Contains(begin, masked) {
			continue
		}
		if end := len(value.FindString(text)); end > 0 {
			b.WriteString(masked)
			text = text[end:]
		}
	}
}

// inWords masks such values in the words of a command line, as well as tokens.
func inWords(words []string) {
	for i := 1; i < len(words); i++ {
		switch words[i-1] {
		case "--token":
			words[i] = masked
		case "--header", "--env":
			if part := setting.FindStringSubmatch(words[i]); part != nil && record.SecretName(part[1]) {
				words[i] = part[1] + part[2] + masked
			}
		}
	}
}
