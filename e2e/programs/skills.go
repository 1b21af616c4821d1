package main

import (
	"context"
	"errors"

	"github.com/talaria-go/mcp/client/skills"
)

// listSkills lists the skills and reads none of their files.
func listSkills(ctx context.Context, p play) error { return eachSkill(ctx, p, nil) }

// loadSkills loads every skill and reads all of its files, and stops at the first
// that is not what its entry says.
func loadSkills(ctx context.Context, p play) error {
	return eachSkill(ctx, p, func(s *skills.Skill) error {
		if _, err := s.Load(ctx); err != nil {
			return err
		}
		for _, f := range s.Files {
			if _, err := s.ReadFile(ctx, f.Name); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachSkill calls use, if it is not nil, for each skill that is listed.
func eachSkill(ctx context.Context, p play, use func(*skills.Skill) error) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	for s, listed := range skills.List(ctx, c) {
		if err = listed; err == nil && use != nil {
			err = use(s)
		}
		if err != nil {
			break
		}
	}
	return errors.Join(err, c.Close())
}
