package skill_test

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/skill"
)

// head returns the text of a SKILL.md.
func head(name string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " does\n---\n# " + name + "\n"
}

// files makes a file system of names and texts.
func files(pairs ...string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fsys[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fsys
}

// everything has a nested skill, a prefix, names to escape, and bytes.
func everything() fstest.MapFS {
	return files(
		"acme/billing/refunds/SKILL.md", "---\nname: refunds\ndescription: Refunds money\nversion: 1.0\nmetadata:\n  tags: [a, 'b']\n---\nSee templates/a b.md.\n",
		"acme/billing/refunds/.env", "SECRET=1",
		"acme/billing/refunds/.git/config", "secret",
		"acme/billing/refunds/templates/a b.md", "hello",
		"acme/billing/refunds/templates/ä?#&:.txt", "<&>",
		"acme/billing/refunds/logo.bin", "\x00\xff",
		"acme/billing/refunds/empty.txt", "",
		"acme/billing/refunds/zz/inner/SKILL.md", head("inner"),
		"acme/billing/refunds/zz/inner/x.md", "x",
		"git-workflow/SKILL.md", head("git-workflow"),
		"README.md", "not of a skill",
	)
}

const refunds = "skill://acme/billing/refunds/"

func server(t testing.TB, opts *mcp.Options, components ...mcp.Component) *mcp.Server {
	t.Helper()
	if opts == nil {
		opts = &mcp.Options{}
	}
	if opts.Logger == nil {
		quiet := zerolog.Nop()
		opts.Logger = &quiet
	}
	s := mcp.NewServer(mcp.Info{Name: "skills", Version: "1"}, opts)
	s.MustAdd(components...)
	return s
}

// revisions are those that have skills.
var revisions = []protocol.Revision{protocol.V20251125, protocol.V20260728}

// wherever runs a test for each revision, with skills that are the server's own
// and those of one that is mounted into it, after it began to serve.
func wherever(t *testing.T, opts mcp.Options, test func(t *testing.T, c *mcptest.Client), components ...mcp.Component) {
	for _, rev := range revisions {
		t.Run(rev.String(), func(t *testing.T) {
			own := opts
			test(t, mcptest.New(t, server(t, &own, components...), mcptest.Revision(rev)))
		})
		t.Run(rev.String()+"/mounted", func(t *testing.T) {
			outer, own := opts, opts
			s := server(t, &outer)
			mcptest.New(t, s).Request("tools/list", nil)
			if err := s.Mount("child", server(t, &own, components...)); err != nil {
				t.Fatal(err)
			}
			test(t, mcptest.New(t, s, mcptest.Revision(rev)))
		})
	}
}

type entry struct {
	URI         string
	Frontmatter map[string]any
	Resources   []struct {
		URI, Digest string
		Size        int
	}
}

// ask returns the result of a request as JSON, and as text without what says how
// long it may be kept.
func ask(t *testing.T, c *mcptest.Client, method string, params any, result any) string {
	t.Helper()
	text := c.Request(method, params)
	if result != nil {
		if err := json.Unmarshal(text, result); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	return string(text)
}

// refused returns the error of a request that must have one.
func refused(t *testing.T, c *mcptest.Client, method, uri string) *protocol.Error {
	t.Helper()
	text, err := c.TryRequest(method, map[string]string{"uri": uri})
	fault, ok := errors.AsType[*protocol.Error](err)
	if !ok {
		t.Fatalf("%s of %s: %s %v", method, uri, text, err)
	}
	return fault
}

func TestDirectory(t *testing.T) {
	wherever(t, mcp.Options{}, func(t *testing.T, c *mcptest.Client) {
		modern := c.Revision() == protocol.V20260728
		if got := declared(t, c); got != `{"directoryRead":true}` || c.Server.Capabilities.Resources == nil {
			t.Errorf("the extension is declared as %s, resources %v", got, c.Server.Capabilities.Resources)
		}
		var list struct{ Skills []entry }
		text := ask(t, c, "skills/list", nil, &list)
		if got := strings.Contains(text, `"ttlMs":0,"cacheScope":"public"`); got != modern {
			t.Errorf("hints for caches: %s", text)
		}
		if got := strings.Contains(text, `"resultType":"complete"`); got != modern {
			t.Errorf("resultType: %s", text)
		}
		var uris []string
		for _, e := range list.Skills {
			uris = append(uris, e.URI)
			var one struct{ Skill entry }
			text := ask(t, c, "skills/get", map[string]string{"uri": e.URI}, &one)
			if fmt.Sprint(one.Skill) != fmt.Sprint(e) {
				t.Errorf("skills/get has %v, skills/list %v", one.Skill, e)
			}
			if got := strings.Contains(text, `"ttlMs":0,"cacheScope":"public"`); got != modern {
				t.Errorf("hints for caches: %s", text)
			}
			for _, f := range e.Resources {
				if data := read(t, c, f.URI); len(data) != f.Size || fmt.Sprintf("sha256:%x", sha256.Sum256(data)) != f.Digest {
					t.Errorf("%s has %d bytes, the entry says %d %s", f.URI, len(data), f.Size, f.Digest)
				}
			}
		}
		if want := []string{refunds + "SKILL.md", refunds + "zz/inner/SKILL.md", "skill://git-workflow/SKILL.md"}; !slices.Equal(uris, want) {
			t.Errorf("skills %q, want %q", uris, want)
		}
		first := list.Skills[0]
		if got, _ := json.Marshal(first.Frontmatter); string(got) != `{"description":"Refunds money","metadata":{"tags":["a","b"]},"name":"refunds","version":1}` {
			t.Errorf("frontmatter %s", got)
		}
		var own []string
		for _, f := range first.Resources {
			own = append(own, strings.TrimPrefix(f.URI, refunds))
		}
		want := []string{"SKILL.md", "empty.txt", "logo.bin", "templates/a%20b.md", "templates/%C3%A4%3F%23&:.txt", "zz/inner/SKILL.md", "zz/inner/x.md"}
		if !slices.Equal(own, want) {
			t.Errorf("files %q, want %q", own, want)
		}

		var listed []string
		for _, r := range c.Resources() {
			listed = append(listed, fmt.Sprint(r.URI, r.Name, r.Description, r.MIMEType))
		}
		if want := []string{refunds + "SKILL.md" + "refunds" + "Refunds money" + "text/markdown", refunds + "zz/inner/SKILL.md" + "inner" + "What inner does" + "text/markdown",
			"skill://git-workflow/SKILL.md" + "git-workflow" + "What git-workflow does" + "text/markdown"}; !slices.Equal(listed, want) {
			t.Errorf("resources %q, want %q", listed, want)
		}

		for dir, want := range map[string]string{
			"":           "SKILL.md text/markdown, empty.txt text/plain, logo.bin application/octet-stream, templates inode/directory, zz inode/directory",
			"/templates": "ä?#&:.txt text/plain, a b.md text/markdown",
			"/zz":        "inner inode/directory",
			"/zz/inner":  "SKILL.md text/markdown, x.md text/markdown",
		} {
			var result struct{ Resources []protocol.Resource }
			ask(t, c, "resources/directory/read", map[string]string{"uri": strings.TrimSuffix(refunds, "/") + dir}, &result)
			var got []string
			for _, r := range result.Resources {
				got = append(got, r.Name+" "+r.MIMEType)
			}
			if strings.Join(got, ", ") != want {
				t.Errorf("%q has %q, want %q", dir, got, want)
			}
		}
		for method, uris := range map[string][]string{
			"skills/get":               {"skill://nobody/SKILL.md", refunds, refunds + "logo.bin", "", "x", "skill://acme/billing/refunds/skill.md"},
			"resources/directory/read": {"skill://nobody", refunds, refunds + "SKILL.md", "skill://acme", "skill://acme/billing", "", refunds + "templates/", refunds + "nobody"},
		} {
			for _, uri := range uris {
				if fault := refused(t, c, method, uri); fault.Code != protocol.CodeInvalidParams {
					t.Errorf("%s of %q: %v", method, uri, fault)
				}
			}
		}
		for _, uri := range []string{refunds + ".env", refunds + ".git/config", "skill://README.md", refunds + "../refunds/SKILL.md", refunds + "templates", refunds + "templates/a b.md"} {
			want := int64(protocol.CodeResourceNotFound)
			if modern {
				want = int64(protocol.CodeInvalidParams)
			}
			if fault := refused(t, c, "resources/read", uri); int64(fault.Code) != want {
				t.Errorf("read of %q: %v", uri, fault)
			}
		}
	}, skill.Directory(everything()))
}

// declared returns the settings of the extension that a server declares.
func declared(t *testing.T, c *mcptest.Client) string {
	t.Helper()
	text, err := json.Marshal(c.Server.Capabilities.Extensions["io.modelcontextprotocol/skills"])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// read reads a resource as bytes.
func read(t *testing.T, c *mcptest.Client, uri string) []byte {
	t.Helper()
	contents := c.Read(uri)
	if len(contents) != 1 || contents[0].URI != uri {
		t.Fatalf("%s: %v", uri, contents)
	}
	if contents[0].Blob != nil {
		return contents[0].Blob
	}
	return []byte(contents[0].Text)
}

// A file system that is a skill itself.
func TestDirectoryIsASkill(t *testing.T) {
	c := mcptest.New(t, server(t, nil, skill.Directory(files("SKILL.md", head("one"), "a/b.md", "b", "two/SKILL.md", head("two")))))
	var list struct{ Skills []entry }
	ask(t, c, "skills/list", nil, &list)
	if len(list.Skills) != 2 || list.Skills[0].URI != "skill://one/SKILL.md" || list.Skills[1].URI != "skill://one/two/SKILL.md" {
		t.Errorf("%v", list)
	}
	if got := read(t, c, "skill://one/a/b.md"); string(got) != "b" {
		t.Errorf("%q", got)
	}
}

func TestDirectoryFaults(t *testing.T) {
	many := files("a/SKILL.md", head("a"))
	for i := range 512 {
		many[fmt.Sprintf("a/%d.txt", i)] = &fstest.MapFile{}
	}
	large := files("a/SKILL.md", head("a"))
	for i := range 9 {
		large[fmt.Sprintf("a/%d.txt", i)] = &fstest.MapFile{Data: make([]byte, 2<<20)}
	}
	link := files("a/SKILL.md", head("a"))
	link["a/link"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("../b")}
	tests := []struct {
		name string
		fsys fs.FS
		opts []mcp.Option
		want []string // "" is no fault
	}{
		{"nil", nil, nil, []string{"mcp: skill.Directory: the file system is nil"}},
		{"nothing", files("README.md", ""), nil, []string{"no folder has a SKILL.md"}},
		{"every fault", files("a/SKILL.md", head("b"), "c/SKILL.md", "x"), nil, []string{`"a/SKILL.md": the name is "b" and the folder "a"`, `"c/SKILL.md": it must begin`}},
		{"the head", files("a/SKILL.md", "---\nname: a\ndescription: b\ndate: 2026-01-02\n---\n"), nil, []string{`"a/SKILL.md": line 4: "2026-01-02" is a number or a date`, "put it in quotes"}},
		{"carriage returns", files("a/SKILL.md", strings.ReplaceAll(head("a"), "\n", "\r\n")), nil, []string{"it must begin with a line"}},
		{"no description", files("a/SKILL.md", "---\nname: a\n---\n"), nil, []string{"description must be text"}},
		{"name of a folder", files("A_b/SKILL.md", head("A_b")), nil, []string{"name must be text of"}},
		{"name of a prefix", files("A b/c/SKILL.md", head("c")), nil, []string{`"A b/c": the folder "A b" above a skill`}},
		{"prefix with dots", files("v1.2_x/c/SKILL.md", head("c")), nil, nil},
		{"inner head", files("a/SKILL.md", head("a"), "a/b/SKILL.md", "x"), nil, []string{`"a/b/SKILL.md": it must begin`}},
		{"case of the manifest", files("a/skill.md", head("a"), "b/SKILL.md", head("b")), nil, []string{`"a/skill.md": the file of a skill is named SKILL.md`}},
		{"a folder for a manifest", files("a/SKILL.md/x", ""), nil, []string{`"a/SKILL.md": the file of a skill is named SKILL.md`}},
		{"percent", files("a/SKILL.md", head("a"), "a/b%2Fc", ""), nil, []string{`"a/b%2Fc": a name is UTF-8 without`}},
		{"backslash", files("a/SKILL.md", head("a"), `a/b\c`, ""), nil, []string{`a name is UTF-8 without`}},
		{"control", files("a/SKILL.md", head("a"), "a/b\nc", ""), nil, []string{`a name is UTF-8 without`}},
		{"case", files("a/SKILL.md", head("a"), "a/X", "", "a/x", ""), nil, []string{`"a/x": some systems cannot tell it from "X"`}},
		{"normal form", files("a/SKILL.md", head("a"), "a/\u00e9", "", "a/e\u0301", ""), nil, []string{"some systems cannot tell it from"}},
		{"case of folders", files("a/SKILL.md", head("a"), "a/X/1", "", "a/x/2", ""), nil, []string{`"a/x": some systems cannot tell it from "X"`}},
		{"too many", many, nil, []string{`"a": the skill has more than 512 files or 16 MiB`}},
		{"too large", large, nil, []string{`"a": the skill has more than 512 files or 16 MiB`}},
		{"a message", files("a/SKILL.md", head("a"), "a/b", strings.Repeat("\x00", 3<<20)), nil, []string{`"a/b": to read it would take a message of 4198400 bytes, more than Limits.Message, which is 4194304`}},
		{"link", link, nil, []string{`"a/link": it is not a regular file (L---------)`}},
		{"options", files("a/SKILL.md", head("a")), []mcp.Option{mcp.Doc("x")}, []string{"leave Title, Doc, Icons and Timeout out"}},
		{"nil option", files("a/SKILL.md", head("a")), []mcp.Option{nil}, []string{"option 0 is nil"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			quiet := zerolog.Nop()
			s := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, &mcp.Options{Logger: &quiet})
			err := s.Add(skill.Directory(tt.fsys, tt.opts...))
			if (err != nil) != (tt.want != nil) {
				t.Fatalf("got %v", err)
			}
			for _, want := range tt.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q in it", err, want)
				}
			}
		})
	}
}

