package schema

import (
	"strings"
	"sync"

	"github.com/go-playground/validator/v10"
)

// engine is go-playground's validator, for what only it can decide. It reads
// no struct tags: each use names the tag.
var engine = sync.OnceValue(func() *validator.Validate {
	return validator.New(validator.WithRequiredStructEnabled())
})

// playground returns the check that go-playground makes for one tag. A panic
// in it counts as a failed check: its tags panic on values they do not expect.
func playground(tag string) func(any) bool {
	return ask(engine(), tag)
}

func ask(v *validator.Validate, tag string) func(any) bool {
	return func(value any) (ok bool) {
		defer func() {
			if recover() != nil {
				ok = false
			}
		}()
		return v.Var(value, tag) == nil
	}
}

// playgroundTag writes a rule as go-playground reads it.
func playgroundTag(name, param string, hasParam bool) string {
	if !hasParam {
		return name
	}
	return name + "=" + strings.NewReplacer(",", "0x2C", "|", "0x7C").Replace(param)
}
