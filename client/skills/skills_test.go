package skills_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/skills"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/skill"
)

const (
	manifest = "---\nname: refunds\ndescription: Refunds money\nversion: 1.0\n---\nSee a b.md.\n"
	refunds  = "skill://acme/refunds/"
)

var revisions = []protocol.Revision{protocol.V20251125, protocol.V20260728}

// stranger is a server whose answers a test makes up: by method, or by the URI for
// resources/read, the members of the result without those of the revision.
type stranger struct {
	mu      sync.Mutex
	answers map[string]string
	asked   []string
}

// connect returns a client of s, and one of a server with skills if s is nil.
func (s *stranger) connect(t *testing.T, rev protocol.Revision) *client.Client {
	t.Helper()
	quiet := zerolog.Nop()
	server := mcp.NewServer(mcp.Info{Name: "stranger", Version: "1"}, &mcp.Options{Logger: &quiet, ListTTL: time.Hour})
	server.MustAdd(skill.Directory(fstest.MapFS{
		"acme/refunds/SKILL.md":    {Data: []byte(manifest)},
		"acme/refunds/a b.md":      {Data: []byte("hello")},
		"acme/refunds/x.bin":       {Data: []byte("\x00\xff")},
		"acme/refunds/in/SKILL.md": {Data: []byte("---\nname: in\ndescription: >-\n  Another\n  one\n---\n")},
	}))
	server.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			method := f.Request().Method
			if method == "resources/read" {
				method = f.Request().Params.Name
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			s.asked = append(s.asked, method)
			answer, ok := s.answers[method]
			if !ok {
				return next(f)
			}
			if f.Revision().Modern() {
				answer = `"resultType":"complete","ttlMs":3600000,"cacheScope":"public",` + answer
			}
			return protocol.RawResult("{" + answer + "}"), nil
		}
	})
	c, err := client.Connect(t.Context(), client.Local(server.ServeConn), &client.Options{Revisions: []protocol.Revision{rev}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// answer sets what a method, or a read, is answered with.
func (s *stranger) answer(method, members string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answers == nil {
		s.answers = map[string]string{}
	}
	s.answers[method] = members
}

// reads returns the URIs that were read.
func (s *stranger) reads() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(s.asked), func(method string) bool { return !strings.HasPrefix(method, "skill://") })
}

// all returns what List yields.
func all(t *testing.T, c *client.Client) (found []*skills.Skill, errs []error) {
	t.Helper()
	for s, err := range skills.List(t.Context(), c) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		found = append(found, s)
	}
	return found, errs
}

func TestSkills(t *testing.T) {
	for _, rev := range revisions {
		t.Run(rev.String(), func(t *testing.T) {
			server := &stranger{}
			c := server.connect(t, rev)
			found, errs := all(t, c)
			if len(found) != 2 || errs != nil {
				t.Fatalf("%v %v", found, errs)
			}
			s := found[0]
			if s.URI != refunds+"SKILL.md" || s.Name != "refunds" || s.Description != "Refunds money" || s.Frontmatter["version"] != json.Number("1.0") {
				t.Errorf("%+v", s)
			}
			var names []string
			for _, f := range s.Files {
				names = append(names, f.Name)
			}
			if !slices.Equal(names, []string{"SKILL.md", "a b.md", "in/SKILL.md", "x.bin"}) {
				t.Errorf("files %q", names)
			}
			print := s.Fingerprint()
			// What becomes of the fields changes nothing.
			s.Frontmatter["version"], s.Files[1].Digest, s.URI = nil, "sha256:", ""
			if reads := server.reads(); len(reads) > 0 {
				t.Errorf("read before there was need: %q", reads)
			}
			text, err := s.Load(t.Context())
			if err != nil || text != "See a b.md.\n" {
				t.Errorf("%q %v", text, err)
			}
			if reads := server.reads(); !slices.Equal(reads, []string{refunds + "SKILL.md"}) {
				t.Errorf("Load has read %q", reads)
			}
			for name, want := range map[string]string{"a b.md": "hello", "x.bin": "\x00\xff", "SKILL.md": manifest} {
				if data, err := s.ReadFile(t.Context(), name); err != nil || string(data) != want {
					t.Errorf("%s: %q %v", name, data, err)
				}
			}
			before := len(server.reads())
			for _, name := range []string{"", ".", "A b.md", "a%20b.md", "../refunds/a b.md", "in", "none", refunds + "x.bin"} {
				if data, err := s.ReadFile(t.Context(), name); data != nil || !errors.Is(err, skills.ErrUnverified) {
					t.Errorf("%q: %q %v", name, data, err)
				}
			}
			if after := len(server.reads()); after != before {
				t.Errorf("%d files that are not of the skill were asked for", after-before)
			}
			again, err := skills.Get(t.Context(), c, refunds+"SKILL.md")
			if err != nil || again.Fingerprint() != print || s.Fingerprint() != print || !strings.HasPrefix(print, "sha256:") {
				t.Errorf("%v %v, fingerprints %s %s", again, err, print, s.Fingerprint())
			}
			if text, err := found[1].Load(t.Context()); err != nil || text != "" || found[1].Description != "Another one" {
				t.Errorf("%q %v", text, err)
			}
			if _, err := skills.Get(t.Context(), c, "skill://nobody/SKILL.md"); err == nil || errors.Is(err, skills.ErrUnverified) {
				t.Errorf("a skill that is not there: %v", err)
			}
		})
	}
}

