package inspector

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

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
