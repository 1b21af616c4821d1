// Package needs is for tests that use what is not a part of this repository: a
// program of others, or what a script has installed. A test without it is
// skipped, and says what for; where TALARIA_REQUIRE is set, as the gate and e2e/run
// set it, the test fails instead, so that nothing is left out unseen.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// require is the environment variable that makes what is missing a failure, unless
// it is empty.
const require = "TALARIA_REQUIRE"

// Program returns the path of a program, which is looked for as exec.LookPath
// does. The test ends if there is none.
func Program(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		missing(t, "the program "+name+" is not installed")
	}
	return path
}

// Variable returns an environment variable. The test ends if it is not set; from
// says who sets it.
func Variable(t testing.TB, name, from string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		missing(t, name+" is not set: "+from)
	}
	return value
}

func missing(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(require) != "" {
		t.Fatalf("%s, and %s is set", what, require)
	}
	t.Skip(what)
}
