package skill

import (
	"io/fs"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/registry"
)

// Directory offers every skill below fsys: each folder that has a SKILL.md, at
// skill://PATH/SKILL.md, where PATH is that of the folder in fsys. If fsys itself
// has a SKILL.md, PATH begins with its name.
//
// Files are read once, by Server.Add, and held in memory: what is served is what
// was digested then. Names that begin with a dot are left out, and the log says
// which. These are faults of Add, which names them all:
//
//   - anything that is neither a regular file nor a folder, as a symbolic link is:
//     it could lead to files that must not be published;
//   - a folder of a skill that does not have its name, or a folder above it with
//     other characters than a-z, 0-9, dot, hyphen and underscore;
//   - names in one folder that differ in case or only in the form of their Unicode,
//     and names with control characters, a backslash or a percent sign;
//   - a skill of more than 512 files or 16 MiB, which clients need not take, and a
//     file that is larger than Limits.File, or whose read would be a message of more
//     than Limits.Message: clients have such a limit, too, of 4 MiB unless they say
//     otherwise;
//   - no skill at all.
//
// Scopes and VisibleTo hold for a skill, its files and the skills within it at once,
// and so does Options.Filter, which is asked with KindResource and the URI of the
// outermost SKILL.md. Meta is that of the SKILL.md; its keys begin with
// io.modelcontextprotocol.skills/ or a domain of your own. Results may be kept as
// Options.ListTTL and ListPublic say, and are private where a rule decides who sees
// a skill. A skill goes with Server.Remove of its SKILL.md.
func Directory(fsys fs.FS, opts ...mcp.Option) mcp.Component {
	return mcp.Made(option.Component{Name: "skill.Directory", Make: func(s option.Settings) ([]*registry.Entry, error) {
		w := &walker{fsys: fsys, settings: s}
		return w.entries()
	}}, opts...)
}
