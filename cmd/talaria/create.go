package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/scaffold"
)

// newCommand writes a new server project.
type newCommand struct {
	console      *console.Console
	dir, replace string
	noTidy       bool
}

func (n *newCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Start a new server project", GroupID: groupMore, Args: exactly("NAME"),
		Long: `New writes a small server that compiles and passes its tests: go.mod, main.go, a
tool, tests with mcptest and a README. NAME is a name such as weather, or the path
of a Go module such as github.com/you/weather.`,
		Example: "  talaria new weather\n  talaria new github.com/you/weather --dir ~/src/weather",
		RunE:    func(cmd *cobra.Command, args []string) error { return n.run(cmd.Context(), args[0]) },
	}
	cmd.Flags().StringVar(&n.dir, "dir", "", "write into this `directory` (default: the last part of NAME)")
	cmd.Flags().StringVar(&n.replace, "replace", "", "take the framework from this `directory`, a checkout")
	cmd.Flags().BoolVar(&n.noTidy, "no-tidy", false, "do not run go mod tidy")
	return cmd
}

func (n *newCommand) run(ctx context.Context, module string) error {
	p := scaffold.Project{Module: module, Version: released()}
	if err := p.Check(); err != nil {
		return usage("%w", err)
	}
	if n.dir == "" {
		n.dir = p.Name()
	}
	if n.replace != "" {
		abs, err := filepath.Abs(n.replace)
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(abs, "go.mod")); err != nil {
			return usage("--replace: %s has no go.mod", n.replace).with("name the directory of a checkout of the framework")
		}
		p.Replace, p.Version = abs, "v0.0.0"
	}
	files, err := p.Write(n.dir)
	if err != nil {
		return usage("%w", err)
	}
	for _, name := range files {
		n.console.Printf("%s %s", n.console.Paint(console.Good, "wrote"), filepath.Join(n.dir, name))
	}
	tidied := n.noTidy || n.tidy(ctx)
	n.console.Printf("\nNext:\n  cd %s\n  go test ./...\n  talaria stdio go run .\n  talaria dev .    # in the configuration of a host: builds and serves while you work", n.dir)
	if !tidied {
		return &failure{code: exitTool} // which was said, and scripts see
	}
	return nil
}

// tidy lets Go find the modules. Without Go or a network the project is as good;
// it only has to be done later.
func (n *newCommand) tidy(ctx context.Context) (ok bool) {
	tidy := exec.CommandContext(ctx, "go", "mod", "tidy")
	tidy.Dir = n.dir
	out, err := tidy.CombinedOutput()
	if err != nil {
		n.console.Warnf("go mod tidy failed: %v\n%s", err, out)
		n.console.Notef("run it again in %s when its cause is gone; new --replace takes the framework from a checkout", n.dir)
	}
	return err == nil
}
