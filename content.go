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
	Level            = protocol.Level
	CacheScope       = protocol.CacheScope
)

// The roles.
const (
	RoleUser      = protocol.RoleUser
	RoleAssistant = protocol.RoleAssistant
)

// Who may share what a client has cached.
const (
	CachePublic  = protocol.CachePublic
	CachePrivate = protocol.CachePrivate
)

// The levels of Frame.Log, least severe first.
const (
	LevelDebug     = protocol.LevelDebug
	LevelInfo      = protocol.LevelInfo
	LevelNotice    = protocol.LevelNotice
	LevelWarning   = protocol.LevelWarning
	LevelError     = protocol.LevelError
	LevelCritical  = protocol.LevelCritical
	LevelAlert     = protocol.LevelAlert
	LevelEmergency = protocol.LevelEmergency
)
