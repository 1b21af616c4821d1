package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/schema"
)

// here stands for the folder that a host has unpacked the bundle into.
const here = "${__dirname}"

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
	sizeForm = regexp.MustCompile(`^[0-9]+x[0-9]+$`)
	setting  = regexp.MustCompile(`^\$\{user_config\.([^${}]+)\}$`)
	variable = regexp.MustCompile(`\$\{([^{}]*)\}`)
)

// rules are what tags of a manifest say next to the built-in ones.
var rules = []schema.Rule{
	form("bundlename", nameForm, "must have 1 to 64 letters, digits, '.', '_' and '-', and begin with a letter or digit, as files are named after it"),
	form("iconsize", sizeForm, `must be WIDTHxHEIGHT, such as "128x128"`),
}

func form(name string, pattern *regexp.Regexp, fault string) schema.Rule {
	return schema.NewRule(name, func(_ context.Context, text, _ string) error {
		if !pattern.MatchString(text) {
			return errors.New(fault)
		}
		return nil
	}, schema.Describe(fault))
}

// places are variables that hosts fill in with folders and separators of the
// user's machine.
var places = []string{"HOME", "DESKTOP", "DOCUMENTS", "DOWNLOADS", "pathSeparator", "/"}

// check checks what a single member cannot show. It does not guess secrets:
// values that may be secrets have no place in a bundle.
func (m *Manifest) check() error {
	var faults []error
	fault := func(place, format string, args ...any) {
		faults = append(faults, fmt.Errorf("%s: %s", place, fmt.Sprintf(format, args...)))
	}
	if entry := m.Server.EntryPoint; !usable(entry) {
		fault("/server/entry_point", "%q is no path within a bundle; write one such as server/%s", entry, m.Name)
	} else if want := here + "/" + entry; m.Server.Config.Command != want {
		fault("/server/mcp_config/command", "it is %q, and a bundle starts the program that it brings; write %q", m.Server.Config.Command, want)
	}
	if len(m.Server.Config.PlatformOverrides) > 0 {
		fault("/server/mcp_config/platform_overrides", "a bundle is for one platform; write what this one needs into args and env, and use a manifest for each")
	}
	for i, arg := range m.Server.Config.Args {
		m.argument(fmt.Sprintf("/server/mcp_config/args/%d", i), arg, fault)
	}
	for _, name := range slices.Sorted(maps.Keys(m.Server.Config.Env)) {
		m.value("/server/mcp_config/env/"+name, m.Server.Config.Env[name], fault)
	}
	for _, name := range slices.Sorted(maps.Keys(m.UserConfig)) {
		m.UserConfig[name].check("/user_config/"+name, name, fault)
	}
	if c := m.Compatibility; c != nil {
		for _, name := range slices.Sorted(maps.Keys(c.Runtimes)) {
			fault("/compatibility/runtimes/"+name, "a program of Go needs none; leave it out")
		}
	}
	return errors.Join(faults...)
}

// argument checks an argument of the program: text is allowed, but not a
// variable without a value, nor a secret, as the arguments of all processes can
// be listed.
func (m *Manifest) argument(place, text string, fault func(place, format string, args ...any)) {
	for _, found := range variable.FindAllStringSubmatch(text, -1) {
		name, ofUser := strings.CutPrefix(found[1], "user_config.")
		s, declared := m.UserConfig[name]
		switch {
		case ofUser && !declared:
			fault(place, "user_config has no %q", name)
		case ofUser && s.Sensitive:
			fault(place, "%q is sensitive, and everybody on a machine sees the arguments of its programs; hand it over in env", name)
		case !ofUser && found[1] != "__dirname" && !slices.Contains(places, found[1]):
			fault(place, "hosts know no variable %s", found[0])
		}
	}
}

