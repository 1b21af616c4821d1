package app

import (
	"errors"
	"fmt"
	"strings"

	"github.com/talaria-go/mcp/internal/wire"
)

// viewMeta is the member "ui" in the _meta of a view. Both its entry in lists and
// what is read have it, since hosts look at either.
type viewMeta struct {
	CSP         *origins     `json:"csp,omitempty"`
	Permissions *permissions `json:"permissions,omitempty"`
	Domain      string       `json:"domain,omitempty"`
	Border      *bool        `json:"prefersBorder,omitempty"`
}

// origins are those that a host allows by its Content-Security-Policy.
type origins struct {
	Connect   []string `json:"connectDomains,omitempty"`
	Resources []string `json:"resourceDomains,omitempty"`
	Frames    []string `json:"frameDomains,omitempty"`
	Bases     []string `json:"baseUriDomains,omitempty"`
}

// permissions are what browsers ask their user for.
type permissions struct {
	Camera         *struct{} `json:"camera,omitempty"`
	Microphone     *struct{} `json:"microphone,omitempty"`
	Geolocation    *struct{} `json:"geolocation,omitempty"`
	ClipboardWrite *struct{} `json:"clipboardWrite,omitempty"`
}

// meta returns the _meta of the view; nil if it asks for nothing.
func (v view) meta() (map[string]any, error) {
	var faults []error
	for _, list := range []struct {
		name    string
		origins []string
	}{{"Connect", v.Connect}, {"Resources", v.Resources}, {"Frames", v.Frames}, {"Bases", v.Bases}} {
		for _, origin := range list.origins {
			if err := wire.CheckViewOrigin(origin, list.name == "Connect"); err != nil {
				faults = append(faults, fmt.Errorf("%s: %.80q: %w", list.name, origin, err))
			}
		}
	}
	if v.Domain != "" {
		if err := wire.CheckViewHost(strings.TrimPrefix(v.Domain, "https://")); err != nil {
			faults = append(faults, fmt.Errorf("%s: %.80q: %w", "Domain", v.Domain, err))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	ui := viewMeta{Domain: v.Domain, Border: v.Border}
	if len(v.Connect)+len(v.Resources)+len(v.Frames)+len(v.Bases) > 0 {
		ui.CSP = &origins{v.Connect, v.Resources, v.Frames, v.Bases}
	}
	if v.Camera || v.Microphone || v.Geolocation || v.ClipboardWrite {
		ui.Permissions = &permissions{asked(v.Camera), asked(v.Microphone), asked(v.Geolocation), asked(v.ClipboardWrite)}
	}
	if ui == (viewMeta{}) {
		return nil, nil
	}
	return map[string]any{wire.MetaUI: ui}, nil
}

// asked returns what says that something is asked for.
func asked(yes bool) *struct{} {
	if !yes {
		return nil
	}
	return &struct{}{}
}
