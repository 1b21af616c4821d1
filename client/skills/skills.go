package skills

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
)

// ErrUnverified is the error of content that is not what the server announced of
// it: bytes, size or head differ, or the file is not part of the skill. The content
// is not returned. The skill may have changed: Get it again. An approval of the
// user that was bound to the old one is void then.
var ErrUnverified = errors.New("skills: not what the server announced")

// List iterates over the skills that a server lists, page by page, and reads none
// of their files. An entry that is not as the extension says is an error of its
// own, after which the next entry follows; with an error of the list the sequence
// ends. A list may be incomplete, or empty, although there are skills: whose URI is
// known can be had with Get.
//
// The server is asked each time, and has to declare the extension; otherwise the
// error is client.ErrUnsupported.
func List(ctx context.Context, c *client.Client) iter.Seq2[*Skill, error] {
	return func(yield func(*Skill, error) bool) {
		if err := declared(ctx, c); err != nil {
			yield(nil, err)
			return
		}
		for text, err := range c.List(ctx, wire.MethodSkillsList, "skills", client.NoCache()) {
			var s *Skill
			if err == nil {
				s, err = newSkill(c, text)
			}
			if !yield(s, err) {
				return
			}
		}
	}
}

// Get asks for one skill by the URI of its SKILL.md, also to learn whether it has
// changed. A skill that the server does not have is the server's error.
func Get(ctx context.Context, c *client.Client, uri string) (*Skill, error) {
	if err := declared(ctx, c); err != nil {
		return nil, err
	}
	var raw json.RawMessage
	if err := c.Request(ctx, wire.MethodSkillsGet, map[string]string{"uri": uri}, &raw, client.NoCache(), client.Idempotent()); err != nil {
		return nil, err
	}
	var result map[string]json.RawMessage
	if err := jsonx.Unmarshal(raw, &result); err != nil {
		return nil, invalid("skills/get: %w", err)
	}
	s, err := newSkill(c, result["skill"])
	if err != nil {
		return nil, err
	}
	if s.URI != uri {
		return nil, invalid("skills/get: the server has sent %s, and was asked for %s", shown(s.URI), shown(uri))
	}
	return s, nil
}

// declared returns an error unless the server declares the extension: only then may
// a client send its methods. It waits for the connection, if that is on its way.
func declared(ctx context.Context, c *client.Client) error {
	if err := c.WaitReady(ctx); err != nil {
		return err
	}
	if !c.Supports("extensions", wire.SkillsExtension) {
		return fmt.Errorf("skills: the server does not declare the extension %s: %w", wire.SkillsExtension, client.ErrUnsupported)
	}
	return nil
}

// invalid returns an error for an answer that is not as the extension says.
func invalid(format string, args ...any) error {
	return fmt.Errorf("skills: %w: %w", client.ErrInvalidResult, fmt.Errorf(format, args...))
}

// shown returns a text of the server for errors, which may end up in a terminal.
func shown(text string) string { return fmt.Sprintf("%q", visible.Line(text, visible.Name)) }
