package frame_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// try connects to a server in this process, and calls its tools one after the
// other.
func try(to client.Transport, opts *client.Options, tools ...string) {
	c, err := client.Connect(context.Background(), to, opts)
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, tool := range tools {
		r, err := c.Call(context.Background(), tool, nil, client.OnProgress(func(p client.Progress) {
			fmt.Printf("%v of %v: %s\n", p.Progress, p.Total, p.Message)
		}))
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(r.Text())
	}
}

// What a handler keeps under a key is there in the next call of the session.
func ExampleKey() {
	type Cart struct{ Items []string }
	cartKey := mcp.NewKey[Cart]("cart")

	s := mcp.NewServer(mcp.Info{Name: "shop", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("add_apple", func(f *mcp.Frame, _ struct{}) (string, error) {
		cart := cartKey.Update(f, func(c Cart) Cart {
			c.Items = append(c.Items, "apple")
			return c
		})
		return fmt.Sprintf("%d in the cart", len(cart.Items)), nil
	}))
	// Revisions before 2026-07-28 have sessions.
	try(client.Local(s.ServeConn), &client.Options{Revisions: []protocol.Revision{protocol.V20251125}}, "add_apple", "add_apple")
	// Output:
	// 1 in the cart
	// 2 in the cart
}

func ExampleFrame_Progress() {
	s := mcp.NewServer(mcp.Info{Name: "files", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("import", func(f *mcp.Frame, _ struct{}) (string, error) {
		rows := []string{"a", "b"}
		for i, row := range rows {
			// ... work on the row ...
			if err := f.Progress(float64(i+1), float64(len(rows)), "row "+row); err != nil {
				return "", err // the client is gone
			}
		}
		return "done", nil
	}))
	try(client.Local(s.ServeConn), nil, "import")
	// Output:
	// 1 of 2: row a
	// 2 of 2: row b
	// done
}

func ExampleFrame_Log() {
	s := mcp.NewServer(mcp.Info{Name: "files", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("import", func(f *mcp.Frame, _ struct{}) (string, error) {
		_ = f.Log(protocol.LevelDebug, "the client does not want this")
		_ = f.Log(protocol.LevelWarning, map[string]int{"retries": 3}, "db")
		return "done", nil
	}))
	heard := make(chan client.LogEntry, 1)
	c, err := client.Connect(context.Background(), client.Local(s.ServeConn), &client.Options{
		LogLevel: protocol.LevelInfo,
		OnLog:    func(l client.LogEntry) { heard <- l },
	})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Call(context.Background(), "import", nil); err != nil {
		log.Fatal(err)
	}
	l := <-heard
	fmt.Println(l.Level, l.Logger, l.Text())
	// Output: warning db {"retries":3}
}

// HTTP middleware gives handlers a value for the one request.
func ExampleKey_With() {
	user := mcp.NewKey[string]("user")
	authenticate := func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			next.ServeHTTP(w, r.WithContext(user.With(r.Context(), "ada")))
		})
	}

	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("whoami", func(f *mcp.Frame, _ struct{}) (string, error) {
		name, _ := user.Get(f)
		return name, nil
	}))
	web := httptest.NewServer(authenticate(s.Handler()))
	defer web.Close()
	try(client.HTTP(web.URL, nil), nil, "whoami")
	// Output: ada
}
