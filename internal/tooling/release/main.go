// Program release finishes a directory of binaries for a release: it writes an SBOM of
// each, in the JSON of CycloneDX, and their checksums. The same binaries give the same
// bytes. .ci/release runs it.
package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: release VERSION DIRECTORY")
		os.Exit(2)
	}
	if err := finish(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// finish writes NAME.cdx.json for each binary in a directory, and SHA256SUMS of all, in
// the form that sha256sum -c reads.
func finish(version, dir string) error {
	entries, err := os.ReadDir(dir) // sorted by name
	if err != nil {
		return err
	}
	var sums strings.Builder
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		bom, err := describe(path, version, digest(text))
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(e.Name(), ".exe") + ".cdx.json"
		if err := os.WriteFile(filepath.Join(dir, name), bom, 0o644); err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%s  %s\n%s  %s\n", digest(text), e.Name(), digest(bom), name)
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), []byte(sums.String()), 0o644)
}

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
