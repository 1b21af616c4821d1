package main

import (
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/skill"
)

// skillServer serves skills; what changed says of a URI is sent in place of the
// file.
func skillServer(t *testing.T, changed map[string]string) string {
	t.Helper()
	quiet := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "skills", Version: "1"}, &mcp.Options{Logger: &quiet})
	s.MustAdd(skill.Directory(fstest.MapFS{
		"notes/SKILL.md": {Data: []byte("---\nname: notes\ndescription: Writes release notes\n---\nSee a.txt.\n")},
		"notes/a.txt":    {Data: []byte("hello\x1b[31m\n")},
		"notes/in/b.bin": {Data: []byte("\x00\xff")},
		"other/SKILL.md": {Data: []byte("---\nname: other\ndescription: Another one\n---\n")},
	}))
	s.Use(func(next mcp.Handler) mcp.Handler {
		return func(f *mcp.Frame) (protocol.Result, error) {
			if text, ok := changed[f.Request().Params.Name]; ok && f.Request().Method == "resources/read" {
				return &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{{URI: f.Request().Params.Name, Text: text}}}, nil
			}
			return next(f)
		}
	})
	web := httptest.NewServer(s.Handler())
	t.Cleanup(web.Close)
	return web.URL
}

func TestSkills(t *testing.T) {
	url := skillServer(t, nil)
	empty := t.TempDir()
	t.Chdir(empty)
	got := talaria(t, "", "skills", url)
	for _, want := range []string{"notes", "skill://notes/SKILL.md", "Writes release notes", "skill://other/SKILL.md", "3"} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("skills: %+v, want %q", got, want)
		}
	}
	var list []struct {
		URI, Fingerprint string
		Files            []struct{ Name string }
	}
	got = talaria(t, "", "skills", url, "--json")
	if err := json.Unmarshal([]byte(got.stdout), &list); err != nil || len(list) != 2 || len(list[0].Files) != 3 || list[0].Fingerprint == "" {
		t.Errorf("%+v: %v", got, err)
	}
	got = talaria(t, "", "skill", url, "skill://notes/SKILL.md")
	for _, want := range []string{"in/b.bin", "sha256:", "verified; the fingerprint is " + list[0].Fingerprint} {
		if got.code != 0 || !strings.Contains(got.stdout, want) {
			t.Errorf("skill: %+v, want %q", got, want)
		}
	}
	if got := talaria(t, "", "skill", url, "skill://notes/SKILL.md", "--file", "in/b.bin"); got.code != 0 || got.stdout != "\x00\xff" {
		t.Errorf("--file: %+v", got)
	}
	if got := talaria(t, "", "skill", url, "skill://nobody/SKILL.md"); got.code != exitProtocol {
		t.Errorf("a skill that is not there: %+v", got)
	}
	quiet := zerolog.Nop()
	without := httptest.NewServer(mcp.NewServer(mcp.Info{Name: "plain", Version: "1"}, &mcp.Options{Logger: &quiet}).Handler())
	defer without.Close()
	if got := talaria(t, "", "skills", without.URL); got.code != exitProtocol || strings.Contains(got.stderr, "no skills") || !strings.Contains(got.stderr, "does not declare") {
		t.Errorf("a server without skills: %+v", got)
	}
	if left, err := os.ReadDir(empty); err != nil || len(left) > 0 {
		t.Errorf("left on the disk: %v %v", left, err)
	}
}

// What differs is exit code 1, and is not shown.
func TestSkillDiffers(t *testing.T) {
	url := skillServer(t, map[string]string{"skill://notes/a.txt": "PLANTED"})
	for _, args := range [][]string{{"skill", url, "skill://notes/SKILL.md"}, {"skill", url, "skill://notes/SKILL.md", "--file", "a.txt"}, {"skill", url, "skill://notes/SKILL.md", "--file", "../other/SKILL.md"}} {
		got := talaria(t, "", args...)
		if got.code != exitTool || !strings.Contains(got.stderr, "not what the server announced") || strings.Contains(got.stdout+got.stderr, "PLANTED") || strings.Contains(got.stdout, "verified") {
			t.Errorf("%q: %+v", args[2:], got)
		}
	}
	if got := talaria(t, "", "skill", url, "skill://notes/SKILL.md", "--file", "SKILL.md"); got.code != 0 || !strings.Contains(got.stdout, "See a.txt.") {
		t.Errorf("a file that is as it was: %+v", got)
	}
}
