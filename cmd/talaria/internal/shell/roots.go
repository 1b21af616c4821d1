package shell

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/protocol"
)

// roots is the command for roots.
type roots struct{ *link }

func (r roots) run(ctx context.Context, rest string) error {
	list, err := split(rest)
	if err != nil {
		return err
	}
	roots := r.client.Roots()
	switch {
	case len(list) == 0:
	case list[0] == "clear" && len(list) == 1:
		roots = nil
	case list[0] == "add" && len(list) == 2:
		root, err := Root(list[1])
		if err != nil {
			return wrong("%v", err)
		}
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
		if err := r.Terminal.Run(ctx, func(ctx context.Context, _ ...client.CallOption) error { return r.client.SetRoots(ctx, roots) }); err != nil {
			return err
		}
	}
	for _, root := range roots {
		r.Console.Print(console.Line(root.URI))
	}
	if len(roots) == 0 {
		r.Console.Notef("no roots")
	}
	return nil
}

// Root makes a root of a directory or a file URI.
func Root(dir string) (protocol.Root, error) {
	if strings.HasPrefix(dir, "file://") {
		return protocol.Root{URI: dir, Name: filepath.Base(dir)}, nil
	}
	abs, err := filepath.Abs(dir)
	if err != nil {
		return protocol.Root{}, err
	}
	if info, err := os.Stat(abs); err != nil || !info.IsDir() {
		return protocol.Root{}, fmt.Errorf("%s is not a directory", dir)
	}
	u := url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}
	return protocol.Root{URI: u.String(), Name: filepath.Base(abs)}, nil
}

func (r roots) complete(typed []string) []string {
	switch {
	case len(typed) == 1:
		return []string{"add", "remove", "clear"}
	case len(typed) == 2 && typed[0] == "remove" && r.client != nil:
		return texts(r.client.Roots(), func(root protocol.Root) string { return root.URI })
	}
	return nil
}
