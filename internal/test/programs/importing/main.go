// Command importing has a tool that takes its time, and tells how far it is.
package main

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/talaria-go/mcp"
)

type ImportIn struct {
	Rows int `json:"rows" validate:"min=1,max=1000"`
}

func importRows(f *mcp.Frame, in ImportIn) (string, error) {
	for i := range in.Rows {
		time.Sleep(time.Millisecond)
		if err := f.Progress(float64(i+1), float64(in.Rows), "importing"); err != nil {
			return "", err
		}
	}
	return fmt.Sprint(in.Rows, " rows"), f.Err()
}

func main() {
	s := mcp.NewServer(mcp.Info{Name: "import", Version: "1.0.0"}, nil)
	s.MustAdd(mcp.Tool("import", importRows, mcp.Doc("Imports rows"), mcp.AsTask(nil)))
	if err := s.ServeStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}
