package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/client/skills"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// shownSkill is a skill as JSON.
type shownSkill struct {
	URI         string         `json:"uri"`
	Frontmatter map[string]any `json:"frontmatter"`
	Files       []shownFile    `json:"files"` // null: the server announces none
	Fingerprint string         `json:"fingerprint,omitempty"`
}

// shownFile is a file of one.
type shownFile struct {
	Name   string `json:"name"`
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

func shown(s *skills.Skill) shownSkill {
	out := shownSkill{URI: s.URI, Frontmatter: s.Frontmatter, Fingerprint: s.Fingerprint()}
	for _, f := range s.Files {
		out.Files = append(out.Files, shownFile(f))
	}
	return out
}

// skillsCommand lists skills, those too that come behind one that is not as it
// should be.
func skillsCommand(c *console.Console) *cobra.Command {
	return (&once{console: c}).command("skills TARGET", "List skills", "", exactly("TARGET"), func(ctx context.Context, s *session, _ []string) error {
		all, faults := []shownSkill{}, []error(nil)
		var rows [][]string
		for one, err := range skills.List(ctx, s.Client) {
			if err != nil {
				faults = append(faults, err)
				continue
			}
			all = append(all, shown(one))
			files := "not announced"
			if one.Files != nil {
				files = fmt.Sprint(len(one.Files))
			}
			rows = append(rows, []string{one.Name, one.URI, files, one.Description})
		}
		err := s.show(all, func() {
			if len(rows) == 0 {
				if len(faults) == 0 {
					c.Notef("no skills")
				}
				return
			}
			c.Table([]string{"skill", "uri", "files", "description"}, rows)
		})
		return errors.Join(append(faults, err)...)
	})
}

const skillHelp = `Skill reads every file of a skill and compares it with what the server has
announced. That they are the same says that the server sends what it announced,
and nothing about whether it can be trusted. Nothing is written to the disk: a
skill that a server has sent is not one of yours.`

// skillCommand verifies a skill, or one file of it.
func skillCommand(c *console.Console) *cobra.Command {
	var file string
	cmd := (&once{console: c}).command("skill TARGET URI", "Verify a skill, or print a file of it", skillHelp, exactly("TARGET", "URI"), func(ctx context.Context, s *session, args []string) error {
		one, err := skills.Get(ctx, s.Client, args[0])
		if err != nil {
			return err
		}
		if file != "" {
			data, err := one.ReadFile(ctx, file)
			if err != nil {
				return err
			}
			writeData(c, data)
			return nil
		}
		if _, err := one.Load(ctx); err != nil {
			return err
		}
		var rows [][]string
		for _, f := range one.Files {
			if _, err := one.ReadFile(ctx, f.Name); err != nil {
				return err
			}
			rows = append(rows, []string{f.Name, fmt.Sprint(f.Size), f.Digest})
		}
		return s.show(shown(one), func() {
			c.Print(c.Paint(console.Bold, console.Line(one.Name)))
			c.Print(c.Wrap(one.Description, "  "))
			c.Table([]string{"file", "bytes", "digest"}, rows)
			c.Printf("verified; the fingerprint is %s", one.Fingerprint())
		})
	})
	cmd.Flags().StringVar(&file, "file", "", "print this `file` of the skill as it is, if it is what was announced")
	return cmd
}
