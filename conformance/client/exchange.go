package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// useTools is a session in short.
func useTools(ctx context.Context, p play, hc *http.Client) error {
	x := &exchange{p: p, hc: hc}
	if p.revision < "2026" {
		if err := x.do(ctx, "initialize", map[string]any{"protocolVersion": p.revision, "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "t", "version": "1"}}, true); err != nil {
			return err
		}
		if err := x.do(ctx, "notifications/initialized", nil, false); err != nil {
			return err
		}
	}
	if err := x.do(ctx, "tools/list", map[string]any{}, true); err != nil {
		return err
	}
	return x.do(ctx, "tools/call", map[string]any{"name": "test-tool", "arguments": map[string]any{}}, true)
}

type exchange struct {
	p  play
	hc *http.Client
	id int
}

func (x *exchange) do(ctx context.Context, method string, params map[string]any, call bool) error {
	msg := map[string]any{"jsonrpc": "2.0", "method": method}
	if call {
		x.id++
		msg["id"] = x.id
	}
	if x.p.revision >= "2026" {
		params["_meta"] = map[string]any{
			"io.modelcontextprotocol/protocolVersion":    x.p.revision,
			"io.modelcontextprotocol/clientInfo":         map[string]any{"name": "t", "version": "1"},
			"io.modelcontextprotocol/clientCapabilities": map[string]any{},
		}
	}
	if params != nil {
		msg["params"] = params
	}
	text, _ := json.Marshal(msg)
	req, err := http.NewRequestWithContext(ctx, "POST", x.p.url, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	if x.p.revision >= "2025-06-18" && method != "initialize" {
		req.Header.Set("MCP-Protocol-Version", x.p.revision)
	}
	if x.p.revision >= "2026" {
		req.Header.Set("Mcp-Method", method)
		if name, ok := params["name"].(string); ok {
			req.Header.Set("Mcp-Name", name)
		}
	}
	resp, err := x.hc.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, _ := io.ReadAll(resp.Body)
	if resp.StatusCode/100 != 2 {
		return fmt.Errorf("%s: HTTP %d: %s", method, resp.StatusCode, body)
	}
	return nil
}
