package dev

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Tool builds a package with the program go.
type Tool struct {
	// Package is a directory, in which go runs, so that it may be one of any module, or
	// something else that the command line of go names.
	Package string
	// Temp is a directory for what is built and for temporary files of go.
	Temp string

	built int
}

// makeTime is how long a build may take, with all that has to be downloaded for it.
const makeTime = 10 * time.Minute

// Make finds the sources of the package and builds it, both at the same time.
func (t *Tool) Make(ctx context.Context) (Sources, string, error) {
	ctx, stop := context.WithTimeoutCause(ctx, makeTime, fmt.Errorf("it takes longer than %s", makeTime))
	defer stop()
	t.built++
	dir := filepath.Join(t.Temp, strconv.Itoa(t.built))
	at, pkg := "", t.Package
	if info, err := os.Stat(pkg); err == nil && info.IsDir() {
		at, pkg = pkg, "."
	}
	var unbuilt error
	var building sync.WaitGroup
	building.Go(func() { _, unbuilt = t.run(ctx, at, "build", "-o", dir+string(filepath.Separator), pkg) })
	sources, err := t.sources(ctx, at, pkg)
	if err != nil {
		stop() // the sources say it better
	}
	building.Wait()
	if err = cmp.Or(err, unbuilt); err != nil {
		return sources, "", err
	}
	list, _ := os.ReadDir(dir)
	if len(list) != 1 {
		return sources, "", fmt.Errorf("go build %s has written %d files, not a program", t.Package, len(list))
	}
	return sources, filepath.Join(dir, list[0].Name()), nil
}

// Keep removes what was built before the program at file.
func (t *Tool) Keep(file string) {
	list, _ := os.ReadDir(t.Temp)
	for _, entry := range list {
		if name := entry.Name(); name != filepath.Base(filepath.Dir(file)) {
			_ = os.RemoveAll(filepath.Join(t.Temp, name)) // on Windows a program that runs holds its file, until the next Keep
		}
	}
}

// run runs go in a directory and returns what it prints.
func (t *Tool) run(ctx context.Context, at string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = at
	cmd.Env = append(cmd.Environ(), "GOTMPDIR="+t.Temp) // removed also when go is killed
	killable(cmd)
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.Output()
	exit, _ := errors.AsType[*exec.ExitError](err)
	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("go is not installed, or is not in PATH: %w", exec.ErrNotFound)
	case ctx.Err() != nil:
		err = context.Cause(ctx)
	case exit != nil && len(exit.Stderr) > 0:
		return nil, errors.New(strings.TrimRight(string(exit.Stderr), "\n"))
	}
	return nil, fmt.Errorf("go %s: %w", args[0], err)
}

// listed is a package as go list -json shows it.
type listed struct {
	Dir, Name         string
	Standard, DepOnly bool
	EmbedPatterns     []string
	Module            *struct {
		Main    bool
		GoMod   string
		Replace *struct{ Version string }
	}
	Error *struct{ Err string }
}

// add adds the sources of the package if it is one that is worked on: of the main module,
// of the workspace, or of a directory that takes the place of a module.
func (s *Sources) add(p *listed) {
	switch m := p.Module; {
	case m == nil && (p.Standard || p.Dir == ""): // without a module are also files that the command line names
		return
	case m != nil && !m.Main && (m.Replace == nil || m.Replace.Version != ""):
		return
	case m != nil:
		s.Files = append(s.Files, m.GoMod, strings.TrimSuffix(m.GoMod, ".mod")+".sum")
	}
	s.Packages = append(s.Packages, Package{Dir: p.Dir, Embeds: p.EmbedPatterns})
}

// sources finds the sources of the package, as it is called in the directory at. It is an
// error unless the command line names exactly one program.
func (t *Tool) sources(ctx context.Context, at, pkg string) (s Sources, err error) {
	out, err := t.run(ctx, at, "list", "-e", "-deps", "-json=Dir,Name,Standard,DepOnly,EmbedPatterns,Module,Error", pkg)
	if err != nil {
		return Sources{}, err
	}
	workspace, err := t.run(ctx, at, "env", "GOWORK")
	if err != nil {
		return Sources{}, err
	}
	if file := strings.TrimSpace(string(workspace)); file != "" && file != "off" {
		s.Files = append(s.Files, file, file+".sum")
	}
	var named []*listed
	for list := json.NewDecoder(bytes.NewReader(out)); list.More(); {
		p := &listed{}
		if err := list.Decode(p); err != nil {
			return Sources{}, fmt.Errorf("go list: %w", err)
		}
		if s.add(p); !p.DepOnly {
			named = append(named, p)
		}
	}
	switch {
	case len(named) != 1:
		return Sources{}, fmt.Errorf("%s names %d packages: name one", t.Package, len(named))
	case named[0].Error != nil && named[0].Name == "":
		return Sources{}, fmt.Errorf("%s: %s", t.Package, named[0].Error.Err)
	case named[0].Error == nil && named[0].Name != "main":
		return Sources{}, fmt.Errorf("%s is not a program: package %s", t.Package, named[0].Name)
	}
	return s, nil
}
