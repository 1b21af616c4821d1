package main

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/hosts"
)

// linkCommand makes a link that installs a server.
type linkCommand struct {
	console     *console.Console
	host, name  string
	env, header []string
}

func (l *linkCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "link --host HOST --name NAME [flags] (URL | -- COMMAND [ARGS…])",
		Short: "Make a link that installs a server", GroupID: groupMore,
		Long: `Link prints a link that installs a server in Cursor or Visual Studio Code, one for web
pages, and what they say. Everybody can read a link: so --env and --header take names
alone. Visual Studio Code asks its user for the values, and Cursor takes them from its
own environment. URLs with a user, a query or a fragment are refused.`,
		Example: `  talaria link --host vscode --name weather https://example.com/mcp --header X-Key
  talaria link --host cursor --name weather --env WEATHER_KEY -- npx -y weather-server`,
		RunE: func(_ *cobra.Command, args []string) error { return l.run(args) },
	}
	flags := cmd.Flags()
	flags.StringVar(&l.host, "host", "", "the `program`: "+strings.Join(hosts.Linked(), " or "))
	flags.StringVar(&l.name, "name", "", "what the server is `called` there")
	flags.StringArrayVar(&l.env, "env", nil, "the server needs the environment variable `NAME`; again for more")
	flags.StringArrayVar(&l.header, "header", nil, "the server needs the HTTP header `NAME`; again for more")
	must(cmd.RegisterFlagCompletionFunc("host", cobra.FixedCompletions(hosts.Linked(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (l *linkCommand) run(args []string) error {
	host, err := hosts.Find(l.host)
	if err != nil {
		return usage("--host: %w", err)
	}
	if l.name == "" {
		return usage("--name is missing: say what the server is called there")
	}
	if len(args) == 0 {
		return usage("there is no server").with("name a URL, or a command after --, as in: talaria link --host " + host.ID + " --name " + l.name + " -- weather -v")
	}
	s := hosts.Server{Name: l.name}
	if s.Env, err = referenced("--env", l.env); err != nil {
		return err
	}
	if s.Headers, err = referenced("--header", l.header); err != nil {
		return err
	}
	switch url := isURL(args[0]); {
	case url && len(args) > 1:
		return usage("unexpected argument %q after the URL", args[1])
	case url && len(s.Env) > 0:
		return usage("--env is for commands, and there is a URL")
	case url:
		s.URL = args[0]
	case len(s.Headers) > 0:
		return usage("--header is for URLs, and %s is a command", args[0])
	default:
		s.Command, s.Args = args[0], args[1:]
	}
	link, err := hosts.LinkTo(host, s)
	if err != nil {
		return usage("%w", err)
	}
	if strings.ContainsAny(s.Command, `/\`) {
		l.console.Warnf("%s has to be there for everybody who follows the link", s.Command)
	}
	l.console.Print(link.URL)
	l.console.Print(link.Web)
	l.console.Printf("%s", link.Content)
	return nil
}

// referenced reads a flag that names variables or headers, whose values are elsewhere.
func referenced(flag string, list []string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range list {
		if name, _, given := strings.Cut(name, "="); given {
			return nil, usage("%s %s: a link has no values, which everybody could read; write %s %s", flag, name, flag, name)
		}
		out[name] = ""
	}
	return out, nil
}
