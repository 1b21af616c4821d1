package spectest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Package protocol names every method of every revision and of tasks.
func TestMethodNames(t *testing.T) {
	if !present(t) {
		return
	}
	names, err := os.ReadFile("../../../protocol/method.go")
	if err != nil {
		t.Fatal(err)
	}
	dir, _ := official()
	files, err := filepath.Glob(filepath.Join(dir, "*", "schema.json"))
	if err != nil || len(files) < 5 {
		t.Fatalf("%d schemas, %v", len(files), err)
	}
	method := regexp.MustCompile(`"method":\s*\{[^{}]*"const":\s*"([^"]+)"`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := method.FindAllStringSubmatch(string(text), -1)
		if len(found) == 0 {
			t.Errorf("%s: no methods", file)
		}
		for _, m := range found {
			if !strings.Contains(string(names), `"`+m[1]+`"`) {
				t.Errorf("%s: there is no constant for %s", filepath.Base(filepath.Dir(file)), m[1])
			}
		}
	}
}
