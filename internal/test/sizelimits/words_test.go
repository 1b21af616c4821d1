package sizelimits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// pattern is a turn of phrase that a reader stumbles over, with the number of places
// that still have it. These numbers only fall: whoever rewrites a place lowers them.
type pattern struct {
	name, expression         string
	comments, pages, message int
}

var patterns = []pattern{
	{"tells-whether", `^[A-Za-z.]+ tells? (whether|if|that|what|which|how|why|who)\b`, 0, 0, 0},
	{"told", `\b(is|are|was|were|be|been|being|gets?) told\b`, 0, 0, 0},
	{"hear", `\b([Hh]ears?|[Hh]eard|[Hh]earing)\b`, 7, 0, 14},
	{"he", `\b([Hh]e|[Hh]im|[Hh]is|[Hh]imself)\b`, 0, 0, 0},
	{"free-who", `\b(for|to|by|of|from|with|than|before|if|what) who [a-z]+|(^|[.:;] )Who [a-z]+`, 0, 0, 0},
	{"somebody", `\b([Nn]obody|[Ss]omebody|[Ee]verybody|[Aa]nybody|[Ww]hoever)\b`, 1, 1, 2},
	{"what-first", `(^|[.:;] )What (is|was|has|had|comes|came|goes|an?|it|they|others?|one|this|that|cannot|may|must|does|follows|waits|nobody|somebody|users?|clients?) `, 1, 0, 0},
	{"is-another", `\b(is|are|was|were|be) (another|others|another one)\b`, 1, 0, 2},
	{"is-no", `(^|[^e]|[^r]e) (is|are|was|were|be) no [a-z]+`, 1, 0, 6},
	{"is-none", `(^|[^e]|[^r]e) (is|are|was|were|be) none\b`, 0, 0, 2},
	{"adverbs", `\b(all the same|meanwhile|anew|likewise|for ever|beside|in all)\b`, 0, 1, 0},
	{"but-for", `\bbut for\b`, 0, 0, 0},
	{"so-many", `\b[Ss]o (long|often|many|much|soon) ([a-z]+|at)\b`, 0, 0, 0},
	{"for-whom", `\b(by|with|in|of|for|from|to|after|under|behind|on|at|against) (whom|whose)\b`, 0, 0, 0},
	{"impersonal", `\b(is|was|are|were|be|been) (waited|looked|listened|cared|gone|spoken) (for|at|after|to|about|on)\b`, 1, 0, 2},
	{"under-way", `\bunder way\b`, 0, 0, 0},
	{"goes-on", `\b(goes|go|went|going) on\b`, 0, 0, 0},
	{"away", `\b(is|was|are|were|be) (away|well|silent)\b|taken for gone`, 0, 1, 2},
	{"func-noun", `\b(a|an|the|its|this|each|any|no|one|two|whose|users'|other|same|of|[Aa]ll|that) funcs?\b`, 0, 0, 0},
	{"stands", `\b[Ss]tands? (alone|beside|there|in|on|before|behind|outside|above|below|around|open|between)\b`, 0, 0, 1},
	{"metaphor", `\b([Kk]nocks?|[Ii]nsists?|[Jj]udge[sd]?|[Ll]apsed?|[Ee]ntrusted|[Cc]onfided|[Ee]rrands?|[Ss]poil[st]?|[Mm]end(s|ed|ing)?|[Ss]trangers?|[Tt]ends|[Pp]atience|[Ww]itness(es)?)\b`, 9, 0, 0},
	{"split-rel", `\b(is|are|was|were|be|been) ([a-z]+ed|kept|left|made|sent|lost|found|read|held) (that|which|who|whose) (was|were|is|are|has|have|had|does|do|did|can|cannot|could|may|must|no|nobody|it|he|they)\b`, 0, 0, 0},
	{"alone", `\balone\b`, 0, 0, 1},
	{"may-have", `\b[Mm]ay have (at most|up to|[0-9]|all|as|so|a tenth|an? [a-z]+ of)\b`, 0, 0, 0},
	{"limit-msg", `, which is the (limit|most)\b`, 0, 0, 1},
}

