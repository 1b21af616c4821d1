package schema

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"time"
)

// checkConsistency reports rules of one field that cannot hold together. It
// takes rules that compile.
func checkConsistency(rs []rule, t target) []problem {
	var problems []problem
	seen := map[string]string{}
	for _, r := range rs {
		if len(r.or) > 0 || ruleTable[r.name].compile == nil {
			continue
		}
		op := operator(r.name)
		if before, ok := seen[op]; ok && isBound(op) {
			problems = append(problems, *r.fault(fmt.Sprintf("%s and %s say the same thing twice", before, r.written), "keep one of them"))
		}
		seen[op] = r.written
	}
	if p := emptyRange(rs, t); p != nil {
		return append(problems, *p)
	}
	return append(problems, impossibleValues(rs, t)...)
}

func isBound(op string) bool {
	switch op {
	case "min", "max", "gt", "lt", "len", "eq", "oneof":
		return true
	}
	return false
}

// limit is one end of a range: a rule and its number.
type limit struct {
	r         rule
	n         *big.Rat
	exclusive bool
}

// emptyRange reports bounds that leave no value.
func emptyRange(rs []rule, t target) *problem {
	var low, high *limit
	for _, r := range rs {
		n, ok := boundOf(r, t)
		if !ok {
			continue
		}
		switch op := operator(r.name); op {
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
	whole := t.kind != kindFloat && t.kind != kindDuration
	from, to := new(big.Rat).Set(low.n), new(big.Rat).Set(high.n)
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
	p := tagProblem(low.r.written+","+high.r.written, fmt.Sprintf("no value satisfies both %s and %s", low.r.written, high.r.written), "make the lower bound smaller than the upper one")
	return &p
}

// tighter returns the stricter of two ends; sign is +1 for lower ends.
func tighter(a, b *limit, sign int) *limit {
	if a == nil {
		return b
	}
	if c := b.n.Cmp(a.n) * sign; c > 0 || c == 0 && b.exclusive {
		return b
	}
	return a
}

// boundOf returns the number of a size rule that bounds a length or a value.
func boundOf(r rule, t target) (*big.Rat, bool) {
	if len(r.or) > 0 || !isBound(operator(r.name)) || r.name == "oneof" || !r.hasParam {
		return nil, false
	}
	switch t.kind {
	case kindText:
		if r.name == "eq" {
			return nil, false
		}
	case kindDuration:
		d, p := durationParam(r, t)
		return new(big.Rat).SetInt64(int64(d)), p == nil
	case kindFloat:
		f, err := strconv.ParseFloat(r.param, 64)
		if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
			return nil, false
		}
		return new(big.Rat).SetFloat64(f), true
	case kindUint:
		n, err := strconv.ParseUint(r.param, 0, 64)
		return new(big.Rat).SetFrac(new(big.Int).SetUint64(n), big.NewInt(1)), err == nil
	case kindTime, kindDate:
		return nil, false
	}
	n, p := parseInteger(r)
	return new(big.Rat).SetInt64(n), p == nil
}

// impossibleValues reports values listed by one rule that another refuses.
func impossibleValues(rs []rule, t target) []problem {
	var problems []problem
	for i, r := range rs {
		for _, v := range listedValues(r, t) {
			for j, other := range rs {
				if i == j || len(other.or) > 0 || other.name == r.name {
					continue
				}
				if by, ok := refuses(other, t, v); ok {
					problems = append(problems, *r.fault(fmt.Sprintf("the value %s can never be used: %s refuses it", v, by), "remove the value or change "+by))
				}
			}
		}
	}
	return problems
}

// listedValues are the values that a rule names one by one.
func listedValues(r rule, t target) []string {
	switch r.name {
	case "eq", "len":
		if r.name == "eq" && (t.kind == kindText || t.kind == kindBool) || t.kind == kindInt || t.kind == kindUint || t.kind == kindFloat {
			return []string{r.param}
		}
	case "oneof":
		words, _ := splitWords(r.param)
		return words
	}
	return nil
}

// refuses reports whether a rule fails for a value given as text.
func refuses(r rule, t target, text string) (string, bool) {
	checks, p := compileRule(r, t)
	if p != nil {
		return "", false
	}
	for _, c := range checks {
		if c.custom == nil && !passes(c, text) {
			return r.written, true
		}
	}
	return "", false
}

// passes runs a check on a value given as text; a text that is no such value
// passes.
func passes(c check, text string) bool {
	switch {
	case c.text != nil:
		return c.text(text)
	case c.integer != nil:
		n, err := strconv.ParseInt(text, 0, 64)
		if err != nil {
			d, err := time.ParseDuration(text)
			return err != nil || c.integer(int64(d))
		}
		return c.integer(n)
	case c.unsigned != nil:
		n, err := strconv.ParseUint(text, 0, 64)
		return err != nil || c.unsigned(n)
	case c.float != nil:
		f, err := strconv.ParseFloat(text, 64)
		return err != nil || c.float(f)
	case c.boolean != nil:
		return c.boolean(text == "true")
	}
	return true
}
