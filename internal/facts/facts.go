// Package facts has what the packages of this module tell each other, and users
// need not know: about compiled types, names of the specification, and
// defaults.
package facts

import (
	"encoding/json"
	"errors"
	"net/netip"
	"strings"
	"time"
)

// Private is the parameter of an exported function that is only for packages of
// this module: users cannot name it, and thus cannot call the function. The zero
// value is all there is.
type Private struct{}

// Plan is what a server asks of a schema.Plan besides its schema and decoder.
type Plan struct {
	// Headers are the arguments that clients mirror into HTTP headers, nested
	// ones too, in the order of the schema.
	Headers []Header
	// Constrained is set if a value of the Go type can break the schema. If not,
	// checking what such values encode to is a waste.
	Constrained bool
	// Narrow is the schema of arguments that every host takes; nil for results.
	Narrow json.RawMessage
	// Open returns the schema of results without additionalProperties false, except where a
	// tag says it: of values to which later versions add members. It is nil for arguments.
	Open func() json.RawMessage
	// Unsaid is set if the plan has rules that Narrow lacks.
	Unsaid bool
	// Authored is set if methods of the types wrote a part of Narrow.
	Authored bool
}

// Header is an argument that clients mirror into an HTTP header.
type Header struct {
	Name string   // what follows "Mcp-Param-"
	Path []string // member names from the root
}

// Defaults that several packages have in common.
const (
	MaxMessage   = 4 << 20          // bytes of a message
	ReadTimeout  = 30 * time.Second // for the rest of a message that a peer has begun
	WriteTimeout = 30 * time.Second // for a peer to take what is written
)

// ErrArguments is in the chain of errors for arguments that do not fit.
var ErrArguments = errors.New("the arguments do not fit")

// ErrHalfMessage is the error of a transport.Conn whose peer began a message and
// did not end it in ReadTimeout, or what options name. Nothing more can be read.
var ErrHalfMessage = errors.New("transport: the peer has begun a message and not ended it in time")

// Keys of _meta that the specification reserves (basic/index and
// basic/patterns/subscriptions of 2026-07-28). protocol.Meta has the values of
// those that requests carry.
const (
	MetaVersion      = metaPrefix + "protocolVersion"
	MetaClientInfo   = metaPrefix + "clientInfo"
	MetaCapabilities = metaPrefix + "clientCapabilities"
	MetaLogLevel     = metaPrefix + "logLevel"
	MetaServerInfo   = metaPrefix + "serverInfo"
	MetaSubscription = metaPrefix + "subscriptionId" // in messages, which one they belong to

	metaPrefix = "io.modelcontextprotocol/"
)

// Hostname returns the host of an address, which may have a port and brackets.
func Hostname(address string) string {
	if i := strings.LastIndexByte(address, ':'); i > 0 && (i == strings.IndexByte(address, ':') || address[0] == '[' && address[i-1] == ']') {
		address = address[:i]
	}
	return strings.Trim(address, "[]")
}

// Loopback reports whether a host is written as this machine: localhost or a loopback
// address. Other names are not looked up, because the owner of a name decides where it leads.
func Loopback(host string) bool {
	if host == "127.0.0.1" || strings.EqualFold(host, "localhost") { // nearly always
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
