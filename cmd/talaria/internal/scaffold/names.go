package scaffold

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// standard are the first elements of the paths of Go's standard library, and what the
// go command takes for something else than a module.
var standard = strings.Fields(`archive arena bufio builtin bytes cmp compress container context crypto database debug embed encoding
	errors expvar flag fmt go hash html image index internal io iter log maps math mime net os path plugin reflect regexp runtime
	simd slices sort strconv strings structs sync syscall testing text time unicode unique unsafe uuid vendor weak
	all cmd std tool toolchain work command-line-arguments C`)

// programs are names that a program cannot have: its directory or its executable would
// be taken for something else.
var programs = strings.Fields("internal main vendor testdata go gofmt readme.md go.mod go.sum go.work main.go mcp.lock words.go words_test.go")

var (
	// device is a file name that Windows has for a device, whatever its extension.
	device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\.|$)`)
	// shortName is the end of a file name that Windows makes of a longer one.
	shortName = regexp.MustCompile(`~[0-9]+$`)
	badMajor  = regexp.MustCompile(`/v(0[0-9]*|1)$`)
	gopkg     = regexp.MustCompile(`^gopkg\.in(/.*)?/[^/]+\.v(0|[1-9][0-9]*)$`)
)

// Check finds what is wrong with the module path.
func (p Project) Check() error {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~"
	first, _, _ := strings.Cut(p.Module, "/")
	for element := range strings.SplitSeq(p.Module, "/") {
		switch {
		case strings.Trim(element, letters) != "" || strings.Trim(element, ".-~") != element || element == "":
			return fmt.Errorf("invalid module path %q: use a name such as weather, or github.com/you/weather", p.Module)
		case device.MatchString(element):
			return fmt.Errorf("invalid module path %q: %s is a device on Windows; use a name such as my-%s", p.Module, element, element)
		case shortName.MatchString(element):
			return fmt.Errorf("invalid module path %q: no element may end with ~ and digits", p.Module)
		}
	}
	name := p.Name()
	switch {
	case slices.ContainsFunc(standard, func(s string) bool { return strings.EqualFold(s, first) }):
		return fmt.Errorf("invalid module path %q: Go itself has %s; use a name such as my-%s, or github.com/you/%s", p.Module, first, name, name)
	case strings.HasSuffix(strings.ToLower(name), ".go"):
		return fmt.Errorf("a program cannot be called %q: use a name such as my-%s", name, name[:len(name)-len(".go")])
	case slices.ContainsFunc(programs, func(s string) bool { return strings.EqualFold(s, name) }):
		return fmt.Errorf("a program cannot be called %q: use a name such as my-%s", name, name)
	case badMajor.MatchString(p.Module):
		return fmt.Errorf("invalid module path %q: leave the version out; one begins with v2", p.Module)
	case first == "gopkg.in" && !gopkg.MatchString(p.Module):
		return fmt.Errorf("invalid module path %q: below gopkg.in it ends with a version, such as .v1", p.Module)
	case p.Module == library || strings.HasPrefix(p.Module, library+"/"):
		return fmt.Errorf("invalid module path %q: the framework has it; use a path of your own, such as github.com/you/%s", p.Module, name)
	}
	return nil
}

// library is the module path of the framework.
const library = "github.com/talaria-go/mcp"
