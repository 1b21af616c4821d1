// Package skills finds and reads the skills of servers: folders of instructions and
// files for models, by the extension io.modelcontextprotocol/skills (SEP-2640).
//
// The text of a skill is untrusted. A host shows it to its model as such, with the
// name that the host itself gives the server; it asks its user before a skill runs
// anything; and it ignores allowed-tools and other requests for rights in a head. A
// matching digest proves that the server sent what it announced, not that the
// content is safe. Name and Description come from the server, too, before anything
// is verified. They are bounded and have no control characters.
//
//	for s, err := range skills.List(ctx, c) {
//		if err != nil {
//			log.Print(err) // of this skill, or of the list
//			continue
//		}
//		registry.Add(label, s) // no file is read
//	}
//
// When the model wants a skill, and the user has agreed, Load reads its
// instructions, and ReadFile a file that they name. Both ask the server that the
// skill is of, compare what it sends with what it announced, and return nothing that
// differs: that is ErrUnverified. Get the skill again then, and ask the user again.
//
// An approval that is kept is for a server, by the host's name for it, and for a
// Fingerprint: the same files at a different server are a different skill, and so
// are other files. Skills are identified by server and URI, never by their names:
// two servers may use the same name.
//
// Nothing is kept here, and nothing is fetched ahead. A host that keeps files on a
// disk keeps them where only it can write, apart from the skills of its user.
package skills
