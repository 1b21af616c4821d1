package everything

import (
	"fmt"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/protocol"
)

// resources are what the suite lists, reads and subscribes to.
func resources() []mcp.Component {
	pixel := redPixel().(protocol.ImageContent)
	return []mcp.Component{
		mcp.Bytes("test://static-text", []byte("This is the content of the static text resource."),
			mcp.Name("static-text"), mcp.Doc("A text"), mcp.MIME("text/plain")),
		mcp.Bytes("test://static-binary", pixel.Data, mcp.Name("static-binary"), mcp.Doc("An image"), mcp.MIME(pixel.MIMEType)),
		mcp.Resource("test://watched-resource", func(*mcp.Frame) (string, error) {
			return "Watched resource content", nil
		}, mcp.Name("watched-resource"), mcp.Doc("A text to subscribe to")),
		mcp.Template("test://template/{id}/data", templateData, mcp.Name("template-data"), mcp.Doc("Data by id")),
	}
}

// TemplateIn has the variables of test://template/{id}/data.
type TemplateIn struct {
	ID string `json:"id" validate:"required,max=100" jsonschema_description:"any text"`
}

// TemplateOut is what test://template/{id}/data holds.
type TemplateOut struct {
	ID           string `json:"id"`
	TemplateTest bool   `json:"templateTest"`
	Data         string `json:"data"`
}

func templateData(_ *mcp.Frame, in TemplateIn) (TemplateOut, error) {
	return TemplateOut{in.ID, true, "Data for ID: " + in.ID}, nil
}

// prompts are what the suite lists and gets.
func prompts() []mcp.Component {
	return []mcp.Component{
		mcp.Prompt("test_simple_prompt", func(*mcp.Frame, none) (string, error) {
			return "This is a simple prompt for testing.", nil
		}, mcp.Doc("Takes no arguments")),
		mcp.Prompt("test_prompt_with_arguments", withArguments, mcp.Doc("Repeats its arguments"),
			mcp.CompleteFrom("arg1", "test", "testing", "tester")),
		mcp.Prompt("test_prompt_with_embedded_resource", withResource, mcp.Doc("Has a resource in a message")),
		mcp.Prompt("test_prompt_with_image", func(*mcp.Frame, none) (*mcp.Messages, error) {
			return mcp.NewMessages().Add(mcp.RoleUser, redPixel()).User("Please analyze the image above."), nil
		}, mcp.Doc("Has an image in a message")),
	}
}

// ArgumentsIn has the arguments of test_prompt_with_arguments.
type ArgumentsIn struct {
	Arg1 string `json:"arg1" jsonschema_description:"First test argument"`
	Arg2 string `json:"arg2" jsonschema_description:"Second test argument"`
}

func withArguments(_ *mcp.Frame, in ArgumentsIn) (string, error) {
	return fmt.Sprintf("Prompt with arguments: arg1='%s', arg2='%s'", in.Arg1, in.Arg2), nil
}

// ResourceIn has the argument of test_prompt_with_embedded_resource.
type ResourceIn struct {
	ResourceURI string `json:"resourceUri" jsonschema_description:"URI of the resource to embed"`
}

func withResource(_ *mcp.Frame, in ResourceIn) (*mcp.Messages, error) {
	return mcp.NewMessages().
		Add(mcp.RoleUser, embedded(in.ResourceURI, "text/plain", "Embedded resource content for testing.")).
		User("Please process the embedded resource above."), nil
}
