package dev

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sources are what a program is made of.
type Sources struct {
	Files    []string // absolute paths
	Packages []Package
}

// found reports whether there are any.
func (s Sources) found() bool { return len(s.Files)+len(s.Packages) > 0 }

// Package is a directory with sources. Its files are found by their names, so that new
// ones are, too.
type Package struct {
	Dir    string
	Embeds []string // patterns of //go:embed

	changed time.Time // when its sources below were read
	sources []string
}

// sourceNames are the ends of the names of sources.
var sourceNames = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".m", ".s", ".S", ".sx",
	".f", ".F", ".for", ".f90", ".syso", ".swig", ".swigcxx"}

// hidden reports whether go ignores a file of that name.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// Stamp is the time and the size of a file. The zero value means that there is none.
type Stamp struct {
	Changed time.Time
	Size    int64
}

// Snapshot has the stamps of files, by their paths.
type Snapshot map[string]Stamp

// Scan looks at the sources. It keeps names of files in s.Packages, so one goroutine at a
// time may scan the same sources.
func Scan(s Sources) Snapshot {
	seen := make(Snapshot, len(s.Files))
	look := func(file string) {
		if _, ok := seen[file]; ok {
			return
		}
		if info, err := os.Stat(file); err == nil && !info.IsDir() {
			seen[file] = Stamp{info.ModTime(), info.Size()}
		}
	}
	for _, file := range s.Files {
		look(file)
	}
	for i := range s.Packages {
		p := &s.Packages[i]
		p.read()
		for _, file := range p.sources {
			look(file)
		}
		for _, pattern := range p.Embeds {
			embedded(p.Dir, pattern, look)
		}
	}
	return seen
}

// unsure is how long after a change of a directory its time may stay the same at a
// further change: 2 s on FAT.
const unsure = 2 * time.Second

// read finds the sources in the directory again if it has changed.
func (p *Package) read() {
	var at time.Time // without a directory
	if info, err := os.Stat(p.Dir); err == nil {
		at = info.ModTime()
	}
	if at.Equal(p.changed) && time.Since(at) > unsure {
		return
	}
	p.changed, p.sources = at, nil
	dir, err := os.Open(p.Dir)
	if err != nil { // what cannot be read has no sources; go build says why
		return
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // unlike os.ReadDir it never looks at each file
	for _, name := range names {
		if slices.Contains(sourceNames, filepath.Ext(name)) && !hidden(name) && !strings.HasSuffix(name, "_test.go") {
			p.sources = append(p.sources, filepath.Join(p.Dir, name))
		}
	}
}

// embedded looks at the files that a pattern of //go:embed names in a directory. Of what
// is in a directory that the pattern names, hidden files need the prefix all.
func embedded(dir, pattern string, look func(file string)) {
	pattern, all := strings.CutPrefix(pattern, "all:")
	root := os.DirFS(dir)
	names, _ := fs.Glob(root, pattern) // go build says what is wrong with it
	for _, name := range names {
		_ = fs.WalkDir(root, name, func(at string, entry fs.DirEntry, err error) error { // what cannot be read is not there
			switch {
			case err != nil:
			case at != name && !all && hidden(entry.Name()):
				if entry.IsDir() {
					return fs.SkipDir
				}
			case !entry.IsDir():
				look(filepath.Join(dir, filepath.FromSlash(at)))
			}
			return nil
		})
	}
}

// renewed returns the stamps that the files of now had when a build began: those of s, and
// for files that s does not have those of now, unless they have changed since.
func (s Snapshot) renewed(now Snapshot, began time.Time) Snapshot {
	for file, stamp := range now {
		if old, ok := s[file]; ok {
			now[file] = old
		} else if !stamp.Changed.Before(began) {
			now[file] = Stamp{}
		}
	}
	return now
}
