package docs_test

import (
	"context"
	"errors"
	"io/fs"
	"log"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/skills"
	"github.com/talaria-go/mcp/skill"
)

func skillServer(fsys fs.FS) (*mcp.Server, error) {
	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, &mcp.Options{ListTTL: time.Hour})
	return s, s.Add(skill.Directory(fsys))
}

func instructions(ctx context.Context, c *client.Client, name string, approve func(s *skills.Skill, print string) bool) (string, error) {
	for s, err := range skills.List(ctx, c) {
		if err != nil {
			log.Print(err) // of one entry, or of the list
			continue
		}
		if s.Name == name && approve(s, s.Fingerprint()) {
			return s.Load(ctx)
		}
	}
	return "", errors.New("there is no such skill, or the user does not want it")
}

// The skill of the page is served, listed, approved, loaded and read; what the
// page says must be in quotes is an error without.
func TestSkills(t *testing.T) {
	manifest := blocks(page(t, "skills.md"), "markdown")[0]
	fsys := fstest.MapFS{"refunds/SKILL.md": {Data: []byte(manifest)}, "refunds/references/policy.md": {Data: []byte("Within 30 days.")}}
	server, err := skillServer(fsys)
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	c, err := client.Connect(ctx, client.Local(server.ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var s *skills.Skill
	text, err := instructions(ctx, c, "refunds", func(found *skills.Skill, print string) bool {
		s = found
		return strings.HasPrefix(print, "sha256:")
	})
	if err != nil || text != "Look the order up, then follow references/policy.md.\n" {
		t.Fatalf("%q %v", text, err)
	}
	if _, err := instructions(ctx, c, "refunds", func(*skills.Skill, string) bool { return false }); err == nil {
		t.Error("loaded without approval")
	}
	policy, err := policyOf(ctx, c, s)
	if err != nil || policy != "Within 30 days." {
		t.Errorf("%q %v", policy, err)
	}

	rows := 0
	for line := range strings.SplitSeq(page(t, "skills.md"), "\n") {
		cells := strings.Split(line, "`")
		if !strings.HasPrefix(line, "| `") || len(cells) < 4 || !strings.Contains(cells[1], ": ") {
			continue
		}
		rows++
		for at, field := range map[int]string{1: cells[1], 3: cells[3]} {
			text := strings.Replace(manifest, "license: Apache-2.0", field, 1)
			_, err := skillServer(fstest.MapFS{"refunds/SKILL.md": {Data: []byte(text)}})
			if strings.Contains(field, ": ") && (err != nil) != (at == 1) {
				t.Errorf("%s: %v", field, err)
			}
		}
	}
	if rows != 6 {
		t.Errorf("the page has %d rows", rows)
	}
}

func policyOf(ctx context.Context, c *client.Client, s *skills.Skill) (string, error) {
	text, err := s.ReadFile(ctx, "references/policy.md")
	if errors.Is(err, skills.ErrUnverified) {
		s, err = skills.Get(ctx, c, s.URI) // it has changed: show it to the user again
	}
	if s == nil {
		return "", err
	}
	return string(text), err
}