// entryOf returns an entry of JSON: pairs of members and their texts take the place
// of those that are right, or are put behind them.
func entryOf(replace ...string) string {
	members := [][2]string{
		{"uri", `"` + refunds + `SKILL.md"`},
		{"frontmatter", `{"name":"refunds","description":"Refunds money","version":1}`},
		{"resources", `[` + fileOf("SKILL.md", manifest) + `,` + fileOf("x.bin", "\x00\xff") + `]`},
	}
	var text []string
	for _, m := range members {
		for i := 0; i < len(replace); i += 2 {
			if replace[i] == m[0] {
				m[1] = replace[i+1]
			}
		}
		if m[1] != "" {
			text = append(text, fmt.Sprintf("%q:%s", m[0], m[1]))
		}
	}
	for i := 0; i < len(replace); i += 2 {
		if key, again := strings.CutPrefix(replace[i], "+"); again {
			text = append(text, fmt.Sprintf("%q:%s", key, replace[i+1]))
		}
	}
	return "{" + strings.Join(text, ",") + "}"
}

func fileOf(path, data string) string {
	return fmt.Sprintf(`{"uri":%q,"digest":"sha256:%x","size":%d}`, refunds+path, sha256.Sum256([]byte(data)), len(data))
}

func files(more ...string) string {
	return "[" + strings.Join(append([]string{fileOf("SKILL.md", manifest)}, more...), ",") + "]"
}

