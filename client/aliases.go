package client

import "github.com/talaria-go/mcp/protocol"

// The types of package protocol that handlers and options are written with, so
// that a client needs no other import.
type (
	// Info is how a client or a server names itself.
	Info = protocol.Implementation
	// Filter selects the changes that a client is notified of; see Client.Listen.
	Filter = protocol.SubscriptionFilter
	// Tool is the definition of a tool.
	Tool = protocol.Tool
	// Prompt is the definition of a prompt.
	Prompt = protocol.Prompt
	// Resource is what a server lists of a resource.
	Resource = protocol.Resource
	// ResourceTemplate is what a server lists of resources whose URIs have
	// variables.
	ResourceTemplate = protocol.ResourceTemplate
	// EventType is the definition of an event type.
	EventType = protocol.EventType
	// Content is an item of a result or a message: TextContent, or one of the
	// other kinds in package protocol.
	Content = protocol.Content
	// TextContent is a text.
	TextContent = protocol.TextContent
	// ElicitParams is what a server asks the user; see Options.Elicit.
	ElicitParams = protocol.ElicitParams
	// ElicitResult is the user's answer. Accept, Decline and Cancel make one.
	ElicitResult = protocol.ElicitResult
	// SampleParams is what a server asks the client's model; see Options.Sample.
	SampleParams = protocol.SampleParams
	// SampleResult is the model's answer.
	SampleResult = protocol.SampleResult
	// SampleMessage is a message of the conversation that the model continues.
	SampleMessage = protocol.SampleMessage
	// Root is a place that servers may work in; see Options.Roots.
	Root = protocol.Root
)
