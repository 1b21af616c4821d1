package main

import (
	"strings"
	"testing"
)

// What is wrong with the arguments, or with the engine, is said with the place and
// without the password.
func TestArguments(t *testing.T) {
	t.Setenv("REDIS_URL", "")
	for arguments, want := range map[string]string{
		"":                       "give -http ADDRESS and -redis URL",
		"-http 127.0.0.1:0":      "give -http ADDRESS and -redis URL",
		"-redis redis://x":       "give -http ADDRESS and -redis URL",
		"-http :0 -redis http:x": "-redis",
		"-http :0 -redis redis://me:secret@127.0.0.1:1":   "-redis",
		"-http :0 -redis redis://127.0.0.1:1 -prefix A_B": "Prefix",
		"-http :0 -redis redis://127.0.0.1:1 more":        "give -http",
		"-port 80": "not defined",
	} {
		err := run(t.Context(), strings.Fields(arguments))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("replica %s: %v, want %q", arguments, err, want)
		}
	}
}
