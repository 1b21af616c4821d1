package docs_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type Confirm struct {
	Sure bool `json:"sure" jsonschema_description:"there is no way back"`
}

func remove(f *mcp.Frame, in RemoveIn) (string, error) {
	answer, err := mcp.Elicit[Confirm](f, "sure", "Delete "+in.Name+"?")
	if err != nil {
		return "", err
	}
	if !answer.Accepted() || !answer.Value.Sure {
		return "nothing was deleted", nil
	}
	return "deleted", os.Remove(in.Name)
}

func order(f *mcp.Frame, in OrderIn) (string, error) {
	number, err := mcp.Once(f, "number", func() (int, error) { return reserve(in.Item) })
	if err != nil {
		return "", err
	}
	answer, err := mcp.Elicit[Confirm](f, "sure", fmt.Sprintf("Order %s as number %d?", in.Item, number))
	if err != nil {
		return "", err
	}
	if !answer.Value.Sure {
		return "not ordered", nil
	}
	return fmt.Sprintf("ordered as number %d", number), nil
}

type (
	RemoveIn struct {
		Name string `json:"name"`
	}
	OrderIn struct {
		Item string `json:"item"`
	}
	Size struct {
		Size string `json:"size" validate:"oneof=S M L"`
	}
)

var reserved int

func reserve(string) (int, error) {
	reserved++
	return reserved, nil
}

func choose(f *mcp.Frame, _ struct{}) (string, error) {
	var size mcp.Elicited[Size]
	var terms mcp.Elicited[struct{}]
	err := mcp.Ask(f,
		mcp.ElicitQuestion("size", "Which size?", &size),
		mcp.URLQuestion("terms", "Please read the terms", "https://shop.example.com/terms", &terms),
	)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(size.Value.Size, terms.Accepted()), nil
}

// Every question is answered in legacy and modern revisions, and what is in Once runs once.
func TestAsking(t *testing.T) {
	for _, revision := range []protocol.Revision{protocol.V20251125, protocol.V20260728} {
		t.Run(revision.String(), func(t *testing.T) {
			reserved = 0
			s := mcp.NewServer(mcp.Info{Name: "asking", Version: "1"}, nil)
			s.MustAdd(mcp.Tool("remove", remove), mcp.Tool("order", order), mcp.Tool("choose", choose))
			c := mcptest.New(t, s, mcptest.Revision(revision), mcptest.OnElicit(func(_ context.Context, q *client.ElicitParams) (*client.ElicitResult, error) {
				switch {
				case q.Mode == "url":
					return client.Accept(nil)
				case q.Message == "Which size?":
					return client.Accept(Size{"M"})
				}
				return client.Accept(Confirm{Sure: true})
			}))
			name := filepath.Join(t.TempDir(), "a.txt")
			if err := os.WriteFile(name, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := c.Call("remove", RemoveIn{name}).Text(); got != "deleted" {
				t.Errorf("got %q", got)
			}
			if _, err := os.Stat(name); err == nil {
				t.Error("the file is still there")
			}
			if got := c.Call("order", OrderIn{"tea"}).Text(); got != "ordered as number 1" {
				t.Errorf("got %q", got)
			}
			if got := c.Call("choose", nil).Text(); got != "Mtrue" && got != "M true" {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A client that cannot be asked is told what it lacks.
func TestAskingNobody(t *testing.T) {
	s := mcp.NewServer(mcp.Info{Name: "asking", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("remove", remove))
	if _, err := mcptest.New(t, s).TryCall("remove", RemoveIn{"a"}); err == nil || !strings.Contains(err.Error(), "elicitation") {
		t.Errorf("got %v", err)
	}
}
