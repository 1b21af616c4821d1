package inspector

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/schema"
	"github.com/talaria-go/mcp/schema/raw"
)

// schemas are the compiled schemas of tools and questions, each by its text: to
// compile one takes a thousand times as long as to check with it.
type schemas struct {
	mu   sync.Mutex
	made map[[32]byte]compiled
	n    int                 // how often one was compiled, for tests
	bad  map[[32]byte]string // what is wrong with those that were checked, "" for nothing
}

// compiled is a schema, or why there is none.
type compiled struct {
	schema *raw.Schema
	err    error
}

// The bounds of schemas: how many are kept, and how long one may be.
const (
	maxSchemas = 64
	maxSchema  = 1 << 20
	maxBad     = 4096
)

func (s *schemas) compile(text []byte) (*raw.Schema, error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("the schema has %d bytes, too many to check with", len(text))
	}
	key := sha256.Sum256(text)
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, known := s.made[key]; known {
		return made.schema, made.err
	}
	var made compiled
	made.schema, made.err = raw.Compile(text)
	if s.made == nil || len(s.made) >= maxSchemas {
		s.made = map[[32]byte]compiled{}
	}
	s.n++
	s.made[key] = made
	return made.schema, made.err
}

// unsupported finds the error of a pattern that JSON Schema allows and regexp does not have: one that looks
// around or refers back.
var unsupported = regexp.MustCompile("not a regular expression that this supports: .*(unsupported Perl syntax: `\\(\\?<?[=!]|invalid escape sequence: `\\\\[1-9k])")

// fault is what is wrong with a schema at a place of a definition, with the keyword that
// says so; "" if nothing is. The values of some must be objects.
func (s *schemas) fault(at string, text []byte, object bool) string {
	switch {
	case len(text) == 0:
		return at + `: is missing; write at least {"type": "object"}`
	case len(text) > maxSchema:
		return ""
	}
	key := sha256.Sum256(text)
	s.mu.Lock()
	bad, known := s.bad[key]
	s.mu.Unlock()
	if !known {
		if _, err := raw.Compile(text); err != nil && !unsupported.MatchString(err.Error()) {
			bad = strings.TrimPrefix(strings.TrimPrefix(err.Error(), "schema: "), "(root)")
			if bad[0] != '/' && bad[0] != ':' {
				bad = ": " + bad
			}
		}
		s.mu.Lock()
		if s.bad == nil || len(s.bad) >= maxBad {
			s.bad = map[[32]byte]string{}
		}
		s.bad[key] = bad
		s.mu.Unlock()
	}
	if bad != "" {
		return at + bad
	}
	var root struct{ Type json.RawMessage }
	_ = json.Unmarshal(text, &root) // true and false have none
	if got := string(root.Type); object && got != `"object"` {
		return fmt.Sprintf(`%s/type: must be "object"; got %s`, at, cmp.Or(got, "none"))
	}
	return ""
}

// check holds a value against a schema. A value that cannot be checked is an
// issue, too.
func (s *schemas) check(text, value []byte) []schema.Issue {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil
	}
	compiled, err := s.compile(text)
	if err != nil {
		return []schema.Issue{{Rule: "schema", Message: "it cannot be checked: " + visible.Line(err.Error(), visible.Sentence)}}
	}
	faults, ok := errors.AsType[*schema.Error](compiled.Check(value))
	if !ok {
		return nil
	}
	issues := faults.Issues[:min(len(faults.Issues), 100)]
	for n := range issues {
		issues[n].Message = visible.Line(issues[n].Message, visible.Sentence)
		issues[n].Hint = visible.Line(issues[n].Hint, visible.Sentence)
	}
	return issues
}

// narrowed puts in the place of each issue of a union what is wrong with the variant that
// was chosen in the form. chosen are the indexes of variants by the places of their unions.
func (s *schemas) narrowed(text, value json.RawMessage, issues []schema.Issue, chosen map[string]int) []schema.Issue {
	union := func(one schema.Issue) bool {
		_, ok := chosen[one.Path]
		return ok && (one.Rule == "anyOf" || one.Rule == "oneOf")
	}
	if !slices.ContainsFunc(issues, union) {
		return issues
	}
	root, err := arguments.ReadField(text)
	if err != nil {
		return issues
	}
	var defs map[string]json.RawMessage
	_ = json.Unmarshal(text, &defs) // it was read
	left := narrowedRead
	var narrow func(list []schema.Issue, depth int) []schema.Issue
	narrow = func(list []schema.Issue, depth int) (out []schema.Issue) {
		for _, one := range list {
			var found []schema.Issue
			if left -= len(text); union(one) && depth > 0 && left > 0 {
				found = s.ofVariant(root, defs, value, one.Path, chosen)
			}
			if len(found) == 0 {
				out = append(out, one)
				continue
			}
			for n := range found {
				found[n].Path = one.Path + found[n].Path
			}
			out = append(out, narrow(found, depth-1)...)
		}
		return out
	}
	return narrow(issues, maxNarrowed)
}

// ofVariant checks the value at a place against the variant that is chosen there.
func (s *schemas) ofVariant(f arguments.Field, defs map[string]json.RawMessage, value json.RawMessage, path string, chosen map[string]int) []schema.Issue {
	at := ""
	for n, name := range strings.Split(path, "/") {
		if n > 0 {
			at += "/" + name
			var ok bool
			if f, value, ok = within(f, value, strings.NewReplacer("~1", "/", "~0", "~").Replace(name)); !ok {
				return nil
			}
		}
		if f.Union() {
			variant, ok := chosen[at]
			if !ok || variant < 0 || variant >= len(f.Variants) {
				return nil
			}
			f = f.Variants[variant].Field
		}
	}
	alone := map[string]any{"allOf": []json.RawMessage{f.Schema}}
	for _, name := range []string{"$schema", "$defs", "definitions"} {
		if defs[name] != nil {
			alone[name] = defs[name]
		}
	}
	text, err := json.Marshal(alone)
	if err != nil {
		return nil
	}
	found := s.check(text, value)
	if len(found) == 1 && found[0].Rule == "schema" { // it refers to what is elsewhere
		return nil
	}
	return found
}
