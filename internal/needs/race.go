//go:build race

package needs

// Race reports whether the race detector is on.
const Race = true
