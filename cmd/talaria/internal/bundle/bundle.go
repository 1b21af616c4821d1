// Package bundle packs a server into an MCP bundle, which people install with a
// click: a zip archive with a manifest and a program. Its contents come from the
// manifest, the package and the named files, so that the same input gives the same
// bytes and the bundle has no other file.
package bundle

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"github.com/talaria-go/mcp/internal/tooling/files"
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
	text, err := files.Text(s.Manifest, maxManifest)
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
	if err := replaceable(result.Path, s, m); err != nil {
		return nil, err
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

// maxManifest is the limit of a manifest, in bytes.
const maxManifest = 1 << 20

// replaceable returns an error if there is something at out that the bundle must not
// replace: what it is made of, or anything but a bundle.
func replaceable(out string, s Source, m *Manifest) error {
	there, err := files.Existing(out)
	if there == nil || err != nil {
		return err
	}
	inputs := append([]string{s.Manifest}, s.Files...)
	for _, name := range m.pictures() {
		inputs = append(inputs, filepath.Join(filepath.Dir(s.Manifest), filepath.FromSlash(name)))
	}
	for _, name := range inputs {
		if info, err := os.Stat(name); err == nil && os.SameFile(info, there) {
			return fmt.Errorf("%s is a file of the bundle itself; choose another one to write", out)
		}
	}
	z, err := zip.OpenReader(out)
	if err != nil {
		return fmt.Errorf("%s exists and is not a bundle; choose another one to write, or remove it", out)
	}
	defer z.Close()
	if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == ManifestName }) {
		return fmt.Errorf("%s exists and is not a bundle; choose another one to write, or remove it", out)
	}
	return nil
}

// write writes the archive, whole or not at all.
func (r *Result) write(list []entry) error {
	return files.Replace(r.Path, 0o644, func(w io.Writer) error {
		sum, n := sha256.New(), &counter{}
		err := archive(io.MultiWriter(w, sum, n), list)
		r.SHA256, r.Size = hex.EncodeToString(sum.Sum(nil)), n.bytes
		return err
	})
}

// counter counts what is written to it.
type counter struct{ bytes int64 }

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}
