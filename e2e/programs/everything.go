package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/protocol"
)

// toolCall is a call that a scenario asks for.
type toolCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// open connects as a client of the play's revision that knows the older ones
// too, and can be asked for everything.
func open(ctx context.Context, p play) (*client.Client, error) {
	var revisions []protocol.Revision
	for _, rev := range protocol.Revisions() {
		if rev <= p.revision {
			revisions = append(revisions, rev)
		}
	}
	return client.Connect(ctx, client.HTTP(p.url, nil), &client.Options{
		Info:      protocol.Implementation{Name: "talaria-conformance", Version: "1.0.0"},
		Revisions: revisions,
		Roots:     []protocol.Root{},
		Elicit: func(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
			return client.Accept(nil) // with the defaults of the form
		},
		Sample: func(context.Context, *protocol.SampleParams) (*protocol.SampleResult, error) {
			return nil, errors.New("there is no model")
		},
	})
}

// useEverything uses whatever the server offers.
func useEverything(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	return errors.Join(callTools(ctx, c), readResources(ctx, c), getPrompts(ctx, c), c.Close())
}

// listOnly lists the tools and does no more.
func listOnly(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	for _, err := range c.Tools(ctx) {
		if err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

// callTools calls every tool, with arguments that fit its schema.
func callTools(ctx context.Context, c *client.Client) error {
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return missing(err)
		}
		arguments, err := sample(tool.InputSchema)
		if err != nil {
			return fmt.Errorf("tool %s: %w", tool.Name, err)
		}
		if _, err := c.Call(ctx, tool.Name, arguments); err != nil {
			return err
		}
	}
	return nil
}

// sample makes arguments for an object of plain values.
func sample(schema json.RawMessage) (map[string]any, error) {
	var object struct {
		Properties map[string]struct {
			Type    string `json:"type"`
			Default any    `json:"default"`
		} `json:"properties"`
	}
	if err := json.Unmarshal(schema, &object); err != nil {
		return nil, err
	}
	arguments := map[string]any{}
	for name, property := range object.Properties {
		switch {
		case property.Default != nil:
			arguments[name] = property.Default
		case property.Type == "number", property.Type == "integer":
			arguments[name] = 2
		case property.Type == "boolean":
			arguments[name] = true
		case property.Type == "string":
			arguments[name] = "text"
		}
	}
	return arguments, nil
}

func readResources(ctx context.Context, c *client.Client) error {
	for resource, err := range c.Resources(ctx) {
		if err != nil {
			return missing(err)
		}
		if _, err := c.Read(ctx, resource.URI); err != nil {
			return err
		}
	}
	return nil
}

func getPrompts(ctx context.Context, c *client.Client) error {
	for prompt, err := range c.Prompts(ctx) {
		if err != nil {
			return missing(err)
		}
		arguments := map[string]string{}
		for _, a := range prompt.Arguments {
			arguments[a.Name] = "text"
		}
		if _, err := c.GetPrompt(ctx, prompt.Name, arguments); err != nil {
			return err
		}
	}
	return nil
}

// missing lets pass that a server has no such list.
func missing(err error) error {
	if errors.Is(err, client.ErrUnsupported) {
		return nil
	}
	return err
}

// callAsTold makes the calls that the scenario asks for, of tools that it knows.
func callAsTold(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	for _, err := range c.Tools(ctx) {
		if err != nil {
			return errors.Join(err, c.Close())
		}
	}
	for _, call := range p.context.ToolCalls {
		if _, err := c.Call(ctx, call.Name, call.Arguments); err != nil {
			return errors.Join(err, c.Close())
		}
	}
	return c.Close()
}

// echoSchema sends the schema of a tool back as it came.
func echoSchema(ctx context.Context, p play) error {
	c, err := open(ctx, p)
	if err != nil {
		return err
	}
	var schema json.RawMessage
	for tool, err := range c.Tools(ctx) {
		if err != nil {
			return errors.Join(err, c.Close())
		}
		if tool.Name == "json_schema_2020_12_tool" {
			schema = tool.InputSchema
		}
	}
	if schema == nil {
		return errors.Join(errors.New("the tool is not there"), c.Close())
	}
	_, err = c.Call(ctx, "json_schema_echo", map[string]json.RawMessage{"schema": schema})
	return errors.Join(err, c.Close())
}
