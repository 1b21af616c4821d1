package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/hosts"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
)

type installFlags struct {
	host, name, file, project, dir string
	env, header                    []string
	yes, dryRun, remove            bool
}

func (a *app) installCommand() *cobra.Command {
	var f installFlags
	cmd := &cobra.Command{
		Use:   "install --host HOST --name NAME [flags] (URL | -- COMMAND [ARGS…])",
		Short: "Write a server into the configuration of a desktop client", GroupID: groupMore,
		Long: `Install writes a server into the configuration of Claude Desktop, Cursor or Visual
Studio Code. It shows what would change and asks before it writes; everything else
in the file stays as it is, and the old file is kept beside it.`,
		Example: `  talaria install --host claude-desktop --name weather -- /usr/local/bin/weather -v
  talaria install --host cursor --name weather https://example.com/mcp --header "X-Key=secret"
  talaria install --host vscode --project . --name weather --env KEY=1 -- weather
  talaria install --host cursor --name weather --remove`,
		RunE: func(_ *cobra.Command, args []string) error { return a.install(f, args) },
	}
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.StringVar(&f.host, "host", "", "the `program`: claude-desktop, cursor or vscode")
	flags.StringVar(&f.name, "name", "", "what the server is `called` there")
	flags.StringVar(&f.file, "file", "", "the configuration `file` (default: where the program has it)")
	flags.StringVar(&f.project, "project", "", "the configuration of the project in this `directory`, not the user's")
	flags.StringVar(&f.dir, "cwd", "", "start the server in this `directory`")
	flags.StringArrayVar(&f.env, "env", nil, "set an environment variable, `NAME=value`; again for more")
	flags.StringArrayVar(&f.header, "header", nil, "send an HTTP header, `NAME=value`; again for more")
	flags.BoolVar(&f.yes, "yes", false, "write without asking")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.BoolVar(&f.remove, "remove", false, "take the server out of the file")
	must(cmd.RegisterFlagCompletionFunc("host", cobra.FixedCompletions([]string{"claude-desktop", "cursor", "vscode"}, cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (a *app) install(f installFlags, args []string) error {
	host, err := hosts.Find(f.host)
	if err != nil {
		return usage("--host: %w", err)
	}
	if f.name == "" {
		return usage("--name is missing: say what the server is called there")
	}
	if err := hosts.CheckName(f.name); err != nil {
		return usage("--name: %w", err)
	}
	path, err := f.path(host)
	if err != nil {
		return err
	}
	old, err := hosts.Read(path)
	if err != nil {
		return err
	}
	var text []byte
	if f.remove {
		if len(args) > 0 {
			return usage("--remove takes no server, but there is %q", login.Shown(args[0]))
		}
		text, err = host.Remove(old, f.name)
	} else {
		var server hosts.Server
		if server, err = a.server(f, host, args); err != nil {
			return err
		}
		text, err = host.Put(old, server)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if len(f.env)+len(f.header) > 0 || len(args) > 0 && address(args[0]) != args[0] {
		a.console.Warnf("the values of --header and --env, and the whole URL, are written into %s as they are: let nobody else read it", path)
	}
	return a.replace(f, host, path, old, text)
}

// address returns a text as it is shown: a URL without its secrets.
func address(text string) string {
	if !isURL(text) {
		return text
	}
	return login.Shown(text)
}

func (f installFlags) path(host hosts.Host) (string, error) {
	if f.file != "" {
		return f.file, nil
	}
	place, err := hosts.Here()
	if err != nil && f.project == "" {
		return "", err
	}
	path, err := host.Path(place, f.project)
	if err != nil {
		return "", usage("%w", err)
	}
	return path, nil
}

// server reads what is to be installed.
func (a *app) server(f installFlags, host hosts.Host, args []string) (hosts.Server, error) {
	s := hosts.Server{Name: f.name}
	if len(args) == 0 {
		return s, usage("there is no server").with("name a URL, or a command after --, as in: talaria install --host " + host.ID + " --name " + f.name + " -- weather -v")
	}
	var err error
	if s.Env, err = pairs("--env", f.env); err != nil {
		return s, err
	}
	if s.Headers, err = pairs("--header", f.header); err != nil {
		return s, err
	}
	if f.dir != "" {
		if s.Dir, err = filepath.Abs(f.dir); err != nil {
			return s, err
		}
	}
	if isURL(args[0]) {
		if len(args) > 1 {
			return s, usage("unexpected argument %q after the URL", args[1])
		}
		s.URL = args[0]
		if !host.Remote {
			return a.bridged(s, host)
		}
		return s, nil
	}
	if len(s.Headers) > 0 {
		return s, usage("--header is for URLs, and %s is a command", args[0])
	}
	s.Command, s.Args = args[0], args[1:]
	if strings.ContainsAny(s.Command, `/\`) && !filepath.IsAbs(s.Command) {
		if s.Command, err = filepath.Abs(s.Command); err != nil {
			return s, err
		}
	}
	if _, err := exec.LookPath(s.Command); err != nil {
		a.console.Warnf("%s cannot be found here: %v", s.Command, err)
	}
	return s, nil
}

// bridged lets this program connect a host that starts commands alone to a URL.
func (a *app) bridged(s hosts.Server, host hosts.Host) (hosts.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	a.console.Notef("%s starts commands alone; %s will connect it", host.Name, self)
	s.Command, s.Args = self, []string{"serve-proxy", "--stdio"}
	if s.Env == nil {
		s.Env = map[string]string{}
	}
	// Arguments are in every list of processes, the environment is not.
	if login.Shown(s.URL) == s.URL {
		s.Args = append(s.Args, s.URL)
	} else {
		const variable = "TALARIA_URL"
		s.Args, s.Env[variable] = append(s.Args, "--url-env", variable), s.URL
	}
	for i, name := range sortedKeys(s.Headers) {
		variable := fmt.Sprintf("TALARIA_HEADER_%d", i+1)
		s.Args, s.Env[variable] = append(s.Args, "--header-env", name+"="+variable), s.Headers[name]
	}
	s.URL, s.Headers = "", nil
	return s, nil
}

// replace shows the change, asks, and writes.
func (a *app) replace(f installFlags, host hosts.Host, path string, old, text []byte) error {
	if bytes.Equal(old, text) {
		a.console.Printf("%s has it already; nothing to do", path)
		return nil
	}
	diff := udiff.Unified(path, path+" (new)", hosts.Masked(old, address), hosts.Masked(text, address))
	if diff == "" {
		diff = "only values change that are not shown here: of headers, environment variables, or in URLs"
	}
	for line := range strings.SplitSeq(strings.TrimSuffix(diff, "\n"), "\n") {
		style := console.Faint
		switch {
		case strings.HasPrefix(line, "+"):
			style = console.Good
		case strings.HasPrefix(line, "-"):
			style = console.Bad
		}
		a.console.Print(a.console.Paint(style, line))
	}
	if f.dryRun {
		a.console.Notef("nothing was written (--dry-run)")
		return nil
	}
	if !f.yes {
		if !a.console.Interactive() {
			return usage("nobody is there to agree").with("add --yes to write, or --dry-run to look only")
		}
		asker := a.asker()
		ok, err := form.YesNo(asker, "", "write this?", false)
		asker.Close()
		if err != nil || !ok {
			a.console.Notef("nothing was written")
			return &failure{code: exitInterrupted}
		}
	}
	backup, err := hosts.Write(path, old, text, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	a.console.Printf("%s %s", a.console.Paint(console.Good, "wrote"), path)
	if backup != "" {
		a.console.Printf("the old one is %s", backup)
	}
	a.console.Notef("start %s again for it to see the change", host.Name)
	return nil
}