// What is no file is a fault, on a disk, too, and what begins with a dot is not
// there, which the log says.
func TestDirectoryOfDisk(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		if err := errors.Join(os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700), os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("skills/a/SKILL.md", head("a"))
	write("skills/a/.env", "SECRET")
	write("outside", "SECRET")
	root, err := os.OpenRoot(filepath.Join(dir, "skills"))
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	systems := map[string]fs.FS{"DirFS": os.DirFS(filepath.Join(dir, "skills")), "Root": root.FS()}
	for name, fsys := range systems {
		t.Run(name, func(t *testing.T) {
			var log strings.Builder
			logger := zerolog.New(&log)
			c := mcptest.New(t, server(t, &mcp.Options{Logger: &logger}, skill.Directory(fsys)))
			if text := ask(t, c, "skills/list", nil, nil); strings.Contains(text, "env") {
				t.Error(text)
			}
			if !strings.Contains(log.String(), `"names":["a/.env"]`) {
				t.Errorf("the log says %q", log.String())
			}
		})
	}
	for what, make := range map[string]func(name string) error{
		"link":   func(name string) error { return os.Symlink("../../outside", name) },
		"folder": func(name string) error { return os.Symlink("..", name) },
		"pipe":   func(name string) error { return syscall.Mkfifo(name, 0o600) },
	} {
		if err := make(filepath.Join(dir, "skills/a/odd")); err != nil {
			t.Fatal(err)
		}
		for name, fsys := range systems {
			err := mcp.NewServer(mcp.Info{Name: "s", Version: "1"}, nil).Add(skill.Directory(fsys))
			if err == nil || !strings.Contains(err.Error(), `"a/odd": it is not a regular file`) {
				t.Errorf("%s in %s: %v", what, name, err)
			}
		}
		if err := os.Remove(filepath.Join(dir, "skills/a/odd")); err != nil {
			t.Fatal(err)
		}
	}
}

