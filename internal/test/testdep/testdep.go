// Package testdep is for tests whose work depends on where they run.
//
// Some need a program that is not a part of this repository. Without it a test is
// skipped, and names the program. Where TALARIA_REQUIRE is set, as the gate and e2e/run
// set it, the test fails instead.
//
// Others repeat something. [Rounds] has the number of times, and [Revisions] those of
// the protocol. Others wait. [Waiting] lets more of them run at once.
package testdep

import (
	"flag"
	"os"
	"os/exec"
	"testing"

	"github.com/talaria-go/mcp/protocol"
)

// envRequire is the environment variable that makes what is missing a failure, unless
// it is empty.
const envRequire = "TALARIA_REQUIRE"

// LookPath returns the path of a program, which is searched as exec.LookPath
// does. The test ends if there is none.
func LookPath(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		skipOrFail(t, "the program "+name+" is not installed")
	}
	return path
}

// Env returns an environment variable. The test ends if it is not set; from
// says who sets it.
func Env(t testing.TB, name, from string) string {
	t.Helper()
	value := os.Getenv(name)
	if value == "" {
		skipOrFail(t, name+" is not set: "+from)
	}
	return value
}

func skipOrFail(t testing.TB, what string) {
	t.Helper()
	if os.Getenv(envRequire) != "" {
		t.Fatalf("%s, and %s is set", what, envRequire)
	}
	t.Skip(what)
}

// NoRace ends a test under the race detector, which would take long over it and find
// nothing: reason says what the test reads or writes much of on one goroutine.
func NoRace(t testing.TB, reason string) {
	t.Helper()
	if Race {
		t.Skip("without the race detector: " + reason)
	}
}

// long is the environment variable that makes tests repeat what they do as often as
// .ci/long wants it, unless it is empty.
const long = "TALARIA_LONG"

// Rounds returns how often a test repeats something: often where TALARIA_LONG is
// set, as .ci/long sets it, and otherwise so rarely that the test takes a second or two.
// The race detector makes it a fifth of that, and at least 1.
func Rounds(rarely, often int) int {
	if os.Getenv(long) != "" {
		return often
	}
	if Race {
		return max(1, rarely/5)
	}
	return rarely
}

// Revisions returns the revisions that a test is run in, the oldest first: all of them.
// With the race detector they are the first, the one with batches and the latest, since
// the others have no code of their own that locks.
func Revisions() []protocol.Revision {
	if Race {
		return []protocol.Revision{protocol.V20241105, protocol.V20250326, protocol.Latest}
	}
	return protocol.Revisions()
}

// Waiting makes 8 the number of parallel tests that run at once, unless -parallel is
// set. A TestMain calls it where parallel tests wait more than they compute.
func Waiting() {
	if err := flag.Set("test.parallel", "8"); err != nil {
		panic(err)
	}
}
