package bundle

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// kept are the variables of the go command that say where it finds modules and
// keeps its files. All others may change what is built.
var kept = []string{"GOPATH", "GOCACHE", "GOMODCACHE", "GOTMPDIR", "GOPROXY", "GOPRIVATE", "GONOPROXY", "GOSUMDB", "GONOSUMDB",
	"GOINSECURE", "GOAUTH", "GOVCS"}

// released is the name of a toolchain that others can get, too.
var released = regexp.MustCompile(`^go1\.[0-9]+(\.[0-9]+|rc[0-9]+)$`)

// ToolchainError is the error of a toolchain that nothing else can name.
type ToolchainError struct{ Version string }

func (e *ToolchainError) Error() string {
	return fmt.Sprintf("%q is no release of Go, so nobody could build the same again; name one, such as --toolchain go1.26.1", e.Version)
}

// environment is that of a build: for a target, with one toolchain, and without
// anything else that changes the program. from says where modules come from.
func environment(list []string, t Target, toolchain string, from map[string]string) []string {
	list = slices.DeleteFunc(slices.Clone(list), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		return strings.HasPrefix(name, "CGO_") || strings.HasPrefix(name, "GO") && !slices.Contains(kept, name)
	})
	for _, name := range slices.Sorted(maps.Keys(from)) {
		list = append(list, name+"="+from[name])
	}
	return append(list, "GOOS="+t.OS, "GOARCH="+t.Arch, "CGO_ENABLED=0", "GOFLAGS=", "GOENV=off", "GOWORK=off", "GOTOOLCHAIN="+toolchain)
}

// build makes the program of the package in a directory, and returns the
// toolchain that made it: the one that is asked for, or, if that is "", the one
// that the go command takes there.
func build(ctx context.Context, dir, out string, t Target, toolchain string) (string, error) {
	from, version, err := settings(ctx, dir)
	if err != nil {
		return "", err
	}
	if toolchain == "" {
		toolchain = version
	}
	if !released.MatchString(toolchain) {
		return "", &ToolchainError{toolchain}
	}
	env := environment(os.Environ(), t, toolchain, from)
	name, err := run(ctx, dir, env, "list", "-buildvcs=false", "-f", "{{.Name}}", ".")
	if err != nil {
		return "", err
	}
	if got := strings.TrimSpace(string(name)); got != "main" {
		return "", fmt.Errorf("%s has package %s; name the directory of a program, which has package main", dir, got)
	}
	_, err = run(ctx, dir, env, "build", "-trimpath", "-buildvcs=false", "-o", out, ".")
	return toolchain, err
}

// settings asks the go command of a directory where it gets modules from, and for
// its version.
func settings(ctx context.Context, dir string) (from map[string]string, version string, err error) {
	const versionName = "GOVERSION"
	out, err := run(ctx, dir, os.Environ(), append([]string{"env", "-json", versionName}, kept...)...)
	if err != nil {
		return nil, "", err
	}
	if err := jsonx.Unmarshal(out, &from); err != nil {
		return nil, "", fmt.Errorf("go env: %w", err)
	}
	version = from[versionName]
	delete(from, versionName)
	return from, version, nil
}

// run runs the go command, whose output is that of its error, too.
func run(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = dir, env
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err == nil || ctx.Err() != nil {
		return out, ctx.Err()
	}
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("the go command is needed: %w", err)
	}
	return nil, fmt.Errorf("go %s: %w\n%s", args[0], err, bytes.TrimSpace(stderr.Bytes()))
}