// Who may not see a skill hears of it nowhere, nor of a skill within it, and gets
// the answers of a server that does not have it.
func TestHidden(t *testing.T) {
	hide := func(f *mcp.Frame) bool { return false }
	outer := refunds + "SKILL.md"
	asked := map[string]bool{}
	tests := []struct {
		name       string
		opts       mcp.Options
		components []mcp.Component
	}{
		{"VisibleTo", mcp.Options{}, []mcp.Component{skill.Directory(everything(), mcp.VisibleTo(hide))}},
		{"Filter", mcp.Options{Filter: func(f *mcp.Frame, kind mcp.Kind, name string) bool {
			asked[string(kind)+" "+name] = true
			return name != outer && name != "skill://git-workflow/SKILL.md"
		}}, []mcp.Component{skill.Directory(everything())}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.opts.ListTTL, tt.opts.ListPublic = time.Minute, true
			wherever(t, tt.opts, func(t *testing.T, c *mcptest.Client) {
				for _, method := range []string{"skills/list", "resources/list"} {
					text := ask(t, c, method, nil, nil)
					if strings.Contains(text, "skill:") || strings.Contains(text, `"public"`) {
						t.Errorf("%s: %s", method, text)
					}
				}
				for method, uris := range map[string][]string{
					"skills/get":               {outer, refunds + "zz/inner/SKILL.md"},
					"resources/read":           {outer, refunds + "logo.bin", refunds + "zz/inner/SKILL.md", refunds + "zz/inner/x.md"},
					"resources/directory/read": {strings.TrimSuffix(refunds, "/"), refunds + "zz/inner"},
				} {
					for _, uri := range uris {
						got := refused(t, c, method, uri).Error()
						other := strings.ReplaceAll(uri, "refunds", "reFUNDS")
						if want := strings.ReplaceAll(refused(t, c, method, other).Error(), other, uri); got != want {
							t.Errorf("%s of %s: %q, and of nothing %q", method, uri, got, want)
						}
					}
				}
			}, tt.components...)
		})
	}
	for question := range asked {
		if question != "resource "+outer && question != "resource skill://git-workflow/SKILL.md" {
			t.Errorf("Filter was asked about %s", question)
		}
	}
}

