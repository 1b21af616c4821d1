// Package skill lets a server offer skills: folders of instructions and files for
// models, by the extension io.modelcontextprotocol/skills (SEP-2640).
//
//	//go:embed skills
//	var files embed.FS
//
//	skills, err := fs.Sub(files, "skills")
//	…
//	s.MustAdd(skill.Directory(skills))
//
// Clients list skills with the digests of their files, and read these as resources
// when a model needs them; see package client/skills. To clients that do not know
// the extension, they are resources as others are.
//
// A skill is a folder with a file SKILL.md. This begins with a head, which is YAML
// between two lines "---", with at least name and description; the name is that of
// the folder. Every other file of the folder, and of those below it, is a part of
// the skill. A folder below that has a SKILL.md, too, is a skill of its own besides.
//
// Heads are compared by clients that read YAML with different libraries. What these
// could read differently is a fault of Server.Add, which says how to write it: dates,
// versions of two numbers and words like yes belong in quotes. Nothing can be an
// anchor, an alias or a tag.
//
// The extension is declared, and its methods are served, from revision 2025-11-25
// on.
package skill