// value checks the value of an environment variable.
func (m *Manifest) value(place, text string, fault func(place, format string, args ...any)) {
	if found := setting.FindStringSubmatch(text); found != nil {
		if _, ok := m.UserConfig[found[1]]; !ok {
			fault(place, "user_config has no %q", found[1])
		}
		return
	}
	if found := variable.FindStringSubmatch(text); found != nil && found[0] == text && slices.Contains(places, found[1]) {
		return
	}
	if below, ok := strings.CutPrefix(text, here); ok && (below == "" || strings.HasPrefix(below, "/") && usable(below[1:])) {
		return
	}
	fault(place, "it has a value of its own, which everybody who gets the bundle can read; write ${user_config.NAME} and let user_config have that, or %s/FILE with a file of the bundle", here)
}

func (s Setting) check(place, name string, fault func(place, format string, args ...any)) {
	if name == "" || strings.ContainsAny(name, "${}") {
		fault(place, "a setting cannot be called so; take letters, digits and _")
	}
	if s.Sensitive && s.Default != nil {
		fault(place+"/default", "a sensitive setting has no default, which everybody who gets the bundle could read; leave it out, and let required be true")
	}
	if s.Sensitive && s.Type != "string" {
		fault(place+"/sensitive", "only strings are kept as secrets; write \"type\": \"string\"")
	}
	var list []string
	switch {
	case s.Default == nil || strings.ContainsRune(`"-0123456789tf`, rune(s.Default[0])):
	case s.Default[0] != '[' || jsonx.Unmarshal(s.Default, &list) != nil:
		fault(place+"/default", "must be a string, a number, a boolean or a list of strings")
	}
}

// program is the path of the program within the bundle for a target.
func (m *Manifest) program(t Target) string {
	if t.OS == "windows" && !strings.HasSuffix(m.Server.EntryPoint, ".exe") {
		return m.Server.EntryPoint + ".exe"
	}
	return m.Server.EntryPoint
}

// pictures are the files that are icons of the bundle, by the places in the
// manifest that name them.
func (m *Manifest) pictures() map[string]string {
	list := map[string]string{}
	add := func(place, name string) {
		if name != "" && !strings.HasPrefix(name, "https://") {
			list[place] = name
		}
	}
	add("/icon", m.Icon)
	for i, icon := range m.Icons {
		add(fmt.Sprintf("/icons/%d/src", i), icon.Src)
	}
	return list
}

// complete returns what the manifest names and the bundle does not have.
func (m *Manifest) complete(has func(name string) bool) error {
	var faults []error
	for i, name := range m.Screenshots {
		if !has(name) {
			faults = append(faults, fmt.Errorf("/screenshots/%d: the bundle would have no file %q; name it on the command line", i, name))
		}
	}
	if l := m.Localization; l != nil {
		folder, rest, _ := strings.Cut(l.Resources, "${locale}")
		if !has(folder + l.DefaultLocale + rest) {
			faults = append(faults, fmt.Errorf("/localization/resources: the bundle would have no file %q; name those of all languages on the command line", folder+l.DefaultLocale+rest))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.Server.Config.Env)) {
		below, ok := strings.CutPrefix(m.Server.Config.Env[name], here+"/")
		if ok && !has(below) {
			faults = append(faults, fmt.Errorf("/server/mcp_config/env/%s: the bundle would have no %q; name its files on the command line", name, below))
		}
	}
	return errors.Join(faults...)
}

// usable tells a path of a file that a bundle may have: one that every system
// can unpack to the same place, and that is not hidden. Files whose names begin
// with a dot hold keys and histories more often than what others should get.
func usable(name string) bool {
	if !fs.ValidPath(name) || name == "." || len(name) > 240 || strings.ContainsAny(name, "\\:*?\"<>|$") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if part[0] == '.' || strings.HasSuffix(part, ".") || strings.HasSuffix(part, " ") || strings.ContainsFunc(part, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return false
		}
		stem, _, _ := strings.Cut(strings.ToUpper(part), ".")
		if slices.Contains(devices, stem) {
			return false
		}
	}
	return path.Clean(name) == name
}

// devices are names that Windows takes for others than files.
var devices = []string{"CON", "PRN", "AUX", "NUL", "COM1", "COM2", "COM3", "COM4", "COM5", "COM6", "COM7", "COM8", "COM9",
	"LPT1", "LPT2", "LPT3", "LPT4", "LPT5", "LPT6", "LPT7", "LPT8", "LPT9"}
