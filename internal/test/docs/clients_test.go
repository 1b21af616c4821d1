package docs_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/client/group"
	"github.com/talaria-go/mcp/client/pool"
	"github.com/talaria-go/mcp/mcptest"
)

type Place struct {
	City string `json:"city"`
}

type Forecast struct {
	Degrees int `json:"degrees"`
}

func oslo(ctx context.Context, url string) (Forecast, error) {
	c, err := client.Connect(ctx, client.HTTP(url, nil), &client.Options{Elicit: askUser})
	if err != nil {
		return Forecast{}, err
	}
	defer c.Close()
	for tool, err := range c.Tools(ctx) { // all pages of them
		if err != nil {
			return Forecast{}, err
		}
		fmt.Println(tool.Name, tool.Description)
	}
	return client.Call[Forecast](ctx, c, "forecast", Place{City: "Oslo"}, client.Timeout(time.Minute))
}

func askUser(ctx context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
	fmt.Println(q.Message)
	return client.Decline()
}

func connectPinned(ctx context.Context, url string) (*client.Client, error) {
	lock, err := client.ReadLock("mcp.lock")
	if err != nil {
		return nil, err
	}
	return client.Connect(ctx, client.HTTP(url, nil), &client.Options{Pin: lock})
}

func pooled(ctx context.Context, url string) (Forecast, error) {
	p := pool.New(client.HTTP(url, nil), &pool.Options{Size: 8})
	defer p.Close()
	return client.Call[Forecast](ctx, p, "forecast", Place{City: "Oslo"})
}

func many(ctx context.Context, name string) (Forecast, error) {
	file, err := config.Read(name, nil)
	if err != nil {
		return Forecast{}, err
	}
	g := group.New(nil)
	defer g.Close()
	if err := g.AddConfig(file, nil); err != nil {
		log.Print(err) // says what is wrong with some of them; the others work
	}
	return client.Call[Forecast](ctx, g, "weather_forecast", Place{City: "Oslo"})
}

func TestClients(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("forecast", func(f *mcp.Frame, in Place) (Forecast, error) {
		return Forecast{len(in.City)}, nil
	}))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	file := filepath.Join(t.TempDir(), ".mcp.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"mcpServers":{"weather":{"url":%q}}}`, web.URL), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, use := range map[string]func() (Forecast, error){
		"one":  func() (Forecast, error) { return oslo(t.Context(), web.URL) },
		"pool": func() (Forecast, error) { return pooled(t.Context(), web.URL) },
		"many": func() (Forecast, error) { return many(t.Context(), file) },
	} {
		if got, err := use(); err != nil || got.Degrees != 4 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestPinned(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "weather", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("forecast", func(f *mcp.Frame, in Place) (Forecast, error) { return Forecast{len(in.City)}, nil }))
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	t.Chdir(t.TempDir())
	if _, err := connectPinned(t.Context(), web.URL); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("without a lock: %v", err)
	}
	t.Setenv("MCPTEST_UPDATE", "1")
	mcptest.New(t, s).Golden("mcp.lock")
	c, err := connectPinned(t.Context(), web.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := client.Call[Forecast](t.Context(), c, "forecast", Place{City: "Oslo"}); err != nil {
		t.Error(err)
	}
	s.MustAdd(mcp.Tool("exfiltrate", func(*mcp.Frame, struct{}) (string, error) { return "", nil }))
	if _, err := c.Call(t.Context(), "exfiltrate", nil); !errors.Is(err, client.ErrChanged) {
		t.Errorf("a new tool: %v", err)
	}
}
