package main

import (
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	const want = `The total is 12.

plan                                 internal agent
  tools/call total                   client   agent
    tools/call total                 server   shop
      tools/call add                 client   shop
        tools/call add               server   calculator
      tools/call add                 client   shop
        tools/call add               server   calculator
`
	if out.String() != want {
		t.Errorf("it prints\n%s, want\n%s", out.String(), want)
	}
}
