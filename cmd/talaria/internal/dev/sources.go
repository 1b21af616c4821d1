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
	Dirs  []Dir
}

// found reports whether there are any.
func (s Sources) found() bool { return len(s.Files)+len(s.Dirs) > 0 }

// Dir is a directory of a package. The files of the package are found by their names.
type Dir struct {
	Path   string
	Within string   // from the directory of the package, with slashes; "" is that directory
	Embeds []string // patterns of //go:embed, from the directory of the package

	changed time.Time // when the names below were read
	found   []string
}

// sourceNames are the ends of the names of sources.
var sourceNames = []string{".go", ".c", ".cc", ".cpp", ".cxx", ".h", ".hh", ".hpp", ".hxx", ".m", ".s", ".S", ".sx",
	".f", ".F", ".for", ".f90", ".syso", ".swig", ".swigcxx"}

// counts reports whether a file of that name would belong to the program.
func (d *Dir) counts(name string) bool {
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

// Scan looks at the sources. It keeps the names of files in s.Dirs, so that one
// goroutine at a time may scan the same sources.
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
	for i := range s.Dirs {
		for _, file := range s.Dirs[i].files() {
			look(file)
		}
	}
	return seen
}

// unsure is how long after a change of a directory its time may stay the same at a
// further change: 2 s on FAT.
const unsure = 2 * time.Second

// files returns the files in the directory that belong to the program. The directory is
// read when it has changed.
func (d *Dir) files() []string {
	info, err := os.Stat(d.Path)
	if err != nil {
		return nil
	}
	if t := info.ModTime(); !t.Equal(d.changed) || time.Since(t) < unsure {
		d.changed, d.found = t, nil
		for _, name := range names(d.Path) {
			if d.counts(name) {
				d.found = append(d.found, filepath.Join(d.Path, name))
			}
		}
	}
	return d.found
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
