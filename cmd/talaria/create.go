package main

import (
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/scaffold"
)

func (a *app) newCommand() *cobra.Command {
	var dir, replace string
	var noTidy bool
	cmd := &cobra.Command{
		Use: "new NAME", Short: "Start a new server project", GroupID: groupMore, Args: exactly("NAME"),
		Long: `New writes a small server that compiles and passes its tests: go.mod, main.go, a
tool, tests with mcptest and a README. NAME is a name such as weather, or the path
of a Go module such as github.com/you/weather.`,
		Example: "  talaria new weather\n  talaria new github.com/you/weather --dir ~/src/weather",
		RunE: func(cmd *cobra.Command, args []string) error {
			p := scaffold.Project{Module: args[0], Version: released()}
			if err := p.Check(); err != nil {
				return usage("%w", err)
			}
			if dir == "" {
				dir = p.Name()
			}
			if replace != "" {
				abs, err := filepath.Abs(replace)
				if err != nil {
					return err
				}
				if _, err := os.Stat(filepath.Join(abs, "go.mod")); err != nil {
					return usage("--replace: %s has no go.mod", replace).with("name the directory of a checkout of the framework")
				}
				p.Replace, p.Version = abs, "v0.0.0"
			}
			files, err := p.Write(dir)
			if err != nil {
				return usage("%w", err)
			}
			for _, name := range files {
				a.console.Printf("%s %s", a.console.Paint(console.Good, "wrote"), filepath.Join(dir, name))
			}
			tidied := noTidy || a.tidy(cmd, dir)
			a.console.Printf("\nNext:\n  cd %s\n  go test ./...\n  talaria stdio go run .", dir)
			if !tidied {
				return &failure{code: exitTool} // which was said, and scripts see
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "", "write into this `directory` (default: the last part of NAME)")
	cmd.Flags().StringVar(&replace, "replace", "", "take the framework from this `directory`, a checkout")
	cmd.Flags().BoolVar(&noTidy, "no-tidy", false, "do not run go mod tidy")
	return cmd
}

// tidy lets Go find the modules. Without Go or a network the project is as good;
// it only has to be done later.
func (a *app) tidy(cmd *cobra.Command, dir string) (ok bool) {
	tidy := exec.CommandContext(cmd.Context(), "go", "mod", "tidy")
	tidy.Dir = dir
	out, err := tidy.CombinedOutput()
	if err != nil {
		a.console.Warnf("go mod tidy failed: %v\n%s", err, out)
		a.console.Notef("run it again in %s when its cause is gone", dir)
	}
	return err == nil
}
