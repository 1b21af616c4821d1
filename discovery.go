package mcp

import (
	"cmp"
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// discovery returns what the server says of itself to the client of f.
func (s *Server) discovery(f *frame.Frame) Discovery {
	d := Discovery{Info: s.info, Capabilities: s.capabilities(f.Revision()), Instructions: s.opts.Instructions}
	if s.opts.Discover != nil {
		d = s.discoveryFor(f, d)
	}
	d.Info = d.Info.For(f.Revision())
	return d
}

// discoveryFor returns what Discover makes of d. It is apart, so that a server
// without Discover keeps d on the stack.
func (s *Server) discoveryFor(f *frame.Frame, d Discovery) Discovery {
	s.opts.Discover(f, &d)
	d.Info.Name = cmp.Or(d.Info.Name, s.info.Name)
	d.Info.Version = cmp.Or(d.Info.Version, s.info.Version)
	d.Capabilities = d.Capabilities.For(f.Revision())
	return d
}

// discoverCache says who may keep the result of server/discover: the client
// alone, if it was made for it.
func (s *Server) discoverCache() protocol.Cache {
	cache := s.opts.listCache()
	if s.opts.Discover != nil {
		cache.Scope = protocol.CachePrivate
	}
	return cache
}

// identified makes a result name the server as Discover does.
func (s *Server) identified(d Discovery, result protocol.Result) protocol.Result {
	if s.opts.Discover == nil {
		return result
	}
	return &identifiedResult{result, metaOf(d.Info)}
}

type identifiedResult struct {
	result protocol.Result
	meta   []byte
}

// Append implements protocol.Result.
func (r *identifiedResult) Append(dst []byte, to protocol.Wire) ([]byte, error) {
	to.Meta = r.meta
	return r.result.Append(dst, to)
}

// metaOf returns the member of _meta that names the server.
func metaOf(info Info) []byte {
	text, err := json.Marshal(info)
	if err != nil {
		panic("mcp: Info does not encode: " + err.Error()) // it is plain data
	}
	return append([]byte(`"`+protocol.MetaServerInfo+`":`), text...)
}
