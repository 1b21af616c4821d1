package skills

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"iter"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/internal/visible"
	"github.com/talaria-go/mcp/internal/wire"
)

// ErrUnverified is the error of content that is not what the server announced of
// it: bytes, size or head differ, or the file is none of the skill's. What was read
// is not returned. The skill may have changed: Get it anew. An approval of the user
// that was bound to the old one is void then.
var ErrUnverified = errors.New("skills: not what the server announced")

// maxPages is how many pages a list may have, as the guard against a server that
// never ends.
const maxPages = 10_000

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
		seen, params := map[[sha256.Size]byte]bool{}, map[string]string{}
		for {
			entries, next, err := page(ctx, c, params)
			if err != nil {
				yield(nil, err)
				return
			}
			err = each(entries, '[', func(_ string, text json.RawMessage) error {
				if !yield(newSkill(c, text)) {
					return errEnough
				}
				return nil
			})
			if err != nil {
				return // it is errEnough, as the answer was read as JSON before
			}
			if next == "" {
				return
			}
			key := sha256.Sum256([]byte(next)) // cursors may be long
			if seen[key] || len(seen) == maxPages {
				yield(nil, invalid("the server's pages do not end: %d pages, and cursor %s goes on", len(seen)+1, visible.Line(next, visible.Name)))
				return
			}
			seen[key], params["cursor"] = true, next
		}
	}
}

// errEnough ends a list of which nobody wants more.
var errEnough = errors.New("enough")

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
	if err := json.Unmarshal(raw, &result); err != nil {
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

// page asks for one page of the list, and returns the list of its entries and the
// cursor of the next one. The entries are not looked into, so that one that is not right does not
// hide the others.
func page(ctx context.Context, c *client.Client, params map[string]string) (entries json.RawMessage, next string, err error) {
	var raw json.RawMessage
	if err := c.Request(ctx, wire.MethodSkillsList, params, &raw, client.NoCache(), client.Idempotent()); err != nil {
		return nil, "", err
	}
	var result struct {
		Skills     json.RawMessage
		NextCursor string
	}
	if err := json.Unmarshal(raw, &result); err != nil || len(result.Skills) == 0 || result.Skills[0] != '[' {
		return nil, "", invalid("skills/list: the answer has no list of skills, or no cursor that is text")
	}
	return result.Skills, result.NextCursor, nil
}

// invalid returns an error for an answer that is not as the extension says.
func invalid(format string, args ...any) error {
	return fmt.Errorf("skills: %w: %w", client.ErrInvalidResult, fmt.Errorf(format, args...))
}

// shown returns a text of the server for errors, which may end up in a terminal.
func shown(text string) string { return fmt.Sprintf("%q", visible.Line(text, visible.Name)) }