// What an entry must not be. In a list it is one error, and the others are there.
func TestEntries(t *testing.T) {
	file := func(uri, digest, size string) string {
		return fmt.Sprintf(`{"uri":%s,"digest":%s,"size":%s}`, uri, digest, size)
	}
	digest := `"sha256:` + strings.Repeat("0", 64) + `"`
	at := func(path string) string { return fmt.Sprintf("%q", refunds+path) }
	many := make([]string, 512)
	for i := range many {
		many[i] = fileOf(fmt.Sprint(i), "")
	}
	head := func(name, description string) string {
		return fmt.Sprintf(`{"name":%s,"description":%s}`, name, description)
	}
	tests := []struct{ name, entry, want string }{
		{"no object", `1`, "an entry has no uri"},
		{"no uri", entryOf("uri", ""), "an entry has no uri"},
		{"no SKILL.md", entryOf("uri", `"skill://acme/refunds"`), "uri must be that of a SKILL.md"},
		{"a query", entryOf("uri", `"skill://acme/refunds/SKILL.md?a"`), "uri must be that of a SKILL.md"},
		{"a query before", entryOf("uri", `"skill://acme?/refunds/SKILL.md"`), "without query"},
		{"no scheme", entryOf("uri", `"acme/refunds/SKILL.md"`), "uri must be"},
		{"another folder", entryOf("uri", `"skill://acme/other/SKILL.md"`), "the folder in uri must have the name"},
		{"a part of a folder", entryOf("uri", `"skill://acme/xrefunds/SKILL.md"`), "the folder in uri must have the name"},
		{"elsewhere", entryOf("uri", `"skill://acme/../refunds/SKILL.md"`), "leads elsewhere"},
		{"elsewhere, escaped", entryOf("uri", `"skill://acme/%2e%2e/refunds/SKILL.md"`), "leads elsewhere"},
		{"control", entryOf("uri", `"skill://acme/\u001b/refunds/SKILL.md"`), "control characters"},
		{"members that differ in case", entryOf("uri", "", "+URI", `"`+refunds+`SKILL.md"`), "an entry has no uri"},
		{"no head", entryOf("frontmatter", ""), "frontmatter: it must be an object"},
		{"head that is a list", entryOf("frontmatter", "[]"), "frontmatter: it must be an object"},
		{"name", entryOf("frontmatter", head(`"Refunds"`, `"a"`)), "name must be text"},
		{"name that is a number", entryOf("frontmatter", head(`1`, `"a"`)), "name must be text"},
		{"long description", entryOf("frontmatter", head(`"refunds"`, `"`+strings.Repeat("a", 1025)+`"`)), "description must be text"},
		{"escapes", entryOf("frontmatter", head(`"refunds"`, `"\u001b[31m"`)), "control characters"},
		{"wide head", entryOf("frontmatter", `{"name":"refunds","description":"a","x":[`+strings.Repeat("1,", 200000)+`1]}`), "frontmatter: it must be an object of at most 256 KiB"},
		{"no resources", entryOf("resources", ""), "resources must be a list"},
		{"null", entryOf("resources", "null"), "resources must be a list"},
		{"another word", entryOf("resources", `"Dynamic"`), "resources must be a list"},
		{"empty", entryOf("resources", "[]"), "resources lack the SKILL.md"},
		{"without itself", entryOf("resources", "["+fileOf("a", "")+"]"), "resources lack the SKILL.md"},
		{"itself escaped", entryOf("resources", "["+fileOf("SKILL%2Emd", manifest)+"]"), "the SKILL.md has another uri"},
		{"twice", entryOf("resources", files(fileOf("a", ""), fileOf("a", ""))), `"a" is there twice`},
		{"twice, escaped", entryOf("resources", files(fileOf("a", ""), fileOf("%61", ""))), `"a" is there twice`},
		{"outside", entryOf("resources", files(file(`"skill://acme/x"`, digest, "0"))), "is not below the skill"},
		{"beside", entryOf("resources", files(file(`"skill://acme/refundsx"`, digest, "0"))), "is not below the skill"},
		{"no uri of a file", entryOf("resources", files(file(`1`, digest, "0"))), "is not below the skill"},
		{"out by dots", entryOf("resources", files(file(at("../a"), digest, "0"))), "is not a path"},
		{"out by escaped dots", entryOf("resources", files(file(at("%2e%2e/a"), digest, "0"))), "is not a path"},
		{"escaped slash", entryOf("resources", files(file(at("a%2Fb"), digest, "0"))), "is not a path"},
		{"backslash", entryOf("resources", files(file(at(`a%5Cb`), digest, "0"))), "is not a path"},
		{"null byte", entryOf("resources", files(file(at("a%00"), digest, "0"))), "is not a path"},
		{"bad escape", entryOf("resources", files(file(at("a%zz"), digest, "0"))), "is not a path"},
		{"two slashes", entryOf("resources", files(file(at("a//b"), digest, "0"))), "is not a path"},
		{"the folder", entryOf("resources", files(file(at(""), digest, "0"))), "is not a path"},
		{"query of a file", entryOf("resources", files(file(at("a?b"), digest, "0"))), "is not below"},
		{"upper case", entryOf("resources", files(file(at("a"), strings.ToUpper(digest), "0"))), "digest must be"},
		{"capitals", entryOf("resources", files(file(at("a"), `"sha256:`+strings.Repeat("A", 64)+`"`, "0"))), "digest must be"},
		{"another hash", entryOf("resources", files(file(at("a"), `"sha512:`+strings.Repeat("0", 64)+`"`, "0"))), "digest must be"},
		{"short", entryOf("resources", files(file(at("a"), `"sha256:00"`, "0"))), "digest must be"},
		{"no digest", entryOf("resources", files(`{"uri":`+at("a")+`,"size":0}`)), "digest must be"},
		{"no size", entryOf("resources", files(`{"uri":`+at("a")+`,"digest":`+digest+`}`)), "size must be"},
		{"negative", entryOf("resources", files(file(at("a"), digest, "-1"))), "size must be"},
		{"exponent", entryOf("resources", files(file(at("a"), digest, "1e-3"))), "size must be"},
		{"fraction", entryOf("resources", files(file(at("a"), digest, "1.5"))), "size must be"},
		{"an exponent of many digits", entryOf("resources", files(file(at("a"), digest, "1e999999999"))), "size must be"},
		{"null for a size", entryOf("resources", files(file(at("a"), digest, "null"))), "size must be"},
		{"text", entryOf("resources", files(file(at("a"), digest, `"1"`))), "size must be"},
		{"overflow", entryOf("resources", files(file(at("a"), digest, "9223372036854775808"))), "size must be"},
		{"sum that overflows", entryOf("resources", files(file(at("a"), digest, "9223372036854775807"), file(at("b"), digest, "9223372036854775807"))), "more than 16 MiB"},
		{"too much", entryOf("resources", files(file(at("a"), digest, "16777216"))), "more than 16 MiB"},
		{"too many", entryOf("resources", files(many...)), "the skill has more than 512 files"},
	}
	for _, rev := range revisions {
		server := &stranger{}
		c := server.connect(t, rev)
		for _, tt := range tests {
			t.Run(rev.String()+"/"+tt.name, func(t *testing.T) {
				server.answer("skills/list", `"skills":[`+tt.entry+`,`+entryOf()+`]`)
				found, errs := all(t, c)
				if len(found) != 1 || len(errs) != 1 || !errors.Is(errs[0], client.ErrInvalidResult) || !strings.Contains(errs[0].Error(), tt.want) {
					t.Errorf("%v %v, want %q", found, errs, tt.want)
				}
				server.answer("skills/get", `"skill":`+tt.entry)
				if s, err := skills.Get(t.Context(), c, refunds+"SKILL.md"); s != nil || err == nil {
					t.Errorf("Get: %v %v", s, err)
				}
			})
		}
		if reads := server.reads(); len(reads) > 0 {
			t.Errorf("read: %q", reads)
		}
	}
}

