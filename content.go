package mcp

import "github.com/talaria-go/mcp/protocol"

// The types of content and what goes with them; see package protocol.
type (
	Content          = protocol.Content
	TextContent      = protocol.TextContent
	ImageContent     = protocol.ImageContent
	AudioContent     = protocol.AudioContent
	ResourceLink     = protocol.ResourceLink
	EmbeddedResource = protocol.EmbeddedResource
	ResourceContents = protocol.ResourceContents
	Annotations      = protocol.Annotations
	Icon             = protocol.Icon
	Role             = protocol.Role
)

// The roles.
const (
	RoleUser      = protocol.RoleUser
	RoleAssistant = protocol.RoleAssistant
)
