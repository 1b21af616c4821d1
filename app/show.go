package app

import (
	"slices"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/wire"
)

// Show makes hosts show the results of a tool in the view at uri. Server.Add fails if
// the server has no such view then, and for StructuredOnly without Text: clients that
// show no views, which are most, would have nothing to show and models nothing to
// read. It changes the description of the tool, for every client, and no result.
//
// Where the view is not there for a client, by Options.Filter or because it was
// removed, the tool is described without it.
func Show(uri string) mcp.ToolOption {
	return mcp.MadeOption(option.Tool{Name: "app.Show", View: uri})
}

// ViewOnly restricts a tool to views: one that refreshes a view, for example. The tool
// exists only for clients that declare the extension with the type of our views. For
// others it is unknown, in lists and calls. Lists are private then.
//
// It is a hint, not access control. Hosts are asked to keep the tool from their
// models, and any client can say that it shows views: every client that may call the
// server's other tools may call this one. For an effect that needs consent, ask the
// user (mcp.Elicit) or require Scopes.
func ViewOnly() mcp.ToolOption {
	return mcp.MadeOption(option.Tool{Name: "app.ViewOnly", AppOnly: true, Visible: showsViews})
}

// showsViews reports whether the client of a request declares that it shows views
// of the type that ours have.
func showsViews(f *mcp.Frame) bool {
	var settings struct {
		Types []string `json:"mimeTypes"`
	}
	declared, ok := f.ClientCapabilities().Extensions[wire.AppsExtension]
	return ok && jsonx.Unmarshal(declared, &settings) == nil && slices.Contains(settings.Types, wire.ViewType)
}