// What needs scopes is left out of lists, refused with them where it is named, and
// private.
func TestScopes(t *testing.T) {
	opts := mcp.Options{ListTTL: time.Minute, ListPublic: true}
	for _, granted := range []bool{false, true} {
		s := server(t, &opts, skill.Directory(everything(), mcp.Scopes("skills:read")))
		var options []mcptest.Option
		if granted {
			options = append(options, mcptest.As(mcp.Identity{Subject: "u", Scopes: []string{"skills:read"}}))
		}
		c := mcptest.New(t, s, options...)
		text := ask(t, c, "skills/list", nil, nil)
		if strings.Contains(text, refunds) != granted || !strings.Contains(text, `"private"`) {
			t.Errorf("granted %v: %s", granted, text)
		}
		for method, uri := range map[string]string{"skills/get": refunds + "SKILL.md", "resources/read": refunds + "logo.bin", "resources/directory/read": strings.TrimSuffix(refunds, "/")} {
			result, err := c.TryRequest(method, map[string]string{"uri": uri})
			switch {
			case !granted && (err == nil || !strings.Contains(fmt.Sprint(err), "skills:read")):
				t.Errorf("%s: %s %v", method, result, err)
			case granted && (err != nil || strings.Contains(string(result), `"public"`)):
				t.Errorf("%s: %s %v", method, result, err)
			}
		}
	}
}

