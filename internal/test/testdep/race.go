//go:build race

package testdep

// Race reports whether the race detector is on.
const Race = true
