package inspector

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// maxCompared is how long a result is at most that is compared, in bytes.
const maxCompared = 256 << 10

// showDiff compares the result of a call with that of the call of the tool before, line
// by line: the first character of each says whether it went (-), came (+) or stayed.
func (i past) showDiff(w http.ResponseWriter, r *http.Request) {
	one, ok := pages{Inspector: i.Inspector}.found(w, r)
	if !ok {
		return
	}
	old := i.calls.before(one)
	switch {
	case old.ID == 0 || one.Result == "":
		refuse(w, http.StatusNotFound, errors.New("there is no earlier result to compare with"))
		return
	case len(old.Result) > maxCompared || len(one.Result) > maxCompared:
		refuse(w, http.StatusConflict, errors.New("the results are too long to compare (limit 256 KiB)"))
		return
	}
	text := udiff.Unified("before", "after", old.Result+"\n", one.Result+"\n")
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if len(lines) > 2 {
		lines = lines[2:] // without the names
	} else {
		lines = []string{}
	}
	reply(w, map[string]any{"before": old.ID, "lines": lines[:min(len(lines), 5000)], "arguments": old.Arguments != one.Arguments})
}
