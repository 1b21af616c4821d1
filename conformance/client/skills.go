package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/client"
)

// skill is an entry of skills/list (extension io.modelcontextprotocol/skills).
type skill struct {
	URI         string            `json:"uri"`
	Frontmatter map[string]string `json:"frontmatter"`
	Resources   []skillFile       `json:"resources"`
}

type skillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int    `json:"size"`
}

// listSkills lists the skills and reads none of their files.
func listSkills(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	_, err = skillsOf(ctx, c)
	return errors.Join(err, c.Close())
}

// loadSkills loads every skill, and stops at the first that is not what its
// entry says.
func loadSkills(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	skills, err := skillsOf(ctx, c)
	for _, s := range skills {
		if err == nil {
			err = s.load(ctx, c)
		}
	}
	return errors.Join(err, c.Close())
}

func skillsOf(ctx context.Context, c *client.Client) ([]skill, error) {
	var result struct {
		Skills []skill `json:"skills"`
	}
	err := c.Request(ctx, "skills/list", nil, &result)
	return result.Skills, err
}

// load reads the skill's own file first, because it decides about the others.
func (s skill) load(ctx context.Context, c *client.Client) error {
	for _, first := range []bool{true, false} {
		for _, file := range s.Resources {
			if (file.URI == s.URI) != first {
				continue
			}
			text, err := file.read(ctx, c)
			if err == nil && first {
				err = s.compare(text)
			}
			if err != nil {
				return fmt.Errorf("skill %s: %s: %w", s.URI, file.URI, err)
			}
		}
	}
	return nil
}

// read returns the text of the file if it is the one of the entry.
func (f skillFile) read(ctx context.Context, c *client.Client) (string, error) {
	result, err := c.Read(ctx, f.URI)
	if err != nil {
		return "", err
	}
	if len(result.Contents) != 1 {
		return "", fmt.Errorf("got %d contents, want one", len(result.Contents))
	}
	text := result.Contents[0].Text
	if len(text) != f.Size {
		return "", fmt.Errorf("got %d bytes, the entry says %d", len(text), f.Size)
	}
	sum := sha256.Sum256([]byte(text))
	if got := "sha256:" + hex.EncodeToString(sum[:]); got != f.Digest {
		return "", fmt.Errorf("the digest is %s, the entry says %s", got, f.Digest)
	}
	return text, nil
}

// compare holds the head of a skill against the entry. Heads of plain lines are
// understood, as the suite has them; any other differs.
func (s skill) compare(text string) error {
	rest, ok := strings.CutPrefix(text, "---\n")
	head, _, closed := strings.Cut(rest, "\n---\n")
	if !ok || !closed {
		return errors.New("it has no frontmatter")
	}
	got := map[string]string{}
	for line := range strings.SplitSeq(head, "\n") {
		name, value, ok := strings.Cut(line, ": ")
		if !ok {
			return fmt.Errorf("the frontmatter has the line %q", line)
		}
		got[name] = value
	}
	if len(got) != len(s.Frontmatter) {
		return fmt.Errorf("the frontmatter has %d fields, the entry %d", len(got), len(s.Frontmatter))
	}
	for name, want := range s.Frontmatter {
		if got[name] != want {
			return fmt.Errorf("the frontmatter's %s is %q, the entry says %q", name, got[name], want)
		}
	}
	return nil
}
