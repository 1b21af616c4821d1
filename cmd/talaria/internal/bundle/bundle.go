// Package bundle packs a server into an MCP bundle, which people install with a
// click: a zip archive with a manifest and a program. What is in it comes from the
// manifest, the package and the files that are named, so that whoever packs the
// same gets the same bytes, and nothing is handed out that nobody has named.
package bundle

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Source is what a bundle is made of.
type Source struct {
	Manifest  string   // the file; what is named below lies in its folder
	Package   string   // the directory of the program
	Files     []string // others, by their paths
	Target    Target
	Toolchain string // of Go, such as "go1.26.1"; "" for the one that the package takes here
}

// Result is a bundle that was made.
type Result struct {
	Path      string
	Size      int64
	SHA256    string
	Toolchain string   // which has built the program
	Names     []string // of the files in it
}

// Pack builds the program and writes the bundle, whole or not at all; out "" means
// the name of the bundle in the current directory.
func Pack(ctx context.Context, s Source, out string) (*Result, error) {
	text, err := os.ReadFile(s.Manifest)
	if err != nil {
		return nil, err
	}
	m, err := Read(text)
	if err == nil {
		err = s.Target.fits(m)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	if text, err = m.fitted(text, s.Target); err != nil {
		return nil, fmt.Errorf("%s: %w", s.Manifest, err)
	}
	root, err := os.OpenRoot(filepath.Dir(s.Manifest))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	named, err := below(filepath.Dir(s.Manifest), s.Files)
	if err != nil {
		return nil, err
	}
	work, err := os.MkdirTemp("", "talaria-pack-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work)
	program := filepath.Join(work, "program")
	list, err := entries(m, s.Target, text, program, root, named)
	if err != nil {
		return nil, err
	}
	result := &Result{Path: out}
	if result.Path == "" {
		result.Path = FileName(m, s.Target)
	}
	for _, e := range list {
		result.Names = append(result.Names, e.name)
	}
	if result.Toolchain, err = build(ctx, s.Package, program, s.Target, s.Toolchain); err != nil {
		return nil, err
	}
	return result, result.write(list)
}

// below returns the paths of files as the folder of the manifest has them.
func below(dir string, files []string) ([]string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, file := range files {
		path, err := filepath.Abs(file)
		if err != nil {
			return nil, err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil || !filepath.IsLocal(name) {
			return nil, fmt.Errorf("%s is not below %s, where the manifest is; put it there", file, dir)
		}
		names = append(names, filepath.ToSlash(name))
	}
	return names, nil
}

// write writes the archive beside its place and moves it there.
func (r *Result) write(list []entry) error {
	f, err := os.CreateTemp(filepath.Dir(r.Path), ".talaria-*")
	if err != nil {
		return err
	}
	sum := sha256.New()
	err = archive(io.MultiWriter(f, sum), list)
	if err == nil {
		r.SHA256 = hex.EncodeToString(sum.Sum(nil))
		r.Size, err = f.Seek(0, io.SeekCurrent)
	}
	if err = errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return os.Rename(f.Name(), r.Path)
}
