package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

// The groups of commands in the help.
const (
	groupShell = "shell"
	groupOnce  = "once"
	groupAuth  = "auth"
	groupMore  = "more"
)

const rootHelp = `Talaria works with MCP servers.

A TARGET is a URL (http, https, ws, wss, sse+http, tcp, unix) or a command line
that starts a server, as one word in quotes:

  talaria call http://127.0.0.1:8080/mcp calculate operation=add a=1 b=2
  talaria tools "npx -y @modelcontextprotocol/server-everything"
  talaria stdio go run ./cmd/example -stdio

Exit codes: ` + exitHelp

func newRoot(c *console.Console) (*cobra.Command, *strictHelp) {
	root := &cobra.Command{
		Use:           "talaria",
		Short:         "Talaria works with MCP servers",
		Long:          rootHelp,
		Version:       version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			return unknownCommand(cmd, args[0])
		},
	}
	root.CompletionOptions.HiddenDefaultCmd = false
	root.AddGroup(
		&cobra.Group{ID: groupShell, Title: "Interactive shell:"},
		&cobra.Group{ID: groupOnce, Title: "One operation, for scripts:"},
		&cobra.Group{ID: groupAuth, Title: "Authorization:"},
		&cobra.Group{ID: groupMore, Title: "More:"},
	)
	root.AddCommand(shellCommands(c)...)
	root.AddCommand(onceCommands(c)...)
	root.AddCommand((&loginCommand{console: c}).command(), logoutCommand(c))
	root.AddCommand((&devCommand{console: c}).command(), (&proxyCommand{console: c}).command(), (&gatewayCommand{console: c}).command(), (&tapCommand{console: c}).command(), (&installCommand{console: c}).command(), (&linkCommand{console: c}).command(), (&newCommand{console: c}).command(), (&packCommand{console: c}).command(), versionCommand(c))
	root.SetHelpCommandGroupID(groupMore)
	root.SetCompletionCommandGroupID(groupMore)
	help := &strictHelp{root: root}
	help.replace()
	addExamples(root.Commands())
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return usage("%v", err).with(cmd.CommandPath() + " -h lists the flags")
	})
	return root, help
}

// exactly demands a number of arguments, and says which one is missing.
func exactly(names ...string) cobra.PositionalArgs { return between(len(names), len(names), names...) }

// between requires at least and at most these numbers of arguments; at most
// -1 means no limit.
func between(least, most int, names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < least:
			return usage("%s is missing", names[len(args)]).with("usage: " + cmd.UseLine())
		case most >= 0 && len(args) > most:
			return usage("unexpected argument %q", args[most]).with("usage: " + cmd.UseLine())
		}
		return nil
	}
}

func versionCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: groupMore, Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			c.Printf("talaria %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// release is the version of a binary that .ci/release makes, which gives it to the
// linker; "" in any other.
var release string

// library is the module path of the framework.
const library = "github.com/talaria-go/mcp"

// version is that of the framework that this was built with, or the commit that
// it was built from. The command is a module of its own: the framework is one of
// its dependencies, and both are released with the same version.
func version() string {
	if release != "" {
		return release
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, dep := range info.Deps {
		if dep.Path == library && dep.Replace == nil && dep.Version != "(devel)" {
			return dep.Version
		}
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = ", modified"
		}
	}
	if commit == "" {
		return "(devel)"
	}
	return fmt.Sprintf("(devel, %s%s)", commit, dirty)
}

// released returns the version if a go.mod can name it, else "".
func released() string {
	if v := version(); strings.HasPrefix(v, "v") && !strings.Contains(v, "+") {
		return v
	}
	return ""
}
