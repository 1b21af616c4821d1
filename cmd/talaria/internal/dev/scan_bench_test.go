package dev

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// BenchmarkScan looks at 2,000 files in 100 directories. The interval of a loop is scanShare
// times as long.
func BenchmarkScan(b *testing.B) {
	var s Sources
	for n := range 100 {
		dir := filepath.Join(b.TempDir(), "d")
		if err := os.Mkdir(dir, 0o755); err != nil {
			b.Fatal(err)
		}
		s.Packages = append(s.Packages, Package{Dir: dir})
		for k := range 20 {
			file := filepath.Join(dir, fmt.Sprintf("f%d_%d.go", n, k))
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				b.Fatal(err)
			}
		}
	}
	for b.Loop() {
		if len(Scan(s)) != 2000 {
			b.Fatal("files are missing")
		}
	}
}