// A skill cannot be within another one that does not list its files, whoever it
// comes from; and it comes, and goes, as a whole.
func TestOverlap(t *testing.T) {
	outer, inner := files("a/SKILL.md", head("a"), "a/x.md", "x"), files("a/b/SKILL.md", head("b"))
	s := server(t, nil)
	if err := s.Add(skill.Directory(outer), skill.Directory(inner)); err == nil || !strings.Contains(err.Error(), `"skill://a/b/SKILL.md" is inside of another skill, skill://a/SKILL.md`) {
		t.Errorf("at once: %v", err)
	}
	s.MustAdd(skill.Directory(inner))
	if err := s.Add(skill.Directory(outer)); err == nil || !strings.Contains(err.Error(), "is inside of another skill") {
		t.Errorf("the outer one later: %v", err)
	}
	if err := s.Mount("child", server(t, nil, skill.Directory(outer))); err == nil || !strings.Contains(err.Error(), "is inside of another skill") {
		t.Errorf("by a mount: %v", err)
	}
	late := server(t, nil)
	if err := s.Mount("late", late); err != nil {
		t.Fatal(err)
	}
	late.MustAdd(skill.Directory(outer), skill.Directory(files("c/SKILL.md", head("c"))))
	c := mcptest.New(t, s)
	var list struct{ Skills []entry }
	ask(t, c, "skills/list", nil, &list)
	if len(list.Skills) != 2 || list.Skills[0].URI != "skill://a/b/SKILL.md" || list.Skills[1].URI != "skill://c/SKILL.md" {
		t.Errorf("with what a child added later: %v", list)
	}
	refused(t, c, "resources/read", "skill://a/x.md")

	if err := s.Add(mcp.Bytes("skill://c/SKILL.md", nil)); err == nil || !strings.Contains(err.Error(), "is registered already") {
		t.Errorf("a resource in place of a file: %v", err)
	}
	if n := s.Remove(mcp.KindResource, "skill://a/b/SKILL.md", "skill://nobody"); n != 1 {
		t.Errorf("removed %d", n)
	}
	s.MustAdd(skill.Directory(outer))
	if n := s.Remove(mcp.KindResource, "skill://a/x.md"); n != 0 {
		t.Errorf("removed %d files of a skill", n)
	}
	read(t, c, "skill://a/x.md")
}

