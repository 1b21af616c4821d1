package config_test

import (
	"fmt"
	"log"

	"github.com/talaria-go/mcp/client/config"
)

func ExampleParse() {
	file, err := config.Parse("mcp.json", []byte(`{
		"mcpServers": {
			"files":   {"command": "mcp-server-files", "args": ["${workspaceFolder}"]},
			"tickets": {"url": "https://tickets.example.com/mcp", "headers": {"Authorization": "Bearer ${env:TICKETS_TOKEN}"}},
			"old":     {"command": "mcp-server-old", "disabled": true}
		}
	}`), &config.Options{
		Workspace: "/home/ada/project",
		Env:       func(string) (string, bool) { return "", false },
	})
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range file.Servers {
		fmt.Println(s.Name, s.Type, s.Args, s.Disabled)
	}
	fmt.Println(file.Err())
	// Output:
	// files stdio [/home/ada/project] false
	// tickets http [] false
	// old  [] true
	// mcp.json: server "tickets": headers.Authorization: the environment has no TICKETS_TOKEN; set it, or write ${env:TICKETS_TOKEN:-default}
}
