package dev

import (
	"io/fs"
	"os"
	"path/filepath"
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
}

// sourceNames are the ends of the names of sources.
const sourceNames = " .go .c .cc .cpp .cxx .h .hh .hpp .hxx .m .s .S .sx .f .F .for .f90 .syso .swig .swigcxx "

// isSource reports whether go takes a file of that name for a source of a program.
func isSource(name string) bool {
	return strings.Contains(sourceNames, " "+filepath.Ext(name)+" ") && !hidden(name) && !strings.HasSuffix(name, "_test.go")
}

// hidden reports whether go ignores a file of that name.
func hidden(name string) bool { return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_") }

// Stamp is the time and the size of a file. The zero value means that there is none.
type Stamp struct {
	Changed time.Time
	Size    int64
}

// Snapshot has the stamps of files, by their paths.
type Snapshot map[string]Stamp

// Scan looks at the sources. What cannot be read is not there; go build says why.
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
	for _, p := range s.Packages {
		entries, _ := os.ReadDir(p.Dir)
		for _, entry := range entries {
			if isSource(entry.Name()) {
				look(filepath.Join(p.Dir, entry.Name()))
			}
		}
		for _, pattern := range p.Embeds {
			embedded(p.Dir, pattern, look)
		}
	}
	return seen
}

// embedded looks at the files that a pattern of //go:embed names in a directory. Of what
// is in a directory that the pattern names, hidden files need the prefix all.
func embedded(dir, pattern string, look func(file string)) {
	pattern, all := strings.CutPrefix(pattern, "all:")
	root := os.DirFS(dir)
	names, _ := fs.Glob(root, pattern)
	for _, name := range names {
		_ = fs.WalkDir(root, name, func(at string, entry fs.DirEntry, err error) error {
			switch unseen := at != name && !all && hidden(filepath.Base(at)); {
			case err == nil && unseen && entry.IsDir():
				return fs.SkipDir
			case err == nil && !unseen:
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
