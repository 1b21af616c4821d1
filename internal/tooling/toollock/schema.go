package toollock

import (
	"maps"
	"slices"
	"strings"
)

// maxSteps is how many pairs of schemas one comparison looks at. Unions within unions
// can have many.
const maxSteps = 20_000

// walk compares two schemas: whether wide accepts whatever narrow accepts. For
// arguments wide is the new one, since callers may continue as before; for results it
// is the old one, since their readers may.
type walk struct {
	wideRoot, narrowRoot any
	results              bool
	add                  func(Class, string)
	open                 map[[2]string]bool // pairs of references that are being compared
	steps                int
}

// compareSchemas adds the differences of two schemas.
func compareSchemas(wide, narrow any, results bool, add func(Class, string)) {
	w := &walk{wideRoot: wide, narrowRoot: narrow, results: results, open: map[[2]string]bool{}}
	found := false
	seen := map[string]bool{}
	w.add = func(class Class, text string) {
		found = true
		if line := class.String() + text; !seen[line] {
			seen[line] = true
			add(class, text)
		}
	}
	w.compare(wide, narrow, "")
	switch {
	case w.steps > maxSteps:
		add(Breaking, w.subject("")+" has too many forms to be compared")
	case found:
	case results:
		add(Compatible, "its results can have less than before")
	default:
		add(Compatible, "its arguments take more than before")
	}
}

// subject returns what a place is called.
func (w *walk) subject(path string) string {
	switch {
	case w.results && path == "":
		return "the result"
	case w.results:
		return "the result's " + path
	case path == "":
		return "the arguments"
	}
	return path
}

// broken adds that a place has another range now, because of a keyword.
func (w *walk) broken(path, keyword string) {
	if w.results {
		w.add(Breaking, w.subject(path)+" can have more than before ("+keyword+")")
	} else {
		w.add(Breaking, w.subject(path)+" takes less than before ("+keyword+")")
	}
}

// then returns the older of two values first.
func then[T any](w *walk, wide, narrow T) (was, is T) {
	if w.results {
		return wide, narrow
	}
	return narrow, wide
}

// covers reports whether nothing is breaking between two schemas without unions.
func (w *walk) covers(wide, narrow map[string]any, path string) bool {
	told, good := w.add, true
	w.add = func(class Class, _ string) { good = good && class != Breaking }
	w.simple(wide, narrow, path)
	w.add = told
	return good
}

// compare compares two schemas at a place.
func (w *walk) compare(wide, narrow any, path string) {
	if w.steps++; w.steps > maxSteps {
		return
	}
	wide, wideRef := resolve(w.wideRoot, wide)
	narrow, narrowRef := resolve(w.narrowRoot, narrow)
	if wideRef != "" || narrowRef != "" {
		pair := [2]string{wideRef, narrowRef}
		if w.open[pair] {
			return // a recursive type is as its parts are
		}
		w.open[pair] = true
		defer delete(w.open, pair)
	}
	ones, others := forms(w.wideRoot, wide), forms(w.narrowRoot, narrow)
	if len(ones) == 1 && len(others) == 1 {
		w.simple(ones[0], others[0], path)
		return
	}
	w.words(object(wide), object(narrow), path)
	if exclusive(wide) && !equal(wide, narrow) && !apart(ones) {
		w.broken(path, "oneOf")
		return
	}
	for i, other := range others {
		if slices.ContainsFunc(ones, func(one map[string]any) bool { return w.covers(one, other, path) }) {
			continue
		}
		if len(ones) == len(others) {
			w.simple(ones[i], other, path)
		} else {
			w.broken(path, "one of its forms")
		}
	}
}

// simple compares two schemas without unions.
func (w *walk) simple(wide, narrow map[string]any, path string) {
	if w.steps++; w.steps > maxSteps {
		return
	}
	w.words(wide, narrow, path)
	w.members(wide, narrow, path)
	for _, keyword := range slices.Sorted(maps.Keys(union(wide, narrow))) {
		if !w.keyword(keyword, wide, narrow, path) {
			w.broken(path, keyword)
		}
	}
}

// keyword reports whether a keyword of wide leaves all that narrow accepts.
func (w *walk) keyword(keyword string, wide, narrow map[string]any, path string) bool {
	one, has := wide[keyword]
	other, stays := narrow[keyword]
	switch keyword {
	case "$defs", "definitions", "properties", "required", "additionalProperties":
		return true
	case "type":
		return !has || equal(one, other) || one == "number" && other == "integer"
	case "enum", "const":
		return subset(values(narrow), values(wide))
	case "minimum", "exclusiveMinimum":
		return !above(bound(wide, "minimum", "exclusiveMinimum", 1), bound(narrow, "minimum", "exclusiveMinimum", 1))
	case "maximum", "exclusiveMaximum":
		return !above(bound(wide, "maximum", "exclusiveMaximum", -1), bound(narrow, "maximum", "exclusiveMaximum", -1))
	case "minLength", "minItems", "minProperties":
		least := bound(wide, keyword, "", 1)
		return least.value != nil && least.value.Sign() <= 0 || !above(least, bound(narrow, keyword, "", 1))
	case "maxLength", "maxItems", "maxProperties":
		return !above(bound(wide, keyword, "", -1), bound(narrow, keyword, "", -1))
	case "pattern", "format", "contentEncoding", "contentMediaType", "multipleOf":
		return !has || equal(one, other)
	case "uniqueItems":
		return one != true || other == true
	case "items":
		if !has {
			one = true
		}
		if !stays {
			other = true
		}
		w.compare(one, other, path+"/[]")
		return true
	}
	return annotation(keyword) || has == stays && equal(one, other) // of a keyword that is not known here nothing can be said
}

// words compares what only a model reads.
func (w *walk) words(wide, narrow map[string]any, path string) {
	for _, keyword := range slices.Sorted(maps.Keys(union(wide, narrow))) {
		if annotation(keyword) && !equal(wide[keyword], narrow[keyword]) {
			w.add(Words, w.subject(path)+": its "+keyword+" differs")
		}
	}
}

// members compares the members of objects.
func (w *walk) members(wide, narrow map[string]any, path string) {
	was, is := then(w, object(wide["properties"]), object(narrow["properties"]))
	wasRequired, isRequired := then(w, names(wide["required"]), names(narrow["required"]))
	for _, name := range slices.Sorted(maps.Keys(union(was, is))) {
		before, old := was[name]
		after, now := is[name]
		at := path + "/" + pointer.Replace(name)
		switch {
		case !now:
			w.add(Breaking, w.subject(at)+" is gone")
		// Of callers who sent it before it had a meaning there are none to speak of.
		case !old && (w.results || isRequired[name] == nil):
			w.add(Compatible, w.subject(at)+" is new")
		case old:
			one, other := then(w, before, after)
			w.compare(one, other, at)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(union(wasRequired, isRequired))) {
		at := path + "/" + pointer.Replace(name)
		switch {
		case !w.results && wasRequired[name] == nil:
			w.add(Breaking, w.subject(at)+" is required now")
		case w.results && isRequired[name] == nil && is[name] != nil:
			w.add(Breaking, w.subject(at)+" can be missing now")
		}
	}
	one, has := wide["additionalProperties"]
	other, stays := narrow["additionalProperties"]
	if !has {
		one = true
	}
	if !stays {
		other = true
	}
	if !equal(one, other) || one != true && one != false {
		w.compare(one, other, path+"/*")
	}
}

// pointer escapes a name as a JSON pointer does.
var pointer = strings.NewReplacer("~", "~0", "/", "~1")
