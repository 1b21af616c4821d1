package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
)

func versionCommand(c *console.Console) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", GroupID: groupMore, Args: exactly(),
		RunE: func(*cobra.Command, []string) error {
			c.Printf("talaria %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	}
}

// library is the module path of the framework.
const library = "github.com/talaria-go/mcp"

// version is that of the framework that this was built with, or the commit that
// it was built from. The command is a module of its own: the framework is one of
// its dependencies, and both are released with the same version.
func version() string {
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
