package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/talaria-go/mcp/cmd/talaria/internal/console"
	"github.com/talaria-go/mcp/cmd/talaria/internal/editor"
	"github.com/talaria-go/mcp/cmd/talaria/internal/form"
	"github.com/talaria-go/mcp/cmd/talaria/internal/hosts"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
)

// installCommand writes a server into the configuration of a host.
type installCommand struct {
	console                        *console.Console
	host, name, file, project, dir string
	env, header                    []string
	yes, dryRun, remove            bool
}

func (i *installCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "install --host HOST --name NAME [flags] (URL | -- COMMAND [ARGS…])",
		Short: "Write a server into the configuration of a host", GroupID: groupMore,
		Long: `Install writes a server into the configuration of Claude Desktop, Claude Code, Cursor,
Gemini CLI, LM Studio, Visual Studio Code or Windsurf. It shows what would change and
asks before it writes; everything else in the file stays as it is, and the old file is
kept beside it.

With --project it writes the file that a project keeps, and others get. Values of --env
and --header are then ${NAME} or "Bearer ${NAME}", which the program fills in from its
own environment.`,
		Example: `  talaria install --host claude-desktop --name weather -- /usr/local/bin/weather -v
  talaria install --host cursor --name weather https://example.com/mcp --header "X-Key=secret"
  talaria install --host claude-code --project . --name weather --env 'KEY=${WEATHER_KEY}' -- weather
  talaria install --host cursor --name weather --remove`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if i.remove {
				if err := unused(cmd.Flags(), "has no effect with --remove", "cwd", "env", "header"); err != nil {
					return err
				}
			}
			return i.run(args)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(true)
	flags.StringVar(&i.host, "host", "", "the `program`: "+strings.Join(hosts.IDs(), ", "))
	flags.StringVar(&i.name, "name", "", "what the server is `called` there")
	flags.StringVar(&i.file, "file", "", "the configuration `file` (default: where the program has it)")
	flags.StringVar(&i.project, "project", "", "the configuration of the project in this `directory`, not the user's")
	flags.StringVar(&i.dir, "cwd", "", "start the server in this `directory`")
	flags.StringArrayVar(&i.env, "env", nil, "set an environment variable, `NAME=value`; again for more")
	flags.StringArrayVar(&i.header, "header", nil, "send an HTTP header, `NAME=value`; again for more")
	flags.BoolVar(&i.yes, "yes", false, "write without asking")
	flags.BoolVar(&i.dryRun, "dry-run", false, "show what would change and write nothing")
	flags.BoolVar(&i.remove, "remove", false, "take the server out of the file")
	must(cmd.RegisterFlagCompletionFunc("host", cobra.FixedCompletions(hosts.IDs(), cobra.ShellCompDirectiveNoFileComp)))
	return cmd
}

