package rules

import (
	"strings"

	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/schema/internal/tags"
)

// Validator is what rules need of go-playground's validator: Var checks a value
// by a tag. It does not read tags of structs.
type Validator interface {
	Var(value any, tag string) error
}

// asked are the rules that only go-playground's validator can decide: large
// registers, and checksums that take more than arithmetic.
var asked = map[string]bool{
	"iso3166_2": true, "bcp47_language_tag": true, "bcp47_strict_language_tag": true, "urn_rfc2141": true, "urn_rfc8141": true,
	"btc_addr": true, "btc_addr_bech32": true, "eth_addr_checksum": true,
	"postcode_iso3166_alpha2": true, "postcode_iso3166_alpha2_field": true,
	"filepath": true, "dirpath": true, "image": true, "mimetype": true, "uds_exists": true,
}

// Unasked returns the problem of a rule that needs a Validator where there is
// none.
func Unasked(r tags.Rule) *tags.Problem {
	return r.Fault(r.Name+" is decided by go-playground's validator, which is linked only into programs that ask for it",
		"set schema.Options.Validator to validator.New()")
}

// Ask returns the check that v makes for one rule. If v panics, as
// go-playground does for values that a tag does not expect, the check fails.
func Ask(v Validator, name, param string, hasParam bool) func(any) bool {
	tag := PlaygroundTag(name, param, hasParam)
	return func(value any) (ok bool) {
		err := safely.Call(func() { ok = v.Var(value, tag) == nil })
		return ok && err == nil
	}
}

// PlaygroundTag returns a rule in go-playground's grammar.
func PlaygroundTag(name, param string, hasParam bool) string {
	if !hasParam {
		return name
	}
	return name + "=" + strings.NewReplacer(",", "0x2C", "|", "0x7C").Replace(param)
}
