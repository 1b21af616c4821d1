package toolsearch

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// index finds tools of one set by their words, ranked by BM25F. It does not change.
type index struct {
	tools    []tool
	words    *vocabulary
	names    map[string]int // in lower case
	terms    map[string]int // stems
	sorted   []string       // the stems, sorted
	postings [][]posting    // by term
	idf      []float64      // by term
	rarest   float64        // the idf of a word that no tool has
	titles   []float64      // by tool, the sum of the idf of the terms of its title
}

// posting is what a tool has of a term.
type posting struct {
	tool     int32
	titled   bool    // it is in the title
	weight   float32 // of BM25F, without the idf
	strength float32 // how well its best place shows what the tool is for, up to 1
}

// fields are the parts of a tool. boost is what a word is worth there, length how much a longer
// part lowers that.
var fields = [...]struct{ boost, length, strength float64 }{
	{3, 0.6, 1},      // name
	{3, 0.6, 1},      // title
	{1, 0.75, 0.8},   // description
	{0.4, 0.75, 0.5}, // names and descriptions of arguments
}

const (
	titleField = 1

	saturation  = 1.2 // k1 of BM25
	titleBonus  = 0.5 // for a tool whose whole title is in the query
	titleShare  = 0.5 // of what a tool has of a query, how much depends on a title that says nothing else
	intentBonus = 0.3 // for a tool that only reads, of a query that reads, and the reverse

	maxField      = 8 << 10 // bytes of a field that are read
	maxQuery      = 4 << 10 // bytes of a query that are read, which 1,000 characters do not exceed
	maxQueryWords = 64      // words of a query that are read
	judged        = 5       // of the tools found, how many may have the words
)

// counted has how often a tool has a term, by field.
type counted [len(fields)]float64

func newIndex(tools []tool, words *vocabulary) *index {
	x := &index{tools: tools, words: words, names: map[string]int{}, terms: map[string]int{}}
	counts := make([]map[int]*counted, len(tools))
	sizes, mean := make([]counted, len(tools)), counted{}
	for i := range tools {
		x.names[strings.ToLower(tools[i].name)] = i
		counts[i] = map[int]*counted{}
		for field, text := range textsOf(&tools[i]) {
			for _, w := range wordsOf(cut(text, maxField)) {
				if words.stop[w.text] {
					continue
				}
				term, known := x.terms[w.stem]
				if !known {
					term = len(x.terms)
					x.terms[w.stem] = term
				}
				c := counts[i][term]
				if c == nil {
					c = &counted{}
					counts[i][term] = c
				}
				if field <= titleField && c[field] > 0 {
					continue // a name that repeats a word says no more
				}
				c[field]++
				sizes[i][field]++
				mean[field] += 1 / float64(len(tools))
			}
		}
	}
	x.postings = make([][]posting, len(x.terms))
	for i, terms := range counts {
		for term, c := range terms {
			x.postings[term] = append(x.postings[term], c.posting(i, sizes[i], mean))
		}
	}
	n := float64(len(tools))
	idf := func(tools int) float64 { return math.Log(1 + (n-float64(tools)+0.5)/(float64(tools)+0.5)) }
	x.rarest = idf(min(1, len(tools)))
	x.titles = make([]float64, len(tools))
	for _, p := range x.postings {
		of := idf(len(p))
		x.idf = append(x.idf, of)
		for _, one := range p {
			if one.titled {
				x.titles[one.tool] += of
			}
		}
	}
	x.sorted = slices.Sorted(maps.Keys(x.terms))
	return x
}

// posting returns the posting of a term: size is of its tool, mean of all.
func (c *counted) posting(tool int, size, mean counted) posting {
	count, strength := 0.0, 0.0
	for field, n := range c {
		if f := fields[field]; n > 0 {
			count += f.boost * n / (1 - f.length + f.length*size[field]/mean[field])
			strength = max(strength, f.strength)
		}
	}
	return posting{int32(tool), c[titleField] > 0, float32(count * (saturation + 1) / (count + saturation)), float32(strength)}
}

// textsOf returns the texts of the fields. A tool without title has the first line of its
// description in place of it, or its name.
func textsOf(t *tool) (texts [len(fields)]string) {
	line, _, _ := strings.Cut(t.doc, "\n")
	texts = [...]string{t.name, cmp.Or(t.title, line, t.name), t.doc, ""}
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
	}
	if jsonx.Unmarshal(t.schema, &schema) != nil {
		return texts // it cannot be searched by what cannot be read
	}
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
		var property struct {
			Description string `json:"description"`
		}
		_ = jsonx.Unmarshal(schema.Properties[name], &property) // a schema may be true
		b.WriteString(name + "\n" + property.Description + "\n")
	}
	texts[3] = b.String()
	return texts
}

