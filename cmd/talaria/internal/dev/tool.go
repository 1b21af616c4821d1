package dev

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Tool builds a package with the program go.
type Tool struct {
	// Package is what the command line of go names. In a directory that it names, go runs,
	// so that it may be one of any module.
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
	at, pkg, err := t.where()
	if err != nil {
		return Sources{}, "", err
	}
	var unbuilt error
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, unbuilt = t.run(ctx, at, "build", "-o", dir+string(filepath.Separator), pkg)
	}()
	sources, err := t.sources(ctx, at, pkg)
	if err != nil {
		stop() // the sources say it better
	}
	<-done
	if err == nil {
		err = unbuilt
	}
	if err != nil {
		return sources, "", err
	}
	list := names(dir)
	if len(list) != 1 {
		return sources, "", fmt.Errorf("go build %s has written %d files, not a program", t.Package, len(list))
	}
	return sources, filepath.Join(dir, list[0]), nil
}

// Keep removes what was built before the program at file.
func (t *Tool) Keep(file string) {
	for _, name := range names(t.Temp) {
		if name != filepath.Base(filepath.Dir(file)) {
			_ = os.RemoveAll(filepath.Join(t.Temp, name)) // on Windows a program that runs holds its file, until the next Keep
		}
	}
}

// where returns the directory in which go runs, "" for this one, and the package from there.
func (t *Tool) where() (dir, pkg string, err error) {
	if strings.Contains(t.Package, "...") || !filepath.IsAbs(t.Package) && !strings.HasPrefix(t.Package, ".") {
		return "", t.Package, nil
	}
	switch info, err := os.Stat(t.Package); {
	case err != nil:
		return "", "", fmt.Errorf("%s: there is no such directory", t.Package)
	case info.IsDir():
		return t.Package, ".", nil
	}
	return "", t.Package, nil
}

// run runs go in a directory and returns what it prints.
func (t *Tool) run(ctx context.Context, at string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = at
	cmd.Env = append(cmd.Environ(), "GOTMPDIR="+t.Temp) // removed also when go is killed
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	killable(cmd)
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("go is not installed, or is not in PATH: %w", exec.ErrNotFound)
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], context.Cause(ctx))
	case err != nil && stderr.Len() > 0:
		return nil, errors.New(strings.TrimRight(stderr.String(), "\n"))
	case err != nil:
		return nil, fmt.Errorf("go %s: %w", args[0], err)
	}
	return stdout.Bytes(), nil
}

// listed is a package as go list -json shows it.
type listed struct {
	Dir, Name                 string
	Standard, DepOnly         bool
	EmbedFiles, EmbedPatterns []string
	Module                    *struct {
		Main    bool
		GoMod   string
		Replace *struct{ Version string }
	}
	Error *struct{ Err string }
}

const listedFields = "-json=Dir,Name,Standard,DepOnly,EmbedFiles,EmbedPatterns,Module,Error"

// own reports whether the package is one that is worked on: of the main module, of the
// workspace, or of a directory that takes the place of a module.
func (p *listed) own() bool {
	if m := p.Module; m != nil {
		return m.Main || m.Replace != nil && m.Replace.Version == ""
	}
	return !p.Standard && p.Dir != "" // files that the command line names
}

// sources finds the sources of the package, as it is called in the directory at.
func (t *Tool) sources(ctx context.Context, at, pkg string) (Sources, error) {
	out, err := t.run(ctx, at, "list", "-e", "-deps", listedFields, pkg)
	if err != nil {
		return Sources{}, err
	}
	workspace, err := t.run(ctx, at, "env", "GOWORK")
	if err != nil {
		return Sources{}, err
	}
	var s Sources
	if file := strings.TrimSpace(string(workspace)); file != "" && file != "off" {
		s.Files = append(s.Files, file, file+".sum")
	}
	var named []*listed
	modules := map[string]bool{}
	for list := json.NewDecoder(bytes.NewReader(out)); ; {
		p := &listed{}
		if err := list.Decode(p); err == io.EOF {
			break
		} else if err != nil {
			return Sources{}, fmt.Errorf("go list: %w", err)
		}
		if !p.DepOnly {
			named = append(named, p)
		}
		if !p.own() {
			continue
		}
		if m := p.Module; m != nil && m.GoMod != "" && !modules[m.GoMod] {
			modules[m.GoMod] = true
			s.Files = append(s.Files, m.GoMod, strings.TrimSuffix(m.GoMod, ".mod")+".sum")
		}
		s.add(p)
	}
	return s, t.judge(named, &s)
}

// check returns an error unless the command line names exactly one program.
func (t *Tool) judge(named []*listed, s *Sources) error {
	var why error
	switch {
	case len(named) != 1:
		why = fmt.Errorf("%s names %d packages: name one", t.Package, len(named))
	case named[0].Error != nil && named[0].Name == "":
		why = fmt.Errorf("%s: %s", t.Package, named[0].Error.Err)
	case named[0].Error == nil && named[0].Name != "main":
		why = fmt.Errorf("%s is not a program: package %s", t.Package, named[0].Name)
	}
	if why != nil {
		*s = Sources{}
	}
	return why
}

// add adds the directories of a package.
func (s *Sources) add(p *listed) {
	s.Dirs = append(s.Dirs, Dir{Path: p.Dir, Embeds: p.EmbedPatterns})
	within := map[string]bool{".": true}
	for _, name := range p.EmbedFiles {
		for dir := path.Dir(filepath.ToSlash(name)); !within[dir]; dir = path.Dir(dir) {
			within[dir] = true
			s.Dirs = append(s.Dirs, Dir{Path: filepath.Join(p.Dir, filepath.FromSlash(dir)), Within: dir, Embeds: p.EmbedPatterns})
		}
	}
}
