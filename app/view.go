package app

import (
	_ "embed"
	"errors"
	"fmt"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/frame"
	"github.com/talaria-go/mcp/internal/option"
	"github.com/talaria-go/mcp/internal/wire"
	"github.com/talaria-go/mcp/protocol"
	"github.com/talaria-go/mcp/registry"
)

// ViewOptions say what a view asks of hosts. Hosts may grant less. The zero value
// asks for nothing: the page then loads nothing from elsewhere and sends nothing
// there.
//
// Origins are https://HOST or https://HOST:PORT, where HOST is a name in lower case
// with a dot, and may begin with "*." before at least two labels. None is an address
// or localhost. Nothing is taken from the page itself, and what is named here is
// allowed to whatever has come into it: name what the page needs, and no more.
type ViewOptions struct {
	// Title is the name that people see.
	Title string

	// Connect are origins that scripts may exchange data with: fetch, and wss:// for
	// WebSocket.
	Connect []string
	// Resources are origins of scripts, styles, images, fonts and media. What such an
	// origin sends as a script has all the power of the view: it reads results, and
	// calls tools as the user.
	Resources []string
	// Frames are origins of frames within the view.
	Frames []string
	// Bases are origins that relative URLs may start from.
	Bases []string

	// What browsers ask their user for.
	Camera, Microphone, Geolocation, ClipboardWrite bool

	// Domain is the origin that the view itself should have, for services that know
	// their callers by it. Which ones there are is up to each host.
	Domain string
	// Border is whether the host should draw a border; nil leaves that to the host.
	Border *bool
}

// View offers a view at uri, which begins with ui:// and names the server first, as
// in "ui://charts/bars": two servers that are mounted into one cannot have the same.
// html is a whole document; see the package for the script that it may have. A nil o
// asks for nothing.
//
// The document is the same for every client, and is not a place for secrets: what is
// for one user comes with the results of tools. So a view has neither Scopes nor
// mcp.VisibleTo. Options.Filter may hide it, as the resource that it is; tools that
// show it are then described without it. It may be kept as Options.ListTTL and
// ListPublic say, and goes with Server.Remove of the resource.
//
// What hosts allow a page is a protection of their users from the page, and not
// more: a host that does not enforce it lets the page do what pages do.
//
// With a view, a server declares the extension, in every revision. Faults of URI,
// document and options are reported by Server.Add; one is a document beyond
// Limits.Message.
func View(uri, html string, o *ViewOptions) mcp.Component {
	if o == nil {
		o = &ViewOptions{}
	}
	v := view{uri, html, *o}
	v.Connect, v.Resources = slices.Clone(o.Connect), slices.Clone(o.Resources)
	v.Frames, v.Bases = slices.Clone(o.Frames), slices.Clone(o.Bases)
	if o.Border != nil {
		v.Border = new(*o.Border)
	}
	return mcp.Made(option.Component{Name: fmt.Sprintf("app.View(%q)", uri), Make: v.entries})
}

// view is what View returns, and does not change.
type view struct {
	uri, html string
	ViewOptions
}

// marker is what the script takes the place of.
const marker = `<script src="talaria-app.js"></script>`

// script is a function of the prefix that the names of the server's tools have.
//
//go:embed view.js
var script string

// entries makes the resource that the view is.
func (v view) entries(s option.Settings) ([]*registry.Entry, error) {
	faults := v.faults()
	ui, err := v.meta()
	if err = errors.Join(append(faults, err, s.Fits(v.contents("")))...); err != nil {
		return nil, err
	}
	size := int64(len(v.contents("").Text))
	under := func(prefix string) frame.Handler {
		contents := v.contents(prefix)
		contents.Meta = ui
		read := &protocol.ReadResourceResult{Contents: []protocol.ResourceContents{contents}, Cache: s.Cache}
		return func(*frame.Frame) (protocol.Result, error) {
			own := *read // middleware may change it
			own.Contents = slices.Clone(read.Contents)
			return &own, nil
		}
	}
	return []*registry.Entry{{
		Definition: &protocol.Resource{URI: v.uri, Name: path.Base(v.uri), Title: v.Title, MIMEType: wire.ViewType, Size: &size, Meta: ui},
		Serve:      under(""), Under: under,
	}}, nil
}

// contents returns the document for a server whose tools have a prefix, which is
// made of the characters of names and needs no escapes.
func (v view) contents(prefix string) protocol.ResourceContents {
	own := "<script>" + script + `("` + prefix + `");</script>`
	return protocol.ResourceContents{URI: v.uri, MIMEType: wire.ViewType, Text: strings.Replace(v.html, marker, own, 1)}
}

// faults returns what is wrong with URI and document.
func (v view) faults() (all []error) {
	if u, err := url.Parse(v.uri); err != nil || !strings.HasPrefix(v.uri, "ui://") || u.Host == "" || u.User != nil || strings.ContainsAny(v.uri, "{}?#") {
		all = append(all, errors.New(`a view is at ui://SERVER/NAME, without braces, ? or #`))
	}
	text := strings.TrimSpace(strings.TrimPrefix(v.html, "\ufeff"))
	for strings.HasPrefix(text, "<!--") {
		_, text, _ = strings.Cut(text, "-->")
		text = strings.TrimSpace(text)
	}
	const doctype = "<!doctype html"
	switch {
	case !utf8.ValidString(v.html):
		all = append(all, errors.New("the document is not UTF-8"))
	case len(text) < len(doctype) || !strings.EqualFold(text[:len(doctype)], doctype):
		all = append(all, fmt.Errorf("the document must be whole, and begin with %s>", doctype))
	case strings.Count(v.html, "talaria-app.js") > 1, strings.Contains(v.html, "talaria-app.js") && !strings.Contains(v.html, marker):
		all = append(all, fmt.Errorf("write %s as it stands here, and once", marker))
	}
	return all
}
