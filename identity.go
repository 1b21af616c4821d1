package mcp

import (
	"encoding/json"

	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/protocol"
)

// ServerCapabilities are what a server declares that it offers.
type ServerCapabilities = protocol.ServerCapabilities

// presented returns what the server is, to the client of f.
func (s *Server) presented(f *frame.Frame) Info {
	info := s.info
	if s.opts.InfoFunc != nil {
		info = s.opts.InfoFunc(f)
		if info.Name == "" {
			info.Name = s.info.Name
		}
		if info.Version == "" {
			info.Version = s.info.Version
		}
	}
	return info.For(f.Revision())
}

// declared returns what the server offers, to the client of f.
func (s *Server) declared(f *frame.Frame) ServerCapabilities {
	derived := s.capabilities(f.Revision())
	if s.opts.CapabilitiesFunc == nil {
		return derived
	}
	return s.opts.CapabilitiesFunc(f, derived).For(f.Revision())
}

// discoverCache says who may keep the result of server/discover: the client
// alone, if it was made for it.
func (s *Server) discoverCache() protocol.Cache {
	cache := s.opts.ListCache
	if s.opts.InfoFunc != nil || s.opts.CapabilitiesFunc != nil {
		cache.Scope = protocol.CachePrivate
	}
	return cache
}

// identified makes a result name the server as InfoFunc does.
func (s *Server) identified(f *frame.Frame, result protocol.Result) protocol.Result {
	if s.opts.InfoFunc == nil {
		return result
	}
	return &identifiedResult{result, metaOf(s.presented(f))}
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