// Forms in which servers write an entry: each means the same skill.
func TestEntryForms(t *testing.T) {
	plain := fmt.Sprintf(`"size":%d`, len(manifest))
	for _, rev := range revisions {
		server := &stranger{}
		c := server.connect(t, rev)
		for name, entry := range map[string]string{
			"N.0":         strings.Replace(entryOf(), plain, plain+".0", 1),
			"an exponent": strings.Replace(entryOf(), plain, plain+"00e-2", 1),
			"null":        entryOf("+_meta", "null", "+title", "null"),
			"half a pair": entryOf("frontmatter", `{"name":"refunds","description":"Refunds money \ud83d","version":1}`),
			"version 1.0": entryOf("frontmatter", `{"name":"refunds","description":"Refunds money","version":1.0}`),
		} {
			server.answer("skills/list", `"skills":[`+entry+`]`)
			found, errs := all(t, c)
			if len(found) != 1 || len(errs) != 0 || found[0].Files[0].Size != int64(len(manifest)) || !strings.HasPrefix(found[0].Description, "Refunds money") {
				t.Errorf("%s, %s: %v %v", rev, name, found, errs)
			}
		}
	}
}

// What a file must not be answered with: nothing of it is returned.
func TestUnverified(t *testing.T) {
	at := func(uri string) string { return fmt.Sprintf(`"uri":%q`, uri) }
	text := func(s string) string { b, _ := json.Marshal(s); return `"text":` + string(b) }
	blob := func(s string) string { return `"blob":"` + base64.StdEncoding.EncodeToString([]byte(s)) + `"` }
	for _, form := range []func(string) string{text, blob} {
		item := func(uri, data string) string { return "{" + at(uri) + "," + form(data) + "}" }
		md := refunds + "SKILL.md"
		tests := []struct{ name, answer, want string }{
			{"a byte", `"contents":[` + item(md, strings.Replace(manifest, "See", "SEE", 1)) + `]`, "its digest is another one"},
			{"a byte more", `"contents":[` + item(md, manifest+"\n") + `]`, "bytes in place of"},
			{"a byte less", `"contents":[` + item(md, manifest[1:]) + `]`, "bytes in place of"},
			{"nothing", `"contents":[]`, "0 items in place of one"},
			{"no contents", `"other":[]`, "0 items in place of one"},
			{"two items", `"contents":[` + item(md, manifest) + `,` + item(md, manifest) + `]`, "2 items in place of one"},
			{"contents twice", `"contents":[` + item(md, "x") + `],"contents":[` + item(md, manifest) + `]`, `duplicate member "contents"`},
			{"another uri", `"contents":[` + item(refunds+"x.bin", manifest) + `]`, "the answer is for another uri"},
			{"no uri", `"contents":[{` + form(manifest) + `}]`, "the answer is for another uri"},
			{"both", `"contents":[{` + at(md) + "," + text(manifest) + "," + blob(manifest) + `}]`, "both text and blob"},
			{"neither", `"contents":[{` + at(md) + `}]`, "neither text nor blob"},
			{"a member twice", `"contents":[{` + at(md) + "," + form("x") + "," + form(manifest) + `}]`, "duplicate member"},
			{"null", `"contents":[{` + at(md) + "," + strings.SplitAfter(form(""), ":")[0] + `null}]`, "neither text nor blob"},
			{"a number", `"contents":[{` + at(md) + "," + strings.SplitAfter(form(""), ":")[0] + `1}]`, "neither text nor blob"},
		}
		for _, rev := range revisions {
			server := &stranger{}
			c := server.connect(t, rev)
			server.answer("skills/list", `"skills":[`+entryOf()+`]`)
			found, errs := all(t, c)
			if len(found) != 1 {
				t.Fatal(errs)
			}
			for _, tt := range tests {
				t.Run(rev.String()+"/"+tt.name, func(t *testing.T) {
					server.answer(md, tt.answer)
					for _, err := range []error{loaded(found[0]), read(found[0])} {
						// What does not even decode is refused by the client below.
						if err == nil || !errors.Is(err, skills.ErrUnverified) && !errors.Is(err, client.ErrInvalidResult) || !strings.Contains(err.Error(), tt.want) {
							t.Errorf("%v, want %q", err, tt.want)
						}
					}
				})
			}
			server.answer(md, `"contents":[`+item(md, manifest)+`]`)
			if err := errors.Join(loaded(found[0]), read(found[0])); err != nil {
				t.Errorf("what is right: %v", err)
			}
			server.answer(md, `"contents":[{`+at(md)+`,"blob":"a-b_"}]`)
			if err := read(found[0]); !errors.Is(err, skills.ErrUnverified) {
				t.Errorf("base64 of URLs: %v", err)
			}
		}
	}
}

