package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/render"
	"github.com/talaria-go/mcp/protocol"
)

func (s *Shell) initialize(ctx context.Context, _ string) error { return s.connect(ctx) }

func (s *Shell) showState(_ context.Context, rest string) error {
	if rest != "" && rest != "-v" {
		return wrong("unexpected argument %q", rest)
	}
	var rows [][]string
	add := func(name, format string, args ...any) {
		if text := fmt.Sprintf(format, args...); text != "" {
			rows = append(rows, []string{name, text})
		}
	}
	for _, fact := range s.Facts {
		add(fact[0], "%s", console.Line(fact[1]))
	}
	if c := s.client; c == nil {
		add("state", "not connected")
	} else {
		add("state", "%s", c.State())
		add("revision", "%s", c.Revision())
		add("server", "%s", render.Server(c.Server().Info))
		add("capabilities", "%s", capabilities(c.Server().Capabilities, rest == "-v"))
		for _, root := range c.Roots() {
			add("root", "%s", console.Line(root.URI))
		}
		stats := c.Stats()
		add("requests", "%d sent, %d answered, %d failed, %d timed out, %d cancelled", stats.Requests, stats.Completed, stats.Failed, stats.TimedOut, stats.Cancelled)
		if stats.Reconnects > 0 {
			add("reconnects", "%d", stats.Reconnects)
		}
		for _, p := range c.Pending() {
			add("pending", "%s %s (%v)", p.Method, console.Line(p.Name), p.Elapsed().Round(time.Millisecond))
		}
		if rest == "-v" {
			add("unexpected", "%d answers to no request, %d messages that are none, %d notifications dropped", stats.Unmatched, stats.InvalidMessages, stats.Dropped)
			add("instructions", "%s", console.Line(c.Server().Instructions))
		}
	}
	if s.told != 0 {
		add("log level", "%s", s.told)
	}
	add("timeout", "%v", s.Terminal.Limit())
	s.Console.Table([]string{"what", "value"}, rows)
	return nil
}

// capabilities names what a server declares, or shows all of it.
func capabilities(have protocol.ServerCapabilities, all bool) string {
	text, err := json.Marshal(have)
	if err != nil || string(text) == "{}" {
		return "none"
	}
	if all {
		return console.Line(string(text))
	}
	return strings.Join(render.Capabilities(have), ", ")
}

func (s *Shell) timeout(_ context.Context, rest string) error {
	if rest != "" {
		limit, err := time.ParseDuration(rest)
		if rest == "0" {
			limit, err = 0, nil
		}
		if err != nil || limit < 0 {
			return wrong("%q is no duration; write 10s, 2m or 0", rest)
		}
		s.Terminal.SetLimit(limit)
	}
	if limit := s.Terminal.Limit(); limit > 0 {
		s.Console.Printf("an answer, or progress, must come within %v", limit)
	} else {
		s.Console.Print("no limit")
	}
	return nil
}

func (s *Shell) history(context.Context, string) error {
	for i, line := range s.Editor.History() {
		s.Console.Printf("%4d  %s", i+1, line)
	}
	return nil
}

func (s *Shell) clear(context.Context, string) error {
	if s.Console.OutTerminal {
		fmt.Fprint(s.Console.Out, "\x1b[H\x1b[2J")
	}
	return nil
}

func (s *Shell) roots(ctx context.Context, rest string) error {
	list, err := split(rest)
	if err != nil {
		return err
	}
	roots := s.client.Roots()
	switch {
	case len(list) == 0:
	case list[0] == "clear" && len(list) == 1:
		roots = nil
	case list[0] == "add" && len(list) == 2:
		abs, err := filepath.Abs(list[1])
		if err != nil {
			return err
		}
		root := protocol.Root{URI: (&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String(), Name: filepath.Base(abs)}
		roots = append(slices.DeleteFunc(roots, func(r protocol.Root) bool { return r.URI == root.URI }), root)
	case list[0] == "remove" && len(list) == 2:
		all := len(roots)
		if roots = slices.DeleteFunc(roots, func(r protocol.Root) bool { return r.URI == list[1] }); len(roots) == all {
			return wrong("there is no root %s", console.Line(list[1]))
		}
	default:
		return wrong("that is not understood")
	}
	if len(list) > 0 {
		if err := s.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return s.client.SetRoots(ctx, roots) }); err != nil {
			return err
		}
	}
	for _, root := range roots {
		s.Console.Print(console.Line(root.URI))
	}
	if len(roots) == 0 {
		s.Console.Notef("no roots")
	}
	return nil
}
