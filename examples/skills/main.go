// Skills is a server that offers skills: folders of instructions and files for
// models, which are part of the program. It serves standard input and output.
//
//	talaria skills "go run ./examples/skills"
//	talaria skill "go run ./examples/skills" skill://release-notes/SKILL.md --file templates/notes.md
package main

import (
	"context"
	"embed"
	"io/fs"
	"log"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/skill"
)

//go:embed skills
var files embed.FS

func newServer() (*mcp.Server, error) {
	skills, err := fs.Sub(files, "skills")
	if err != nil {
		return nil, err
	}
	s := mcp.NewServer(mcp.Info{Name: "release", Version: "1.0.0"}, &mcp.Options{
		Instructions: "Before you write release notes, read the skill skill://release-notes/SKILL.md.",
	})
	return s, s.Add(skill.Directory(skills))
}

func main() {
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