func loaded(s *skills.Skill) error {
	text, err := s.Load(context.Background())
	if err != nil && text != "" {
		return fmt.Errorf("returned %q beside %w", text, err)
	}
	return err
}

func read(s *skills.Skill) error {
	data, err := s.ReadFile(context.Background(), "SKILL.md")
	if err != nil && data != nil {
		return fmt.Errorf("returned %q beside an error", data)
	}
	return err
}

// A head that is not that of the entry, or cannot be read, is not loaded although
// all digests fit.
func TestHeads(t *testing.T) {
	entry := `{"name":"refunds","description":"Refunds money","num":1,"list":["a"]}`
	tests := []struct{ name, file, want string }{
		{"the same", "---\nname: refunds\ndescription: Refunds money\nnum: 1.0\nlist: [a]\n---\nx", ""},
		{"another order, carriage returns", "---\r\nlist:\r\n- a\r\nnum: 1\r\ndescription: >-\r\n  Refunds\r\n  money\r\nname: 'refunds'\r\n---\r\nx", ""},
		{"a field more", "---\nname: refunds\ndescription: Refunds money\nnum: 1\nlist: [a]\nallowed-tools: Bash\n---\nx", "says something else"},
		{"a field less", "---\nname: refunds\ndescription: Refunds money\nnum: 1\n---\nx", "says something else"},
		{"another value", "---\nname: refunds\ndescription: Steals money\nnum: 1\nlist: [a]\n---\nx", "says something else"},
		{"another type", "---\nname: refunds\ndescription: Refunds money\nnum: '1'\nlist: [a]\n---\nx", "says something else"},
		{"no head", "x", "cannot be compared"},
		{"byte order mark", "\ufeff---\nname: refunds\ndescription: Refunds money\nnum: 1\nlist: [a]\n---\nx", "cannot be compared"},
		{"blanks behind the dashes", "--- \nname: refunds\ndescription: Refunds money\nnum: 1\nlist: [a]\n---\nx", "cannot be compared"},
		{"dots", "---\nname: refunds\ndescription: Refunds money\nnum: 1\nlist: [a]\n...\nx", "cannot be compared"},
		{"dashes in a block", "---\nname: refunds\ndescription: |\n  a\n  ---\nnum: 1\nlist: [a]\n---\nx", "cannot be compared"},
		{"an anchor", "---\nname: refunds\ndescription: &a Refunds money\nnum: 1\nlist: [a]\n---\nx", "anchors, aliases and tags"},
		{"a bomb", "---\na: " + strings.Repeat("[", 60000) + "\n---\nx", "deeper than"},
	}
	for _, rev := range revisions {
		server := &stranger{}
		c := server.connect(t, rev)
		for _, tt := range tests {
			t.Run(rev.String()+"/"+tt.name, func(t *testing.T) {
				server.answer("skills/get", `"skill":`+entryOf("frontmatter", entry, "resources", "["+fileOf("SKILL.md", tt.file)+"]"))
				text, _ := json.Marshal(tt.file)
				server.answer(refunds+"SKILL.md", `"contents":[{"uri":"`+refunds+`SKILL.md","text":`+string(text)+`}]`)
				s, err := skills.Get(t.Context(), c, refunds+"SKILL.md")
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.Load(t.Context())
				if tt.want == "" && (err != nil || got != "x") || tt.want != "" && (got != "" || !errors.Is(err, skills.ErrUnverified) || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%q %v, want %q", got, err, tt.want)
				}
			})
		}
	}
}