func (i *installCommand) run(args []string) error {
	host, err := hosts.Find(i.host)
	if err != nil {
		return usage("--host: %w", err)
	}
	if i.name == "" {
		return usage("--name is missing: say what the server is called there")
	}
	if err := hosts.CheckName(i.name); err != nil {
		return usage("--name: %w", err)
	}
	if err := named("file", i.file, "configuration"); err != nil {
		return err
	}
	path, err := i.path(host)
	if errors.Is(err, hosts.ErrOwnFile) {
		return usage("%w", err).with("name the directory of a project with --project, or let it do this itself: " + i.own(args))
	}
	if err != nil {
		return err
	}
	old, err := hosts.Read(path)
	if err != nil {
		return err
	}
	var text []byte
	if i.remove {
		if len(args) > 0 {
			return usage("--remove takes no server, but there is %q", login.Shown(args[0]))
		}
		text, err = host.Remove(old, i.name)
	} else {
		var server hosts.Server
		if server, err = i.server(host, args); err != nil {
			return err
		}
		text, err = host.Put(old, server)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if !host.Shared(i.project) && (len(i.env)+len(i.header) > 0 || len(args) > 0 && address(args[0]) != args[0]) {
		i.console.Warnf("the values of --header and --env, and the whole URL, are written into %s as they are: let nobody else read it", path)
	}
	return i.replace(host, path, old, text)
}

// address returns a text as it is shown: a URL without its secrets.
func address(text string) string {
	if !isURL(text) {
		return text
	}
	return login.Shown(text)
}

func (i *installCommand) path(host hosts.Host) (string, error) {
	if i.file != "" {
		return i.file, nil
	}
	place, err := hosts.Here()
	if err != nil && i.project == "" {
		return "", err
	}
	path, err := host.Path(place, i.project)
	if err != nil {
		return "", usage("%w", err)
	}
	return path, nil
}

// own is the command of Claude Code that does the same for its user.
func (i *installCommand) own(args []string) string {
	if i.remove {
		return "claude mcp remove --scope user " + i.name
	}
	words := []string{"claude", "mcp", "add", "--scope", "user", i.name}
	for _, given := range []struct {
		flag string
		list []string
	}{{"--env", i.env}, {"--header", i.header}} {
		values, _ := pairs(given.flag, given.list) // an error in them is reported later
		for _, name := range sortedKeys(values) {
			words = append(words, given.flag, name+"=…")
		}
	}
	if len(args) == 1 && isURL(args[0]) {
		return strings.Join(append(words, "--transport", "http", address(args[0])), " ")
	}
	words = append(words, "--")
	for _, arg := range args {
		words = append(words, shellwords.Quote(arg))
	}
	return strings.Join(words, " ")
}

// server reads what is to be installed.
func (i *installCommand) server(host hosts.Host, args []string) (hosts.Server, error) {
	s := hosts.Server{Name: i.name}
	if len(args) == 0 {
		return s, usage("there is no server").with("name a URL, or a command after --, as in: talaria install --host " + host.ID + " --name " + i.name + " -- weather -v")
	}
	var err error
	if s.Env, err = pairs("--env", i.env); err != nil {
		return s, err
	}
	if s.Headers, err = pairs("--header", i.header); err != nil {
		return s, err
	}
	if i.dir != "" {
		if host.NoDir {
			return s, usage("--cwd: %s has no directory for each server; leave it out", host.Name)
		}
		if s.Dir, err = filepath.Abs(i.dir); err != nil {
			return s, err
		}
	}
	if isURL(args[0]) {
		if len(args) > 1 {
			return s, usage("unexpected argument %q after the URL", args[1])
		}
		s.URL = args[0]
		if !host.Remote {
			return i.bridged(s, host)
		}
		return i.shared(s, host)
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
		i.console.Warnf("%s cannot be found here: %v", s.Command, err)
	}
	return i.shared(s, host)
}

// shared makes a server fit for a file that others get, if this is one.
func (i *installCommand) shared(s hosts.Server, host hosts.Host) (hosts.Server, error) {
	if !host.Shared(i.project) {
		return s, nil
	}
	s, err := hosts.Share(host, s)
	if err != nil {
		return s, usage("%w", err)
	}
	return s, nil
}

// bridged lets this program connect a host that can only start commands to a
// URL.
func (i *installCommand) bridged(s hosts.Server, host hosts.Host) (hosts.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return s, err
	}
	i.console.Notef("%s starts commands alone; %s will connect it", host.Name, self)
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
	for n, name := range sortedKeys(s.Headers) {
		variable := fmt.Sprintf("TALARIA_HEADER_%d", n+1)
		s.Args, s.Env[variable] = append(s.Args, "--header-env", name+"="+variable), s.Headers[name]
	}
	s.URL, s.Headers = "", nil
	return s, nil
}

// replace shows the change, asks, and writes.
func (i *installCommand) replace(host hosts.Host, path string, old, text []byte) error {
	if bytes.Equal(old, text) {
		i.console.Printf("%s has it already; nothing to do", path)
		return nil
	}
	diff := udiff.Unified(path, path+" (new)", hosts.Masked(old, address), hosts.Masked(text, address))
	marked := hosts.Marked(old)
	if marked {
		i.console.Notef("the byte order mark at the beginning of %s is removed: with it %s may read no server at all", path, host.Name)
	}
	if diff == "" && !marked {
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
		i.console.Print(i.console.Paint(style, line))
	}
	if i.dryRun {
		i.console.Notef("nothing was written (--dry-run)")
		return nil
	}
	if !i.yes {
		if !i.console.Interactive() {
			return usage("nobody is there to agree").with("add --yes to write, or --dry-run to look only")
		}
		asker := editor.New(i.console, "")
		ok, err := form.YesNo(asker, "", "write this?", false)
		asker.Close()
		if err != nil || !ok {
			i.console.Notef("nothing was written")
			return &failure{code: exitInterrupted}
		}
	}
	backup, err := hosts.Write(path, old, text, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	i.console.Printf("%s %s", i.console.Paint(console.Good, "wrote"), path)
	if backup != "" {
		i.console.Printf("the old one is %s", backup)
	}
	i.console.Notef("restart %s to apply the change", host.Name)
	return nil
}
