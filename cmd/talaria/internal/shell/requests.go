package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/arguments"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/protocol"
)

// requests are the commands that send one message, and never ask.
type requests struct{ *link }

func (r requests) ping(ctx context.Context, _ string) error {
	took, err := terminal.Get(ctx, r.Terminal, func(ctx context.Context, _ ...client.CallOption) (time.Duration, error) {
		start := time.Now()
		err := r.client.Ping(ctx)
		return time.Since(start), err
	})
	if err == nil {
		r.Console.Printf("pong (%v)", took.Round(10*time.Microsecond))
	}
	return err
}

func levels() []string {
	var list []string
	for l := protocol.LevelDebug; l <= protocol.LevelEmergency; l++ {
		list = append(list, l.String())
	}
	return list
}

func (r requests) setLevel(ctx context.Context, rest string) error {
	var level protocol.Level
	if level.UnmarshalText([]byte(rest)) != nil {
		return wrong("%q is no level; there are %s", rest, strings.Join(levels(), ", "))
	}
	err := r.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return r.client.SetLevel(ctx, level) })
	if err == nil {
		r.told = level
		r.Terminal.ShowLogs(level)
		r.Console.Printf("level %s and worse", level)
	}
	return err
}

func (r requests) complete(ctx context.Context, rest string) error {
	list, err := split(rest)
	if err != nil {
		return err
	}
	if len(list) < 2 {
		return wrong("what is to be completed?")
	}
	q, err := Completion(list)
	if err != nil {
		return wrong("%v", err)
	}
	result, err := terminal.Get(ctx, r.Terminal, func(ctx context.Context, _ ...client.CallOption) (*protocol.Completion, error) {
		return r.client.Complete(ctx, q)
	})
	if err == nil {
		r.Render.Completion(result)
	}
	return err
}

// Completion reads: prompt or template, argument, and, as far as they are there,
// value and what is filled in.
func Completion(words []string) (client.Completion, error) {
	q := client.Completion{Prompt: words[0], Argument: words[1]}
	if strings.ContainsAny(words[0], "{}") || strings.Contains(words[0], "://") {
		q.Template, q.Prompt = words[0], ""
	}
	if len(words) > 2 {
		q.Value = words[2]
	}
	for _, pair := range words[min(3, len(words)):] {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return q, fmt.Errorf("%q is not NAME=value", pair)
		}
		if q.Context == nil {
			q.Context = map[string]string{}
		}
		q.Context[name] = value
	}
	return q, nil
}

// completeReference completes what follows complete.
func (r requests) completeReference(typed []string) []string {
	switch len(typed) {
	case 1:
		return append(r.lists.promptNames(), r.lists.uriTemplates()...)
	case 2:
		return r.lists.promptFields(typed[0]).Names()
	}
	return nil
}

// request sends what has no command of its own.
func (r requests) request(ctx context.Context, rest string) error {
	method, params, err := methodAndParams(rest)
	if err != nil {
		return err
	}
	result, err := terminal.Get(ctx, r.Terminal, func(ctx context.Context, call ...client.CallOption) (result json.RawMessage, err error) {
		err = r.client.Request(ctx, method, params, &result, call...)
		return result, err
	})
	if err != nil {
		return err
	}
	return r.Render.JSON(result)
}

func (r requests) notify(ctx context.Context, rest string) error {
	method, params, err := methodAndParams(rest)
	if err != nil {
		return err
	}
	return r.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return r.client.Notify(ctx, method, params) })
}

func methodAndParams(rest string) (string, json.RawMessage, error) {
	w, err := wordsOf(rest)
	if err != nil {
		return "", nil, err
	}
	if w.name == "" {
		return "", nil, wrong("METHOD is missing")
	}
	params, err := (&arguments.Object{}).Parse(w.typed)
	if err != nil {
		return "", nil, wrong("%v", err)
	}
	return w.name, params, nil
}
