// Package hosts knows the programs that start MCP servers for a person, and
// writes servers into their configuration files.
package hosts

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Host is a program that starts MCP servers.
type Host struct {
	ID      string // as it is named on the command line
	Name    string
	Section string             // the member of the file that holds servers
	Remote  bool               // it connects to URLs by itself
	Typed   bool               // entries say their type
	NoDir   bool               // it starts servers where it likes
	user    func(Place) string // nil if it keeps the user's servers among what it writes itself
	project string             // below the project's directory; "" if it has none
	url     string             // the member for a URL; "" is "url"
	filled  string             // how its files name an environment variable NAME that it fills in
}

// All lists the hosts.
func All() []Host {
	return []Host{
		{ID: "claude-desktop", Name: "Claude Desktop", Section: "mcpServers",
			user: func(p Place) string { return p.config("Claude", "claude_desktop_config.json") }},
		{ID: "claude-code", Name: "Claude Code", Section: "mcpServers", Remote: true, Typed: true, NoDir: true,
			project: ".mcp.json", filled: "${NAME}"},
		{ID: "cursor", Name: "Cursor", Section: "mcpServers", Remote: true,
			user: func(p Place) string { return p.join(p.Home, ".cursor", "mcp.json") }, project: ".cursor/mcp.json", filled: "${env:NAME}"},
		{ID: "gemini", Name: "Gemini CLI", Section: "mcpServers", Remote: true, url: "httpUrl",
			user: func(p Place) string { return p.join(p.Home, ".gemini", "settings.json") }, project: ".gemini/settings.json", filled: "${NAME}"},
		{ID: "lmstudio", Name: "LM Studio", Section: "mcpServers", Remote: true, NoDir: true,
			user: func(p Place) string { return p.join(p.Home, ".lmstudio", "mcp.json") }},
		{ID: "vscode", Name: "Visual Studio Code", Section: "servers", Remote: true, Typed: true,
			user: func(p Place) string { return p.config("Code", "User", "mcp.json") }, project: ".vscode/mcp.json", filled: "${env:NAME}"},
		{ID: "windsurf", Name: "Windsurf", Section: "mcpServers", Remote: true, NoDir: true, url: "serverUrl",
			user: func(p Place) string { return p.join(p.Home, ".codeium", "windsurf", "mcp_config.json") }},
	}
}

// IDs lists what the hosts are called on the command line.
func IDs() []string {
	var ids []string
	for _, h := range All() {
		ids = append(ids, h.ID)
	}
	return ids
}

// Find returns the host of that id.
func Find(id string) (Host, error) {
	for _, h := range All() {
		if h.ID == id {
			return h, nil
		}
	}
	ids := IDs()
	if id == "" {
		return Host{}, fmt.Errorf("no program is named; there are %s", strings.Join(ids, ", "))
	}
	return Host{}, fmt.Errorf("unknown program %q; there are %s", id, strings.Join(ids, ", "))
}

// Place is the machine that a configuration is on.
type Place struct {
	GOOS    string
	Home    string
	XDG     string // XDG_CONFIG_HOME, for all but macOS and Windows
	AppData string // APPDATA, for Windows
}

// Here returns this machine.
func Here() (Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Place{}, fmt.Errorf("your home directory is not known: %w; name the file with --file", err)
	}
	return Place{GOOS: runtime.GOOS, Home: home, XDG: os.Getenv("XDG_CONFIG_HOME"), AppData: os.Getenv("APPDATA")}, nil
}

// config returns a path below the directory for configuration.
func (p Place) config(elements ...string) string {
	switch {
	case p.GOOS == "windows" && p.AppData != "":
		return p.join(append([]string{p.AppData}, elements...)...)
	case p.GOOS == "windows":
		return p.join(append([]string{p.Home, "AppData", "Roaming"}, elements...)...)
	case p.GOOS == "darwin":
		return p.join(append([]string{p.Home, "Library", "Application Support"}, elements...)...)
	case p.XDG != "":
		return p.join(append([]string{p.XDG}, elements...)...)
	}
	return p.join(append([]string{p.Home, ".config"}, elements...)...)
}

func (p Place) join(elements ...string) string {
	if p.GOOS == "windows" {
		return strings.Join(elements, `\`)
	}
	return strings.Join(elements, "/")
}

// ErrOwnFile is the error of a file that its program writes while it runs, so that
// nothing else can.
var ErrOwnFile = errors.New("it keeps the user's servers among what it writes itself")

// Path returns the host's configuration file: the user's, or that of the
// project in a directory.
func (h Host) Path(p Place, project string) (string, error) {
	if project == "" && h.user == nil {
		return "", fmt.Errorf("%s: %w", h.Name, ErrOwnFile)
	}
	if project == "" {
		return h.user(p), nil
	}
	if h.project == "" {
		return "", fmt.Errorf("%s has no configuration per project; leave --project out", h.Name)
	}
	return filepath.Join(project, filepath.FromSlash(h.project)), nil
}

// Shared reports whether a file is one of a project, which others get.
func (h Host) Shared(project string) bool { return project != "" || h.user == nil }

// Server is what a host is to start, or to connect to.
type Server struct {
	Name    string
	Command string // "" for a URL
	Args    []string
	Env     map[string]string
	Dir     string // working directory, "" for that of the host
	URL     string
	Headers map[string]string
}

// ErrName is the error of a server without a usable name.
var ErrName = errors.New("a name has 1 to 64 letters, digits, '_', '-' and '.'")

// CheckName reports whether a server may be called so, in every host.
func CheckName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" {
		return fmt.Errorf("%q is not a name for a server: %w", name, ErrName)
	}
	return nil
}

// entry returns the members of the server's entry in the order to write them.
// A host that takes no URLs gets a server that a bridge, a command of this
// program, connects.
func (h Host) entry(s Server) []member {
	var list []member
	add := func(name string, value any, set bool) {
		if set {
			list = append(list, member{name, value})
		}
	}
	if s.URL != "" {
		add("type", "http", h.Typed)
		add(cmp.Or(h.url, "url"), s.URL, true)
		add("headers", s.Headers, len(s.Headers) > 0)
		return list
	}
	add("type", "stdio", h.Typed)
	add("command", s.Command, true)
	add("args", append([]string{}, s.Args...), true)
	add("cwd", s.Dir, s.Dir != "")
	add("env", s.Env, len(s.Env) > 0)
	return list
}

// ours are the members that entry may write; those of them that it does not
// write are taken out of an entry that was there before.
var ours = []string{"type", "command", "args", "cwd", "env", "url", "httpUrl", "serverUrl", "headers"}

type member struct {
	name  string
	value any
}