// concept is a part of a query, with the ways in which tools say it.
type concept struct {
	text string
	stem string
	said []saying
	ways []way
	idf  float64
	hint bool
}

// way is one way to say a concept: all of the terms together.
type way struct {
	terms  []int
	weight float64
}

// parse returns the concepts of a query.
func (x *index) parse(query string) (concepts []concept) {
	words := wordsOf(cut(query, maxQuery))
	words = words[:min(len(words), maxQueryWords)]
	for at, next := 0, 0; at < len(words); at = next {
		said, n := x.words.lookUp(words[at:])
		next = at + max(n, 1)
		w := words[at]
		switch {
		case n == 0 && w.run != 0:
			for next < len(words) && words[next].run == w.run {
				next++
			}
			concepts = append(concepts, x.run(words[at:next])...)
		case n == 0 && isNumber(w.text) && len(x.ways(w.stem)) == 0:
			// a value, such as the number of an issue
		case n > 0 || !x.words.stop[w.text]:
			c := concept{text: w.text, stem: w.stem, said: said}
			if n <= 1 {
				c.ways = x.ways(w.stem)
				if next < len(words) {
					c.ways = x.together(c.ways, sameWeight, stemOf(w.text+words[next].text)) // code space
				}
			}
			for _, more := range words[at+1 : next] {
				c.text += " " + more.text
			}
			for _, s := range said {
				c.hint = c.hint || s.hint
				c.ways = x.together(c.ways, s.weight, s.stems...)
			}
			c.idf = x.idfOf(c)
			concepts = append(concepts, c)
		}
	}
	return concepts
}

// idfOf returns the idf of the word itself, or else that of the rarest way to say it.
func (x *index) idfOf(c concept) (idf float64) {
	if term, ok := x.terms[c.stem]; ok && !strings.Contains(c.text, " ") {
		return x.idf[term]
	}
	for _, w := range c.ways {
		sum := 0.0
		for _, term := range w.terms {
			sum += x.idf[term]
		}
		idf = max(idf, sum)
	}
	return cmp.Or(idf, x.rarest)
}

// together appends the way that has all stems, if the tools have them.
func (x *index) together(ways []way, weight float64, stems ...string) []way {
	terms := make([]int, len(stems))
	for i, stem := range stems {
		term, ok := x.terms[stem]
		if !ok {
			return ways
		}
		terms[i] = term
	}
	if len(terms) == 0 {
		return ways
	}
	return append(ways, way{terms, weight})
}

// ways returns the terms that are stem or resemble it.
func (x *index) ways(stem string) (ways []way) {
	ways = x.together(nil, sameWeight, stem)
	prefix, letters := "", 0
	for at := range stem {
		if letters == minPrefix {
			prefix = stem[:at]
		}
		letters++
	}
	if letters == minPrefix {
		prefix = stem
	}
	if prefix == "" || letters == minPrefix && ways != nil {
		return ways
	}
	for at := sort.SearchStrings(x.sorted, prefix); at < len(x.sorted) && strings.HasPrefix(x.sorted[at], prefix); at++ {
		if other := x.sorted[at]; other != stem && near(stem, other) {
			ways = append(ways, way{[]int{x.terms[other]}, nearWeight})
		}
	}
	return ways
}

// run returns the concepts of a run of bigrams: those that tools have, as the others stand where
// two words meet. A run of Hiragana that no tool has is grammar, any other a word.
func (x *index) run(words []word) (concepts []concept) {
	for _, w := range words {
		if ways := x.together(nil, sameWeight, w.stem); ways != nil {
			concepts = append(concepts, concept{text: w.text, stem: w.stem, ways: ways, idf: x.idf[ways[0].terms[0]]})
		}
	}
	if concepts == nil && !isHiragana(words[0].text) {
		return []concept{{text: words[0].text, stem: words[0].stem, idf: x.rarest}}
	}
	return concepts
}

// found is a tool with what a query finds in it.
type found struct {
	tool  int
	score float64
	parts float64 // the idf of the concepts that it has
}

// tally is what the ways of one concept give a tool.
type tally struct {
	value, part, title float64
}

