package main

import (
	"strings"
	"testing"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/skills"
)

// A host finds the skill, loads it, and reads the files that it names.
func TestSkills(t *testing.T) {
	s, err := newServer()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Connect(t.Context(), client.Local(s.ServeConn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	found := 0
	for one, err := range skills.List(t.Context(), c) {
		if err != nil {
			t.Fatal(err)
		}
		found++
		instructions, err := one.Load(t.Context())
		if err != nil || !strings.HasPrefix(instructions, "# Release notes\n") {
			t.Errorf("%q %v", instructions, err)
		}
		for _, f := range one.Files {
			if _, err := one.ReadFile(t.Context(), f.Name); err != nil {
				t.Error(err)
			}
			if f.Name != "SKILL.md" && !strings.Contains(instructions, f.Name) {
				t.Errorf("the instructions do not name %s", f.Name)
			}
		}
	}
	if found != 1 {
		t.Errorf("found %d skills", found)
	}
}