// The server is asked anew, whatever it has said of how long answers hold.
func TestNothingIsKept(t *testing.T) {
	server := &stranger{}
	c := server.connect(t, protocol.V20260728)
	s, err := skills.Get(t.Context(), c, refunds+"SKILL.md")
	if err != nil || loaded(s) != nil {
		t.Fatal(err)
	}
	server.answer("skills/get", `"skill":`+entryOf("resources", files()))
	server.answer("skills/list", `"skills":[`+entryOf("resources", files())+`]`)
	server.answer(refunds+"SKILL.md", `"contents":[{"uri":"`+refunds+`SKILL.md","text":""}]`)
	if err := loaded(s); !errors.Is(err, skills.ErrUnverified) {
		t.Errorf("a file that has changed: %v", err)
	}
	if again, err := skills.Get(t.Context(), c, s.URI); err != nil || again.Fingerprint() == s.Fingerprint() {
		t.Errorf("%v", err)
	}
	if found, _ := all(t, c); len(found) != 1 || found[0].Fingerprint() == s.Fingerprint() {
		t.Errorf("%v", found)
	}
}

func TestFingerprint(t *testing.T) {
	server := &stranger{}
	c := server.connect(t, protocol.Latest)
	seen := map[string]string{}
	for name, entry := range map[string]string{
		"plain":         entryOf(),
		"another byte":  entryOf("resources", files(fileOf("x.bin", "\x00\xfe"))),
		"another name":  entryOf("resources", files(fileOf("y.bin", "\x00\xff"))),
		"a file more":   entryOf("resources", files(fileOf("x.bin", "\x00\xff"), fileOf("y.bin", "\x00\xff"))),
		"another place": strings.ReplaceAll(entryOf(), "acme/", "acme2/"),
	} {
		server.answer("skills/list", `"skills":[`+entry+`]`)
		found, errs := all(t, c)
		if len(found) != 1 {
			t.Fatal(name, errs)
		}
		if other, there := seen[found[0].Fingerprint()]; there {
			t.Errorf("%s has the fingerprint of %s", name, other)
		}
		seen[found[0].Fingerprint()] = name
	}
	server.answer("skills/list", `"skills":[`+entryOf("resources", "["+fileOf("x.bin", "\x00\xff")+","+fileOf("SKILL.md", manifest)+"]")+`]`)
	if found, _ := all(t, c); seen[found[0].Fingerprint()] != "plain" {
		t.Error("the order of files changes the fingerprint")
	}
	server.answer("skills/list", `"skills":[`+entryOf("resources", `"dynamic"`)+`]`)
	found, _ := all(t, c)
	if len(found) != 1 || found[0].Files != nil || found[0].Fingerprint() != "" {
		t.Errorf("%v", found)
	}
	if err := loaded(found[0]); !errors.Is(err, client.ErrUnsupported) || len(server.reads()) > 0 {
		t.Errorf("a skill without files was loaded: %v", err)
	}
}