// search returns the best tools for a query, most at most and the best first. share is how much one
// of the first is about all of the query and nothing else, up to 1. lacking are the words that no
// tool has; if there are none, nearest is true, and they are those that the tool of share lacks.
func (x *index) search(query string, most int) (best []found, share float64, lacking []string, nearest bool) {
	if at, ok := x.names[strings.ToLower(strings.TrimSpace(cut(query, maxQuery)))]; ok {
		best, share = []found{{tool: at, score: math.Inf(1)}}, 1
	}
	concepts := x.parse(query)
	sums, titled := make([]found, len(x.tools)), make([]float64, len(x.tools))
	all := 0.0
	scratch := make([]tally, len(x.tools))
	for _, c := range concepts {
		factor := 1.0
		if c.hint {
			factor = hintWeight
		} else {
			all += c.idf
		}
		clear(scratch)
		for _, w := range c.ways {
			x.tally(w, scratch)
		}
		for i := range scratch {
			if t := &scratch[i]; t.value > 0 {
				sums[i].score += factor * t.value
				titled[i] += t.title
				if !c.hint {
					sums[i].parts += c.idf * t.part
				}
			}
		}
	}
	if all == 0 {
		return best, share, nil, false // there are hints at most
	}
	intent := x.words.intentOf(concepts)
	for i := range sums {
		f := &sums[i]
		if f.tool = i; f.score == 0 || len(best) > 0 && best[0].tool == i {
			continue
		}
		f.score *= 1 + titleBonus*x.covered(i, titled)
		if intent != unknown && x.tools[i].readOnly == (intent == reads) {
			f.score *= 1 + intentBonus
		}
		best = insert(best, *f, most)
	}
	fullest := -1
	for _, f := range best[:min(judged, len(best))] {
		if has := f.parts / all * (1 - titleShare + titleShare*x.covered(f.tool, titled)); has > share {
			share, fullest = has, f.tool
		}
	}
	for _, c := range concepts {
		if len(c.ways) == 0 && !c.hint {
			lacking = append(lacking, c.text)
		}
	}
	if nearest = lacking == nil; nearest {
		for _, c := range concepts {
			if !c.hint && !x.has(fullest, c) {
				lacking = append(lacking, c.text)
			}
		}
	}
	return best, share, lacking, nearest
}

// covered returns the share of a tool's title that a query has: titled has the idf of those words,
// by tool.
func (x *index) covered(tool int, titled []float64) float64 {
	if x.titles[tool] == 0 {
		return 0
	}
	return min(1, titled[tool]/x.titles[tool])
}

// has reports whether a tool has a concept.
func (x *index) has(tool int, c concept) bool {
	named := func(term int) bool {
		p := x.postings[term]
		at, ok := slices.BinarySearchFunc(p, int32(tool), func(p posting, tool int32) int { return int(p.tool - tool) })
		return ok && p[at].strength == 1
	}
	return slices.ContainsFunc(c.ways, func(w way) bool {
		return !slices.ContainsFunc(w.terms, func(term int) bool { return !named(term) })
	})
}

// tally adds what a way gives each tool, if that is more than what it has.
func (x *index) tally(w way, into []tally) {
	if len(w.terms) == 1 {
		term := w.terms[0]
		for _, p := range x.postings[term] {
			into[p.tool].raise(x.of(p, term, w.weight, 1))
		}
		return
	}
	sums := map[int32]tally{}
	for _, term := range w.terms {
		for _, p := range x.postings[term] {
			s, one := sums[p.tool], x.of(p, term, w.weight, len(w.terms))
			sums[p.tool] = tally{s.value + one.value, s.part + one.part, s.title + one.title}
		}
	}
	for tool, s := range sums {
		into[tool].raise(s)
	}
}

// of returns what one of several terms gives a tool.
func (x *index) of(p posting, term int, weight float64, several int) tally {
	t := tally{value: weight * x.idf[term] * float64(p.weight), part: weight * float64(p.strength) / float64(several)}
	if p.titled {
		t.title = weight * x.idf[term]
	}
	return t
}

func (t *tally) raise(other tally) {
	t.value, t.part, t.title = max(t.value, other.value), max(t.part, other.part), max(t.title, other.title)
}

// insert puts f where it belongs in best, which is sorted and keeps most.
func insert(best []found, f found, most int) []found {
	at := len(best)
	for at > 0 && best[at-1].score < f.score {
		at--
	}
	if at >= most {
		return best
	}
	best = slices.Insert(best, at, f)
	return best[:min(most, len(best))]
}
