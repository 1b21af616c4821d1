// Command config has a resource, and a template with typed variables.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/talaria-go/mcp"
)

type Config struct {
	Debug bool `json:"debug"`
}

type User struct {
	ID   int    `json:"id" validate:"min=1"`
	Lang string `json:"lang,omitempty" validate:"oneof=en de"`
}

func readConfig(ctx context.Context) (Config, error) { return Config{Debug: true}, nil }

func readUser(ctx context.Context, in User) (User, error) {
	if in.ID > 9 {
		return in, fmt.Errorf("user %d: %w", in.ID, mcp.ErrNotFound)
	}
	return in, nil
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "config", Version: "1.0.0"}, nil)
	s.MustAdd(
		mcp.Resource("config://app", readConfig),
		mcp.Template("users://{id}{?lang}", readUser, mcp.Name("user"), mcp.CompleteFrom("id", "7", "8")))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
