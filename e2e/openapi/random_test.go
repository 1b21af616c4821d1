package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// tree is a decoded schema.
type tree = map[string]any

// generator makes random values that a schema should take.
type generator struct {
	*rand.Rand
	root tree
}

// value returns a value of a schema; depth bounds optional parts.
func (g *generator) value(v any, depth int) any {
	s, ok := v.(tree)
	if !ok || depth > 30 {
		return "x"
	}
	if ref, ok := s["$ref"].(string); ok {
		defs, _ := g.root["$defs"].(tree)
		return g.value(defs[strings.TrimPrefix(ref, "#/$defs/")], depth+1)
	}
	if c, ok := s["const"]; ok {
		return c
	}
	if e, ok := s["enum"].([]any); ok {
		return e[g.IntN(len(e))]
	}
	for _, name := range []string{"oneOf", "anyOf"} {
		if list, ok := s[name].([]any); ok {
			i := g.IntN(len(list))
			if depth > 4 {
				i = 0
			}
			picked := g.value(list[i], depth+1)
			return g.merged(picked, without(s, name), depth)
		}
	}
	if list, ok := s["allOf"].([]any); ok {
		var all any
		for _, part := range list {
			if t, ok := part.(tree); ok && len(without(without(t, "description"), "title")) == 0 {
				continue // it says nothing of the value
			}
			all = merge(all, g.value(part, depth+1))
		}
		if all == nil {
			return g.value(without(s, "allOf"), depth+1)
		}
		return g.merged(all, without(s, "allOf"), depth)
	}
	return g.plain(s, depth)
}

// merged adds what the other keywords of a schema say.
func (g *generator) merged(v any, rest tree, depth int) any {
	if rest["properties"] == nil && rest["required"] == nil {
		return v
	}
	return merge(g.plain(rest, depth), v)
}

func without(s tree, name string) tree {
	rest := maps.Clone(s)
	delete(rest, name)
	return rest
}

// merge returns both objects as one, and b for other values.
func merge(a, b any) any {
	x, isA := a.(tree)
	y, isB := b.(tree)
	if !isA || !isB {
		if b == nil {
			return a
		}
		return b
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	return all
}

func (g *generator) plain(s tree, depth int) any {
	kind, _ := s["type"].(string)
	if list, ok := s["type"].([]any); ok && len(list) > 0 {
		kind, _ = list[g.IntN(len(list))].(string)
	}
	if kind == "" {
		switch {
		case s["properties"] != nil || s["required"] != nil:
			kind = "object"
		case s["items"] != nil:
			kind = "array"
		}
	}
	switch kind {
	case "object":
		return g.object(s, depth)
	case "array":
		low, high := number(s["minItems"], 0), number(s["maxItems"], 3)
		n := int(low)
		if depth < 4 && high > low {
			n += g.IntN(int(min(high-low, 3)) + 1)
		}
		if n == 0 && high > 0 && depth < 4 {
			n = 1
		}
		list := make([]any, 0, n)
		for len(list) < n {
			item := g.value(s["items"], depth+1)
			if s["uniqueItems"] == true && slices.ContainsFunc(list, func(o any) bool { return fmt.Sprint(o) == fmt.Sprint(item) }) {
				break
			}
			list = append(list, item)
		}
		return list
	case "integer", "number":
		low, high := number(s["minimum"], number(s["exclusiveMinimum"], -1)+1), number(s["maximum"], number(s["exclusiveMaximum"], 1e6)-1)
		if high < low {
			high = low
		}
		n := int64(low) + g.Int64N(int64(min(high-low, 1e6))+1)
		if step := int64(number(s["multipleOf"], 1)); step > 1 {
			n -= n % step
			if float64(n) < low {
				n += step
			}
		}
		return json.Number(fmt.Sprint(n))
	case "boolean":
		return g.IntN(2) == 0
	case "null":
		return nil
	}
	return g.text(s)
}

func (g *generator) object(s tree, depth int) any {
	props, _ := s["properties"].(tree)
	required, _ := s["required"].([]any)
	out := tree{}
	for _, name := range slices.Sorted(maps.Keys(props)) {
		if slices.Contains(required, any(name)) || depth < 3 && g.IntN(3) == 0 {
			out[name] = g.value(props[name], depth+1)
		}
	}
	for _, name := range required {
		if _, there := out[name.(string)]; !there {
			out[name.(string)] = g.value(tree{}, depth+1)
		}
	}
	if more, ok := s["additionalProperties"].(tree); ok && depth < 3 {
		out["some"] = g.value(more, depth+1)
	}
	return out
}

// formats are values of formats that are checked.
var formats = map[string][]string{
	"date-time": {"2026-01-02T03:04:05Z"}, "date": {"2026-01-02"}, "time": {"03:04:05Z"}, "email": {"ann@example.com"}, "uri": {"https://example.com/a?b=c"},
	"url": {"https://example.com/"}, "uuid": {"0b4f0e3c-6f0e-4a0b-9c0e-2f9d3a7b1c5d"}, "ipv4": {"192.0.2.1"}, "ipv6": {"2001:db8::1"}, "hostname": {"example.com"},
	"byte": {"aGk="}, "duration": {"PT1H"}, "uri-reference": {"/a"}, "regex": {"a"}, "json-pointer": {"/a"}, "iri": {"https://example.com/"}, "idn-email": {"ann@example.com"},
}

// samples are texts for patterns.
var samples = []string{"a", "abc", "ABC", "1", "12", "123456", "123456789012", "a1", "aB3", "a-b", "a_b", "a.b", "/a", "arn:aws:iam::123456789012:role/a", "AKIAIOSFODNN7EXAMPLE",
	"us-east-1", "2026-01-02", "12:00", "mon:01:00", "true", "0b4f0e3c-6f0e-4a0b-9c0e-2f9d3a7b1c5d", "0b4f0e3c6f0e4a0b9c0e2f9d3a7b1c5d", "https://example.com", "example.com", "en", "en-US", "DE", "EUR", "+4912345", "ann@example.com", "192.0.2.1", "10.0.0.0/16", "a:b", "s3://a/b", "a/b", "{}", "#aabbcc", "1.2.3", "v1", "1.0", "x123456789", "d-1234567890", "i-12345678", "subnet-12345678", "tok_1", "0123456789abcdef", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "xx-xxx-1_abcdefghi"}

func (g *generator) text(s tree) any {
	if s["contentEncoding"] == "base64" {
		return "AAEC/w=="
	}
	if f, ok := s["format"].(string); ok && formats[f] != nil {
		return formats[f][g.IntN(len(formats[f]))]
	}
	low, high := int(number(s["minLength"], 1)), int(number(s["maxLength"], 40))
	if s["pattern"] != nil {
		fit := slices.DeleteFunc(slices.Clone(samples), func(v string) bool { return len(v) < low || len(v) > high || !matches(s["pattern"].(string), v) })
		if len(fit) > 0 {
			return fit[g.IntN(len(fit))]
		}
		return "x"
	}
	runes := []rune("abcXYZ019 -_.,;/?%&=+#@ä漢")
	n := low
	if high > low {
		n += g.IntN(min(high-low, 20) + 1)
	}
	var b strings.Builder
	for range max(n, 1) {
		b.WriteRune(runes[g.IntN(len(runes))])
	}
	return b.String()
}

// number returns a number of a schema.
func number(v any, other float64) float64 {
	n, ok := v.(json.Number)
	if !ok {
		return other
	}
	f, err := n.Float64()
	if err != nil {
		return other
	}
	return f
}
