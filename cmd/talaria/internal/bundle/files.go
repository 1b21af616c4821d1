package bundle

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
)

// entry is a file of a bundle.
type entry struct {
	name string
	exec bool
	open func() (io.ReadCloser, error)
}

// pngSignature begins every file of that kind, which icons have to be.
var pngSignature = []byte("\x89PNG\r\n\x1a\n")

// entries returns the files of a bundle in the order in which it has them: the
// manifest, the program, and the icons and named files, sorted. They are read from
// root, the folder of the manifest, which nothing leads out of.
func entries(m *Manifest, t Target, manifest []byte, program string, root *os.Root, named []string) ([]entry, error) {
	files := map[string]bool{}
	var faults []error
	for _, name := range named {
		if files[name] {
			faults = append(faults, fmt.Errorf("%s is named twice", name))
		}
		files[name] = true
		faults = append(faults, regular(root, name))
	}
	pictures := m.pictures()
	for _, place := range slices.Sorted(maps.Keys(pictures)) {
		name := pictures[place]
		files[name] = true
		if err := picture(root, name); err != nil {
			faults = append(faults, fmt.Errorf("%s: %s: %w", ManifestName, place, err))
		}
	}
	sorted := slices.Sorted(maps.Keys(files))
	list := []entry{
		{ManifestName, false, func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(manifest)), nil }},
		{m.program(t), true, func() (io.ReadCloser, error) { return os.Open(program) }},
	}
	for _, name := range sorted {
		list = append(list, entry{name, false, func() (io.ReadCloser, error) { return root.Open(name) }})
	}
	err := m.complete(func(name string) bool {
		return slices.ContainsFunc(list, func(e entry) bool { return e.name == name || strings.HasPrefix(e.name, name+"/") })
	})
	if err != nil {
		err = fmt.Errorf("%s: %w", ManifestName, err)
	}
	return list, errors.Join(append(faults, apart(list), err)...)
}

// regular returns why a file cannot be in a bundle.
func regular(root *os.Root, name string) error {
	if !usable(name) {
		return fmt.Errorf("%q cannot be the name of a file in a bundle: it is hidden, or not every system can unpack it", name)
	}
	info, err := root.Lstat(name)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a folder; name each of its files that anyone may have", name)
	case info.Mode()&fs.ModeSymlink != 0:
		return fmt.Errorf("%s is a link; name the file that it leads to, or copy it", name)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", name)
	}
	return nil
}

// picture returns why a file cannot be an icon.
func picture(root *os.Root, name string) error {
	if err := regular(root, name); err != nil {
		return err
	}
	f, err := root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, len(pngSignature))
	if _, err := io.ReadFull(f, head); err != nil || !bytes.Equal(head, pngSignature) {
		return fmt.Errorf("%s is no PNG, which icons have to be", name)
	}
	return nil
}

// apart returns which files would be one where upper and lower case are the
// same, or where one would be the folder of another.
func apart(list []entry) error {
	var faults []error
	taken := map[string]string{}
	for _, e := range list {
		key := strings.ToLower(e.name)
		if other, ok := taken[key]; ok {
			faults = append(faults, fmt.Errorf("%s and %s would be one file where upper and lower case are the same", other, e.name))
		}
		taken[key] = e.name
	}
	for key, name := range taken {
		for i := range key {
			if key[i] == '/' && taken[key[:i]] != "" {
				faults = append(faults, fmt.Errorf("%s would be a file and the folder of %s", taken[key[:i]], name))
			}
		}
	}
	return errors.Join(faults...)
}
