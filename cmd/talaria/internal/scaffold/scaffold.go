// Package scaffold writes the first files of a new server.
package scaffold

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed template
var templates embed.FS

// Project is a server to be.
type Project struct {
	Module  string // path of the Go module; its last element is the program's name
	Version string // of this framework to require, "" to leave that to go mod tidy
	Replace string // directory to take the framework from, "" for its published module
}

// Name returns the name of the program.
func (p Project) Name() string {
	name := path.Base(p.Module)
	if isMajor(name) && path.Dir(p.Module) != "." {
		name = path.Base(path.Dir(p.Module))
	}
	return name
}

// isMajor reports whether an element of a module path is a version, as in x/v2.
func isMajor(element string) bool {
	return len(element) > 1 && element[0] == 'v' && strings.Trim(element[1:], "0123456789") == ""
}

// Write writes the project into a directory, which it makes, and returns the
// names of the files. A directory that has anything in it is refused.
func (p Project) Write(dir string) (files []string, err error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() { // to read a pipe would wait
		return nil, fmt.Errorf("%s is not a directory; choose another place with --dir", dir)
	}
	switch entries, err := os.ReadDir(dir); {
	case err == nil && len(entries) > 0:
		return nil, fmt.Errorf("%s is not empty; choose another place with --dir", dir)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	entries, err := templates.ReadDir("template")
	if err != nil {
		return nil, err
	}
	for _, entry := range entries {
		text, err := p.expand(entry.Name())
		if err != nil {
			return files, err
		}
		name := strings.TrimSuffix(entry.Name(), ".tmpl")
		if name == "gitignore" {
			name = ".gitignore" // a leading dot would keep it from being embedded
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return files, err
		}
		files = append(files, name)
	}
	return files, nil
}

func (p Project) expand(name string) ([]byte, error) {
	t, err := template.ParseFS(templates, "template/"+name)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	err = t.Execute(&b, map[string]string{"Name": p.Name(), "Module": p.Module, "Version": p.Version, "Replace": p.Replace})
	return b.Bytes(), err
}