// mayStay are lines of pages that a pattern finds and that are right, by their beginning.
var mayStay = []string{}

// TestWords counts the patterns in the comments of programs, in the pages, and in the
// texts of errors and logs.
func TestWords(t *testing.T) {
	var comments, pages, messages []placed
	err := filepath.WalkDir("../../..", func(name string, d fs.DirEntry, err error) error {
		switch base := d.Name(); {
		case err != nil:
			return err
		case d.IsDir() && (base == "testdata" || base == "node_modules" || base == "test" || strings.HasPrefix(base, ".") && base != ".." && base != "."): // internal/test has only tests
			return fs.SkipDir
		case strings.HasSuffix(base, "_test.go"):
			return nil
		case strings.HasSuffix(base, ".go"):
			c, m, err := prose(name)
			comments, messages = append(comments, c...), append(messages, m...)
			return err
		case strings.HasSuffix(base, ".md") && base != "CHANGELOG.md":
			p, err := lines(name)
			pages = append(pages, p...)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(comments) < 9_000 || len(pages) < 2_000 || len(messages) < 1_000 {
		t.Fatalf("found %d comments, %d lines of pages and %d messages only", len(comments), len(pages), len(messages))
	}
	total := 0
	for _, p := range patterns {
		re := regexp.MustCompile(p.expression)
		total += atMost(t, p.name, "comments", re, comments, p.comments)
		atMost(t, p.name, "lines of pages", re, pages, p.pages)
		atMost(t, p.name, "messages", re, messages, p.message)
	}
	t.Logf("%d comments have a pattern", total)
}

// placed is a text with the place that it is at.
type placed struct{ at, text string }

// atMost returns how many texts have a pattern, and reports all of them if they are
// more than limit.
func atMost(t *testing.T, name, what string, re *regexp.Regexp, texts []placed, limit int) int {
	t.Helper()
	var found []placed
	for _, text := range texts {
		if re.MatchString(text.text) {
			found = append(found, text)
		}
	}
	switch {
	case len(found) > limit:
		t.Errorf("%s: %d %s, at most %d may have it", name, len(found), what, limit)
		for _, f := range found {
			t.Logf("%s: %s", f.at, f.text)
		}
	case len(found) < limit:
		t.Logf("%s: %d %s; lower the limit of %d", name, len(found), what, limit)
	}
	return len(found)
}

// prose returns the comments of a file, and the texts that it gives to errors and logs.
func prose(name string) (comments, messages []placed, err error) {
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, name, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, nil, err
	}
	for _, group := range f.Comments {
		comments = append(comments, placed{files.Position(group.Pos()).String(), strings.Join(strings.Fields(group.Text()), " ")})
	}
	ast.Inspect(f, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || !speaks[called(call)] {
			return true
		}
		for _, argument := range call.Args {
			ast.Inspect(argument, func(n ast.Node) bool {
				if l, ok := n.(*ast.BasicLit); ok && l.Kind == token.STRING {
					if text, err := strconv.Unquote(l.Value); err == nil && len(text) > 12 && strings.Contains(text, " ") {
						messages = append(messages, placed{files.Position(l.Pos()).String(), text})
					}
				}
				return true
			})
		}
		return true
	})
	return comments, messages, nil
}

// speaks are functions whose texts people read.
var speaks = map[string]bool{
	"Errorf": true, "New": true, "Msg": true, "Msgf": true, "Invalid": true, "Errorln": true, "panic": true,
	"Error": true, "Fail": true, "issue": true, "problem": true,
}

func called(call *ast.CallExpr) string {
	switch fn := call.Fun.(type) {
	case *ast.SelectorExpr:
		return fn.Sel.Name
	case *ast.Ident:
		return fn.Name
	}
	return ""
}

// lines returns the lines of a page that are not code.
func lines(name string) ([]placed, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, err
	}
	var all []placed
	code := false
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "```") {
			code = !code
			continue
		}
		stays := code
		for _, beginning := range mayStay {
			stays = stays || strings.HasPrefix(line, beginning)
		}
		if !stays {
			all = append(all, placed{name, strings.TrimSpace(line)})
		}
	}
	return all, nil
}
