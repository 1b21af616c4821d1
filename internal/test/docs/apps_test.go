package docs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type Rolled struct {
	Dice []int `json:"dice"`
	Sum  int   `json:"sum"`
}

func dice(page string) (*mcp.Server, error) {
	s := mcp.NewServer(mcp.Info{Name: "dice", Version: "1.0.0"}, &mcp.Options{ListTTL: time.Hour, ListPublic: true})
	return s, s.Add(
		app.View("ui://dice/table", page, &app.ViewOptions{Title: "Dice"}),
		mcp.Tool("roll", roll, app.Show("ui://dice/table"),
			mcp.Text(func(out Rolled) string { return fmt.Sprintf("Rolled %v: %d in all.", out.Dice, out.Sum) })),
		mcp.Tool("roll_again", roll, app.ViewOnly()),
	)
}

func mapView(page string) mcp.Component {
	return app.View("ui://travel/map", page, &app.ViewOptions{
		Connect:     []string{"https://api.example.com", "wss://live.example.com"}, // fetch, WebSocket
		Resources:   []string{"https://*.tiles.example.com"},                       // scripts, styles, images, fonts, media
		Geolocation: true,
	})
}

func roll(context.Context, struct{}) (Rolled, error) { return Rolled{[]int{3, 5}, 8}, nil }

// The page of the page is served with the script, and what it says of tools, errors
// and bytes is so.
func TestApps(t *testing.T) {
	text := page(t, "apps.md")
	html := blocks(text, "html")[0]
	s, err := dice(html)
	if err != nil {
		t.Fatal(err)
	}
	s.MustAdd(mapView(html))
	plain := mcptest.New(t, s)
	if got := plain.Call("roll", nil); got.Text() != "Rolled [3 5]: 8 in all." || string(got.Value) != `{"dice":[3,5],"sum":8}` {
		t.Errorf("got %s", got.Raw)
	}
	if _, err := plain.TryCall("roll_again", nil); err == nil {
		t.Error("roll_again is there for a client without views")
	}
	host := mcptest.New(t, s, mcptest.Capabilities(protocol.ClientCapabilities{Extensions: map[string]json.RawMessage{
		"io.modelcontextprotocol/ui": json.RawMessage(`{"mimeTypes":["text/html;profile=mcp-app"]}`),
	}}))
	if r := host.Call("roll_again", nil); r.IsError {
		t.Errorf("got %s", r.Raw)
	}
	for _, uri := range []string{"ui://dice/table", "ui://travel/map"} {
		served := host.Read(uri)[0].Text
		for _, member := range []string{"on", "callTool", "request", "ready"} {
			if !strings.Contains(text, "`talaria."+member) || !strings.Contains(served, "\t"+member) {
				t.Errorf("%s: the script has no %s, or the page no word of it", uri, member)
			}
		}
		for _, name := range []string{"tool-input", "tool-input-partial", "tool-result", "tool-cancelled", "context", "teardown"} {
			if !strings.Contains(text, "`"+name+"`") {
				t.Errorf("the page has no word of %s", name)
			}
		}
	}
	for _, bad := range []string{"https://api.example.com/path", "https://127.0.0.1", "https://localhost", "https://*.com", "'self'"} {
		if err := s.Add(app.View("ui://dice/bad", html, &app.ViewOptions{Connect: []string{bad}})); err == nil {
			t.Errorf("%s is no error", bad)
		}
	}
}
