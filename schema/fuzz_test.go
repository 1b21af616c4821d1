package schema

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/talaria-go/mcp/schema/internal/wording"
)

// FuzzDecode checks that the decoder never panics, accepts nothing but JSON,
// and accepts in strict mode only what the schema accepts.
func FuzzDecode(f *testing.F) {
	for _, c := range documentCases {
		if len(c.input) < 2000 {
			f.Add([]byte(c.input))
		}
	}
	f.Add([]byte(searchJSON))
	f.Add([]byte(`{"name":"a","children":[{"name":"b","named":{"x":{"name":"c"}}}]}`))
	f.Add([]byte(`{"text":"ab","id":1,"count":1,"tags":["a","a"],"maybe":null,"wait":"1h","shape":{"kind":"circle","r":1},"grid":"[1,2]"}`))
	var plans []*Plan
	var raws []*judge
	for _, v := range []any{sink{}, corners{}, tree{}, searchArgs{}, conditions{}, builtins{}, drawing{}} {
		for _, strict := range []bool{true, false} {
			p, err := Compile(reflect.TypeOf(v), &Options{Strict: strict, Unions: []UnionType{figures}})
			if err != nil {
				f.Fatal(err)
			}
			r, err := newJudge(f, p.JSON())
			if err != nil {
				f.Fatal(err)
			}
			plans, raws = append(plans, p), append(raws, r)
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for i, p := range plans {
			err := p.Check(data)
			var e *Error
			if err != nil && !errors.As(err, &e) {
				t.Fatalf("%s: %v", p.typ, err)
			}
			if err != nil || len(data) == 0 {
				continue
			}
			if !json.Valid(data) {
				t.Fatalf("%s accepts %q, which is not JSON", p.typ, data)
			}
			if p.opts.Strict {
				raws[i].tb = t
				if err := raws[i].Check(data); err != nil && !onlyRange(err) {
					t.Fatalf("%s accepts %s, which its schema refuses: %v", p.typ, data, err)
				}
			}
		}
	})
}

// onlyRange tells whether a document was refused just for numbers that cannot
// be compared exactly in reasonable time.
func onlyRange(err error) bool {
	var e *Error
	return errors.As(err, &e) && !slices.ContainsFunc(e.Issues, func(is Issue) bool { return is.Rule != wording.RuleRange })
}