// Older revisions know nothing of skills; their files are resources.
func TestOlder(t *testing.T) {
	for _, rev := range testdep.Revisions() {
		if slices.Contains(revisions, rev) {
			continue
		}
		c := mcptest.New(t, server(t, nil, skill.Directory(everything())), mcptest.Revision(rev))
		if got := declared(t, c); got != "null" {
			t.Errorf("%v declares the extension: %s", rev, got)
		}
		for _, method := range []string{"skills/list", "skills/get", "resources/directory/read"} {
			if fault := refused(t, c, method, refunds+"SKILL.md"); fault.Code != protocol.CodeMethodNotFound {
				t.Errorf("%v: %s: %v", rev, method, fault)
			}
		}
		read(t, c, refunds+"logo.bin")
	}
	none := mcptest.New(t, server(t, nil))
	if declared(t, none) != "null" || refused(t, none, "skills/list", "").Code != protocol.CodeMethodNotFound {
		t.Error("a server without skills knows them")
	}
}

// A page ends at a megabyte, and no skill is on two.
func TestPages(t *testing.T) {
	fsys := fstest.MapFS{}
	for i := range 10 {
		name := fmt.Sprintf("s%d", i)
		fsys[name+"/SKILL.md"] = &fstest.MapFile{Data: []byte(head(name))}
		for j := range 500 {
			fsys[fmt.Sprintf("%s/%0200d", name, j)] = &fstest.MapFile{}
		}
	}
	c := mcptest.New(t, server(t, nil, skill.Directory(fsys)))
	seen, params := map[string]bool{}, map[string]string{}
	for pages := 1; ; pages++ {
		var list struct {
			Skills     []entry
			NextCursor string
		}
		if text := ask(t, c, "skills/list", params, &list); len(text) > 1<<20+200 {
			t.Errorf("a page has %d bytes", len(text))
		}
		for _, e := range list.Skills {
			if seen[e.URI] || len(e.Resources) != 501 {
				t.Errorf("%s: %d files", e.URI, len(e.Resources))
			}
			seen[e.URI] = true
		}
		if params["cursor"] = list.NextCursor; list.NextCursor == "" {
			if pages != 2 || len(seen) != 10 {
				t.Errorf("%d pages, %d skills", pages, len(seen))
			}
			return
		}
	}
}

// 16 MiB are read, digested and held in about as much memory.
func BenchmarkAdd(b *testing.B) {
	fsys := files("a/SKILL.md", head("a"))
	for i := range 7 {
		fsys[fmt.Sprintf("a/%d.txt", i)] = &fstest.MapFile{Data: []byte(strings.Repeat("0123456789abcde\n", 2<<16))}
	}
	b.ReportAllocs()
	b.SetBytes(14 << 20)
	for b.Loop() {
		server(b, nil, skill.Directory(fsys))
	}
}
