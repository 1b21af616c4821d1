package sizelimits

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Each program that starts a goroutine for its signals gives them back and waits for it, also
// those that `talaria new` writes and pages show. A channel that nothing reads is exempt.
func TestSignalsAreGivenBack(t *testing.T) {
	notify := regexp.MustCompile(`signal\.Notify\((\S+),`)
	waits := []*regexp.Regexp{regexp.MustCompile(`\.Wait\(\)`), regexp.MustCompile(`<-done`), regexp.MustCompile(`defer signal\.Stop\(`), regexp.MustCompile(`func\(\) \{ signal\.Stop\(`)}
	programs := 0
	root := filepath.Join("..", "..", "..")
	err := filepath.WalkDir(root, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && d.Name() != "..") {
			return fs.SkipDir
		}
		if !slices.Contains([]string{".go", ".tmpl", ".md"}, filepath.Ext(name)) || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		for _, found := range notify.FindAllSubmatch(text, -1) {
			channel := string(found[1])
			if strings.HasPrefix(channel, "make(") {
				continue
			}
			programs++
			if !strings.Contains(string(text), "signal.Stop("+channel+")") || !slices.ContainsFunc(waits, func(w *regexp.Regexp) bool { return w.Match(text) }) {
				t.Errorf("%s: give the signals of %s back with signal.Stop, and wait for the goroutine that reads them", name, channel)
			}
		}
		return nil
	})
	if err != nil || programs < 8 {
		t.Fatal(programs, err)
	}
}
