package shell

import (
	"strings"

	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// words are what follows a command that takes a name and arguments for it.
type words struct {
	name  string // "" if there is none
	typed []string
	json  bool // --json is among them
}

// wordsOf splits a line. The arguments are words, or one JSON object as it
// stands, because its quotes are its own.
func wordsOf(rest string) (words, error) {
	if name, after, _ := strings.Cut(rest, " "); strings.HasPrefix(strings.TrimSpace(after), "{") {
		object, asJSON := strings.CutSuffix(after, "--json")
		return words{name, []string{strings.TrimSpace(object)}, asJSON}, nil
	}
	list, err := split(rest)
	var w words
	for i, text := range list {
		switch {
		case i == 0:
			w.name = text
		case text == "--json":
			w.json = true
		default:
			w.typed = append(w.typed, text)
		}
	}
	return w, err
}

// split takes the words of what follows a command.
func split(rest string) ([]string, error) {
	list, err := shellwords.Split(rest)
	if err != nil {
		return nil, wrong("%v", err)
	}
	return shellwords.Texts(list), nil
}
