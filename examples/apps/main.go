// Apps is a server whose results hosts can show as pages of its own: it rolls dice.
// It serves standard input and output.
//
//	talaria call "go run ./examples/apps" roll count=3
package main

import (
	"context"
	_ "embed"
	"fmt"
	"log"
	"math/rand/v2"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/app"
)

//go:embed dice.html
var page string

// view is where hosts find the page.
const view = "ui://dice/table"

type Roll struct {
	Count int `json:"count,omitempty" validate:"min=1,max=6" jsonschema:"default=2" jsonschema_description:"how many dice"`
}

type Rolled struct {
	Dice []int `json:"dice"`
	Sum  int   `json:"sum"`
}

func roll(_ context.Context, in Roll) (out Rolled, err error) {
	for range in.Count {
		die := rand.IntN(6) + 1
		out.Dice, out.Sum = append(out.Dice, die), out.Sum+die
	}
	return out, nil
}

func newServer() (*mcp.Server, error) {
	s := mcp.NewServer(mcp.Info{Name: "dice", Version: "1.0.0"}, nil)
	text := mcp.Text(func(out Rolled) string { return fmt.Sprintf("Rolled %v: %d in all.", out.Dice, out.Sum) })
	return s, s.Add(
		app.View(view, page, &app.ViewOptions{Title: "Dice"}),
		mcp.Tool("roll", roll, app.Show(view), text, mcp.Doc("Rolls dice")),
		// The button of the page calls this one. The user's throw is not for the model.
		mcp.Tool("roll_again", roll, app.ViewOnly(), text),
	)
}

func main() {
	s, err := newServer()
	if err != nil {
		log.Fatal(err)
	}
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
