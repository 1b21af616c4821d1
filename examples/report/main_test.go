package main

import (
	"errors"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
)

func TestReport(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server {
		return newServer(func(city string) (string, error) {
			if city == "Atlantis" {
				return "", errors.New("it has sunk")
			}
			return "rain", nil
		})
	}, func(t *testing.T, c *mcptest.Client) {
		r := c.Call("report", ReportIn{[]string{"Paris", "Atlantis"}})
		if r.Text() != "Paris: rain\nAtlantis: not known: it has sunk\n" {
			t.Error(r.Text())
		}
	})
}
