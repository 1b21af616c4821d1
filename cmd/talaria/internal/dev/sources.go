package dev

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Sources are the files that a program is made of.
type Sources struct {
	Files []string // absolute paths
	Dirs  []Dir    // where new files count
}

// Dir is a directory of a package.
type Dir struct {
	Path   string
	Within string   // from the directory of the package, with slashes; "" is that directory
	Embeds []string // patterns of //go:embed, from the directory of the package
}

// sourceNames are the ends of the names of sources.
var sourceNames = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".m", ".s", ".S", ".sx",
	".f", ".F", ".for", ".f90", ".syso", ".swig", ".swigcxx"}

// counts reports whether a file of that name would belong to the program.
func (d Dir) counts(name string) bool {
	hidden := strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")
	if d.Within == "" && !hidden && slices.Contains(sourceNames, filepath.Ext(name)) && !strings.HasSuffix(name, "_test.go") {
		return true
	}
	file := path.Join(d.Within, name)
	for _, pattern := range d.Embeds {
		pattern, all := strings.CutPrefix(pattern, "all:")
		for at := file; at != "."; at = path.Dir(at) {
			if ok, err := path.Match(pattern, at); ok && err == nil && (at == file || all || !hidden) {
				return true
			}
		}
	}
	return false
}

// Stamp is the time and the size of a file. The zero value means that there is none.
type Stamp struct {
	Changed time.Time
	Size    int64
}

// Snapshot has the stamps of files, by their paths.
type Snapshot map[string]Stamp

// Scan looks at the sources.
func Scan(s Sources) Snapshot {
	seen := make(Snapshot, len(s.Files))
	look := func(file string) {
		if _, ok := seen[file]; ok {
			return
		}
		if info, err := os.Stat(file); err == nil {
			seen[file] = Stamp{info.ModTime(), info.Size()}
		}
	}
	for _, file := range s.Files {
		look(file)
	}
	for _, dir := range s.Dirs {
		for _, name := range names(dir.Path) {
			if dir.counts(name) {
				look(filepath.Join(dir.Path, name))
			}
		}
	}
	return seen
}

// names are those of the files in a directory; none if it cannot be read.
func names(dir string) []string {
	f, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer f.Close()
	list, _ := f.Readdirnames(-1)
	return list
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
