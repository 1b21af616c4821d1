package gateway

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/safely"
	"github.com/talaria-go/mcp/internal/visible"
)

// files has what Apply took from the last file. mu serialises Apply.
type files struct {
	mu      sync.Mutex
	servers map[string]applied
}

// applied is a server of a file, and the upstream that it is.
type applied struct {
	config.Server
	upstream *upstream
}

// settings are the member "talaria" of a server in a file.
type settings struct {
	Only        []string `json:"only"`
	Hide        []string `json:"hide"`
	Rules       []Rule   `json:"rules"`
	Shared      bool     `json:"shared"`
	NoQuestions bool     `json:"noQuestions"`
}

// apply is Gateway.Apply.
func (a *files) apply(g *Gateway, f *config.File, o *client.HTTPOptions) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, seen := map[string]applied{}, map[string]bool{}
	var faults []error
	for _, s := range f.Servers {
		before := a.servers[s.Name]
		had, now := before.upstream != nil && g.latest(s.Name) == before.upstream, applied{s, before.upstream}
		again := seen[s.Name] // Err says that its name is taken
		seen[s.Name] = true
		if s.Disabled {
			continue
		}
		if !had || !reflect.DeepEqual(before.Server, s) {
			u, err := upstreamOf(g, s, o)
			if err == nil {
				now.upstream, err = g.set(s.Name, u)
			}
			if err != nil {
				faults = append(faults, fmt.Errorf("server %q: %w", s.Name, err))
				if again || !had {
					continue
				}
				now = before
			}
		}
		next[s.Name] = now
	}
	for name, was := range a.servers {
		if _, still := next[name]; !still && g.latest(name) == was.upstream {
			g.Remove(name)
		}
	}
	a.servers = next
	return errors.Join(faults...)
}

// upstreamOf returns the upstream that a file describes.
func upstreamOf(g *Gateway, s config.Server, o *client.HTTPOptions) (Upstream, error) {
	t, err := s.Transport(o)
	if err != nil {
		return Upstream{}, err
	}
	if command, ok := t.(*client.CommandTransport); ok {
		command.Stderr = stderr{g.log, s.Name}
	}
	var own settings
	if len(s.Talaria) > 0 {
		if err := onlyMembers(s.Talaria, "only", "hide", "rules", "shared", "noQuestions"); err != nil {
			return Upstream{}, fmt.Errorf("talaria: %w", err)
		}
		if err := jsonx.Unmarshal(s.Talaria, &own); err != nil {
			return Upstream{}, fmt.Errorf("talaria: %w", err)
		}
		var raw struct {
			Rules []json.RawMessage `json:"rules"`
		}
		_ = jsonx.Unmarshal(s.Talaria, &raw) // own was read from it
		for i, rule := range raw.Rules {
			if err := onlyMembers(rule, "tool", "name", "description", "hints", "fixed"); err != nil {
				return Upstream{}, fmt.Errorf("talaria: rule %d: %w", i+1, err)
			}
		}
	}
	return Upstream{Transport: t, Shared: own.Shared, NoQuestions: own.NoQuestions, Only: own.Only, Hide: own.Hide, Rules: own.Rules}, nil
}

// onlyMembers returns an error for a member of an object that has none of these names. A rule with a
// mistyped member would let through what it was to hold back.
func onlyMembers(object json.RawMessage, names ...string) error {
	var members map[string]json.RawMessage
	if err := jsonx.Unmarshal(object, &members); err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		if !slices.Contains(names, name) {
			return fmt.Errorf("unknown member %q; there are %s", name, strings.Join(names, ", "))
		}
	}
	return nil
}

// stderr is the standard error of a command, which goes to the log.
type stderr struct {
	log  *zerolog.Logger
	name string
}

// Write implements io.Writer.
func (s stderr) Write(lines []byte) (int, error) {
	safely.Log(s.log.Info().Str("server", s.name), visible.Text(string(lines), visible.Sentence))
	return len(lines), nil
}
