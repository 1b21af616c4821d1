package bundle

import (
	"fmt"
	"slices"
	"strings"
)

// Target is the kind of machine that a bundle is for. A manifest can only say
// its system, so that the architecture is in the name of the file, and a
// bundle has one program.
type Target struct{ OS, Arch string }

// platforms are the systems of manifests, by those of Go.
var platforms = map[string]string{"darwin": "darwin", "linux": "linux", "windows": "win32"}

// ParseTarget reads "linux/amd64".
func ParseTarget(text string) (Target, error) {
	system, arch, ok := strings.Cut(text, "/")
	if !ok || arch == "" || strings.Trim(arch, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
		return Target{}, fmt.Errorf("%q is not a target; write GOOS/GOARCH, such as linux/amd64", text)
	}
	if platforms[system] == "" {
		return Target{}, fmt.Errorf("there are no bundles for %q; they are for darwin, linux and windows", system)
	}
	return Target{system, arch}, nil
}

func (t Target) String() string { return t.OS + "/" + t.Arch }

func (t Target) platform() string { return platforms[t.OS] }

// fits reports whether a manifest allows a target.
func (t Target) fits(m *Manifest) error {
	if c := m.Compatibility; c != nil && len(c.Platforms) > 0 && !slices.Contains(c.Platforms, t.platform()) {
		return fmt.Errorf("/compatibility/platforms: has no %q, and the target is %s; add it, or take another --target", t.platform(), t)
	}
	return nil
}

// FileName is what the bundle of a manifest for a target is called.
func FileName(m *Manifest, t Target) string {
	return fmt.Sprintf("%s-%s-%s-%s.mcpb", m.Name, m.Version, t.OS, t.Arch)
}
