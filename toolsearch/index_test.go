package toolsearch

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"listPullRequests for_HTTPServer2": "list pull requests for http server2",
		"Straße ＡＢＣ  ﬁle":                  "strasse abc file",
		"AB\u0301Cd e\u0301te\u0301":       "ab\u0301 cd été",
		"請求書の一覧":                           "請求 求書 の 一覧",
		"ﾒｰﾙを送る":                           "メー ール を 送 る",
		"파일을 삭제":                           "파일 일을 삭제",
		"файлы/Заказ":                      "файлы заказ",
		" -- \u0301 ":                      "",
		"\xff\xfea":                        "a",
	} {
		var got []string
		for _, w := range wordsOf(text) {
			got = append(got, w.text)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q: %q, want %q", text, strings.Join(got, " "), want)
		}
	}
}

func TestStems(t *testing.T) {
	for _, row := range [][]string{
		{"run", "runs", "running"}, {"create", "creates", "created", "creating"}, {"policy", "policies"}, {"branch", "branches"}, {"merge", "merged", "merging"},
		{"apply", "applied", "applying"}, {"access"}, {"status"}, {"thing"}, {"red"}, {"process", "processes"}, {"issue", "issues"}, {"is"}, {"файл"},
	} {
		for _, w := range row[1:] {
			if stemOf(w) != stemOf(row[0]) {
				t.Errorf("the stem of %s is %s, that of %s is %s", w, stemOf(w), row[0], stemOf(row[0]))
			}
		}
	}
	for pair, want := range map[[2]string]bool{
		{"repo", "repositori"}: true, {"notifi", "notific"}: true, {"subscrib", "subscript"}: true, {"файлы", "файлов"}: true, {"удалить", "удаление"}: true,
		{"commit", "comment"}: false, {"interact", "internal"}: false, {"cod", "codespac"}: false, {"", "word"}: false, {"project", "protect"}: false,
	} {
		if near(pair[0], pair[1]) != want || near(pair[1], pair[0]) != want {
			t.Errorf("near of %v is not %v", pair, want)
		}
	}
}

// some returns n tools; no two numbers have the same.
func some(n, number int) (tools []tool) {
	for i := range n {
		tools = append(tools, tool{name: fmt.Sprintf("tool_%d_%d", number, i), doc: "Does it.", schema: []byte(`{"properties":{"a":true,"b":{"description":"x"}}}`)})
	}
	return tools
}

// TestKept: equal sets share an index, made once; 16 are kept, those that were used last.
func TestKept(t *testing.T) {
	s, words := &sets{}, newVocabulary(nil)
	var all sync.WaitGroup
	made := make([]*index, 64)
	for i := range made {
		all.Go(func() { made[i] = s.of(some(20, i%4), words) })
	}
	all.Wait()
	for i, x := range made {
		if x == nil || x != made[i%4] || x.tools[0].name != fmt.Sprintf("tool_%d_0", i%4) {
			t.Fatalf("%d has the index of another", i)
		}
	}
	for number := range 100 {
		s.of(some(3, number), words)
		if s.of(some(20, 0), words) != made[0] {
			t.Fatal("the index that is in use is made again")
		}
	}
	if len(s.kept) != maxSets || s.of(some(20, 1), words) == made[1] {
		t.Errorf("%d sets are kept", len(s.kept))
	}
	other := some(20, 0)
	other[7].schema = []byte(`{}`)
	if s.of(other, words) == made[0] {
		t.Error("a tool with another schema has the index of the old one")
	}
}

// TestSchemas: whatever a schema is, its tool is found by its name.
func TestSchemas(t *testing.T) {
	for _, schema := range []string{"", "true", "[]", `{"properties":[]}`, `{"properties":{"a":5}}`, `{"properties":{"a":{"description":5}}}`, `{"properties":null}`, "{"} {
		x := newIndex([]tool{{name: "notes_create", schema: []byte(schema)}}, newVocabulary(nil))
		if best, share, _, _ := x.search("create notes", 5); len(best) != 1 || share < enough {
			t.Errorf("%s: %v, %v", schema, best, share)
		}
	}
}

// FuzzSearch: no query and no text of a tool panics, and answers are valid.
func FuzzSearch(f *testing.F) {
	for _, seed := range []string{"create an issue", "", "ﷺﷺﷺ", "a\u0301\u0302\u0303", "請求書ーーの", "\xff\xfe", "HTTPServerX", "1 2 3", strings.Repeat("a\u0300", 500), "\u1100\u1161\u11a8", "İı", "\U0001F468\u200D\U0001F469"} {
		f.Add(seed, "Create an issue.", "ticket")
	}
	f.Fuzz(func(t *testing.T, query, doc, say string) {
		words := map[string]string{}
		if o := (Options{Words: map[string]string{say: "issue"}}); o.check() == nil {
			words = o.Words
		}
		x := newIndex(append(some(3, 1), tool{name: "other", doc: doc, title: query}), newVocabulary(words))
		best, share, lacking, _ := x.search(query, most)
		if len(best) > most || share < 0 || share > 1+1e-9 {
			t.Errorf("%d tools, share %v", len(best), share)
		}
		for i, one := range best {
			if one.tool < 0 || one.tool >= len(x.tools) || i > 0 && best[i-1].score < one.score {
				t.Errorf("tools are %v", best)
			}
		}
		if !utf8.ValidString(strings.Join(lacking, " ")) && utf8.ValidString(query) {
			t.Errorf("half a letter in %q", lacking)
		}
		if len(wordsOf(query)) > 2*maxWords {
			t.Errorf("%d words", len(wordsOf(query)))
		}
		if slices.Contains(lacking, "") {
			t.Errorf("an empty word in %q", lacking)
		}
	})
}

// BenchmarkIndex makes the index of 1,200 tools, and BenchmarkQuery searches it.
func BenchmarkIndex(b *testing.B) {
	tools, words := some(1200, 1), newVocabulary(nil)
	b.ReportAllocs()
	for b.Loop() {
		newIndex(tools, words)
	}
}

func BenchmarkQuery(b *testing.B) {
	x := newIndex(some(1200, 1), newVocabulary(nil))
	b.ReportAllocs()
	for b.Loop() {
		x.search("do it with the tool 1 please, all of it", most)
	}
}

// The page of limits has those of this package.
func TestLimitsOfThePage(t *testing.T) {
	page, err := os.ReadFile("../docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	field, _ := reflect.TypeFor[query]().FieldByName("Query")
	if field.Tag.Get("validate") != "max=1000" || maxQuery < 1000*utf8.UTFMax {
		t.Errorf("a query has %s, of which %d bytes are read", field.Tag.Get("validate"), maxQuery)
	}
	for _, row := range []string{
		fmt.Sprintf("| a query | 1,000 characters, of which %d words are read |", maxQueryWords),
		fmt.Sprintf("| an answer | %d,000 bytes, then names only; a description in it has %d,000 |", maxAnswer/1000, maxDoc/1000),
		fmt.Sprintf("| tools in an answer | %d; %d if no tool has the words |", most, few),
		fmt.Sprintf("| text of a tool that is searched | %d KiB and %d words of each part |", maxField>>10, maxWords),
		fmt.Sprintf("| indexes | %d, of the sets of tools that were used last;", maxSets),
		fmt.Sprintf("| words of a key of `Options.Words` | %d |", maxKey),
	} {
		if !strings.Contains(string(page), row) {
			t.Errorf("docs/limits.md has no %s", row)
		}
	}
}
