package rules

import (
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/talaria-go/mcp/schema/internal/tags"
)

// Consistency returns problems of rules on one field that cannot hold together,
// or of which one makes another superfluous. Each rule must compile by itself.
func Consistency(rs []tags.Rule, t Target) []tags.Problem {
	var problems []tags.Problem
	seen := map[string]string{}
	for _, r := range rs {
		if len(r.Or) > 0 || Table()[r.Name].compile == nil {
			continue
		}
		op := Operator(r.Name)
		if before, ok := seen[op]; ok && IsBound(op) {
			problems = append(problems, *r.Fault(fmt.Sprintf("%s and %s say the same thing twice", before, r.Written), "keep one of them"))
		}
		seen[op] = r.Written
	}
	if p := emptyRange(rs, t); p != nil {
		return append(problems, *p)
	}
	return append(problems, impossibleValues(rs, t)...)
}

// IsBound reports whether an operator limits a value or a length, or lists
// values. Two uses of one such operator on a field are redundant or contradict
// each other.
func IsBound(op string) bool {
	switch op {
	case "min", "max", "gt", "lt", "len", "eq", "oneof":
		return true
	}
	return false
}

// limit is one end of a range: the rule, its number, and whether the number
// itself is outside.
type limit struct {
	r         tags.Rule
	n         Number
	exclusive bool
}

// emptyRange returns the problem of bounds that leave no value, or nil.
func emptyRange(rs []tags.Rule, t Target) *tags.Problem {
	var low, high *limit
	for _, r := range rs {
		n, ok := boundOf(r, t)
		if !ok {
			continue
		}
		switch op := Operator(r.Name); op {
		case "min", "gt":
			low = tighter(low, &limit{r, n, op == "gt"}, +1)
		case "max", "lt":
			high = tighter(high, &limit{r, n, op == "lt"}, -1)
		case "len", "eq":
			low = tighter(low, &limit{r, n, false}, +1)
			high = tighter(high, &limit{r, n, false}, -1)
		}
	}
	if low == nil || high == nil {
		return nil
	}
	whole := t.Kind != KindFloat && t.Kind != KindDuration
	from, to := new(big.Rat).Set(low.n.Rat()), new(big.Rat).Set(high.n.Rat())
	if whole && low.exclusive {
		from.Add(from, big.NewRat(1, 1))
	}
	if whole && high.exclusive {
		to.Sub(to, big.NewRat(1, 1))
	}
	c := from.Cmp(to)
	if c < 0 || c == 0 && (whole || !low.exclusive && !high.exclusive) {
		return nil
	}
	tag := low.r.Tag() + " " + high.r.Tag()
	if !low.r.Keyword && !high.r.Keyword {
		tag = fmt.Sprintf("validate:%q", low.r.Written+","+high.r.Written)
	}
	p := tags.Problem{Tag: tag, Msg: fmt.Sprintf("no value satisfies both %s and %s", low.r.Written, high.r.Written), Fix: "make the lower bound smaller than the upper one"}
	return &p
}

// tighter returns the stricter of two ends; sign is +1 for lower ends and -1
// for upper ends.
func tighter(a, b *limit, sign int) *limit {
	if a == nil {
		return b
	}
	if c := b.n.compare(a.n) * sign; c > 0 || c == 0 && b.exclusive {
		return b
	}
	return a
}

// boundOf returns the number of a size rule that limits a length or a value; ok
// is false for any other rule.
func boundOf(r tags.Rule, t Target) (Number, bool) {
	if len(r.Or) > 0 || !IsBound(Operator(r.Name)) || r.Name == "oneof" || !r.HasParam ||
		t.Kind == KindText && r.Name == "eq" || t.Kind == KindTime || t.Kind == KindDate {
		return Number{}, false
	}
	n, p := limitOf(r, t)
	return n, p == nil
}

// impossibleValues returns problems for values that one rule lists and another
// refuses.
func impossibleValues(rs []tags.Rule, t Target) []tags.Problem {
	var problems []tags.Problem
	for i, r := range rs {
		for _, v := range listedValues(r, t) {
			for j, other := range rs {
				if i == j || len(other.Or) > 0 || other.Name == r.Name {
					continue
				}
				if by, ok := refuses(other, t, v); ok {
					problems = append(problems, *r.Fault(fmt.Sprintf("the value %s can never be used: %s refuses it", v, by), "remove the value or change "+by))
				}
			}
		}
	}
	return problems
}

// listedValues returns the values that a rule names one by one, as text.
func listedValues(r tags.Rule, t Target) []string {
	switch r.Name {
	case "eq", "len":
		if r.Name == "eq" && (t.Kind == KindText || t.Kind == KindBool) || t.Kind == KindInt || t.Kind == KindUint || t.Kind == KindFloat {
			return []string{r.Param}
		}
	case "oneof":
		words, _ := tags.Words(r.Param)
		return words
	}
	return nil
}

// refuses reports whether a rule fails for a value given as text, and how the
// rule is written.
func refuses(r tags.Rule, t Target, text string) (string, bool) {
	checks, p := Compile(r, t)
	if p != nil {
		return "", false
	}
	for _, c := range checks {
		if !passes(c, text) {
			return r.Written, true
		}
	}
	return "", false
}

// passes runs a check on a value given as text. A text that is not a value of
// that kind passes.
func passes(c Check, text string) bool {
	switch test := c.Test.(type) {
	case TextTest:
		return test(text)
	case NumberTest:
		n, ok := numberIn(text)
		return !ok || test(n)
	case BoolTest:
		return test(text == "true")
	}
	return true
}

// numberIn reads a number as a tag writes it: an integer, a duration or a
// decimal.
func numberIn(text string) (Number, bool) {
	if n, err := strconv.ParseInt(text, 0, 64); err == nil {
		return SignedNumber(n), true
	}
	if n, err := strconv.ParseUint(text, 0, 64); err == nil {
		return unsignedNumber(n), true
	}
	if d, err := time.ParseDuration(text); err == nil {
		return SignedNumber(int64(d)), true
	}
	f, err := strconv.ParseFloat(text, 64)
	return Number{Float: f}, err == nil
}