// A message in which an object has a member twice is refused as a whole.
func TestTwice(t *testing.T) {
	server := &stranger{}
	c := server.connect(t, protocol.Latest)
	for name, entry := range map[string]string{
		"of an entry": entryOf("+uri", `"skill://b/SKILL.md"`),
		"of a head":   entryOf("frontmatter", `{"name":"refunds","description":"a","description":"b"}`),
		"of a file":   entryOf("resources", files(`{"uri":"a","uri":"b"}`)),
		"deep":        entryOf("frontmatter", `{"name":"refunds","description":"a","x":[[{"a":1,"a":2}]]}`),
	} {
		server.answer("skills/list", `"skills":[`+entry+`]`)
		if found, errs := all(t, c); found != nil || len(errs) != 1 || !errors.Is(errs[0], client.ErrInvalidResult) {
			t.Errorf("%s: %v %v", name, found, errs)
		}
	}
}

func TestLists(t *testing.T) {
	server := &stranger{}
	c := server.connect(t, protocol.Latest)
	for name, answer := range map[string]string{
		"no list":        `"other":[]`,
		"an object":      `"skills":{}`,
		"twice":          `"skills":[],"skills":[]`,
		"cursor":         `"skills":[],"nextCursor":1`,
		"without an end": `"skills":[],"nextCursor":"a"`,
	} {
		server.answer("skills/list", answer)
		if found, errs := all(t, c); found != nil || len(errs) != 1 || !errors.Is(errs[0], client.ErrInvalidResult) {
			t.Errorf("%s: %v %v", name, found, errs)
		}
	}
	server.answer("skills/get", `"skill":`+strings.ReplaceAll(entryOf(), "acme/", "other/"))
	if s, err := skills.Get(t.Context(), c, refunds+"SKILL.md"); s != nil || !errors.Is(err, client.ErrInvalidResult) {
		t.Errorf("another skill than was asked for: %v %v", s, err)
	}
	quiet := zerolog.Nop()
	without, err := client.Connect(t.Context(), client.Local(mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet}).ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer without.Close()
	if _, errs := all(t, without); len(errs) != 1 || !errors.Is(errs[0], client.ErrUnsupported) {
		t.Errorf("a server without skills: %v", errs)
	}
}
