package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/talaria-go/mcp/protocol"
)

// play is one scenario.
type play struct {
	scenario string
	url      string // of the MCP server
	revision protocol.Revision
	context  knowledge
}

// knowledge is what scenarios tell the client.
type knowledge struct {
	ClientID     string `json:"client_id"`
	ClientSecret string `json:"client_secret"`
	PrivateKey   string `json:"private_key_pem"`
	IDPClientID  string `json:"idp_client_id"`
	IDPToken     string `json:"idp_id_token"`
	IDPIssuer    string `json:"idp_issuer"`
	IDPEndpoint  string `json:"idp_token_endpoint"`
	WorkloadJWT  string `json:"valid_jwt"`

	ToolCalls []toolCall `json:"toolCalls"`
}

// scenarios says what to do, by the beginning of a scenario's name. The longest
// that fits counts.
var scenarios = map[string]func(context.Context, play) error{
	"auth/":                   authorize,
	"auth/pre-registration":   authorizeRegistered,
	"auth/client-credentials": authorizeMachine,
	"auth/enterprise-managed": authorizeEmployee,
	"auth/wif":                authorizeWorkload,
	"auth/dpop":               authorizeBound,

	"initialize":                          useEverything,
	"tools_call":                          useEverything,
	"elicitation-sep1034-client-defaults": useEverything,
	"sse-retry":                           useEverything,
	"request-metadata":                    useEverything,
	"sep-2322-client-request-state":       useEverything,
	"http-standard-headers":               useEverything,
	"http-invalid-tool-headers":           useEverything,
	"http-custom-headers":                 callAsTold,
	"json-schema-ref-no-deref":            listOnly,
	"json-schema-2020-12-preservation":    echoSchema,
	"sep-2640-client-no-prefetch":         listSkills,
	"sep-2640-client-verify":              loadSkills,
}

// runClient plays one scenario of the suite at the server whose address is the argument.
// Environment variables say which scenario, in which revision, and what the client has
// beforehand. Some scenarios expect an error.
func runClient(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: programs client URL")
	}
	p := play{
		scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"),
		url:      args[0],
	}
	name, known := os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"), false
	if p.revision, known = protocol.ParseRevision(name); !known {
		return fmt.Errorf("unknown revision %q in MCP_CONFORMANCE_PROTOCOL_VERSION", name)
	}
	if text := os.Getenv("MCP_CONFORMANCE_CONTEXT"); text != "" {
		if err := json.Unmarshal([]byte(text), &p.context); err != nil {
			return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
		}
	}
	found := ""
	for prefix := range scenarios {
		if strings.HasPrefix(p.scenario, prefix) && len(prefix) > len(found) {
			found = prefix
		}
	}
	if found == "" {
		return fmt.Errorf("unknown scenario %q in MCP_CONFORMANCE_SCENARIO", p.scenario)
	}
	ctx, cancel := context.WithTimeout(ctx, 25*time.Second)
	defer cancel()
	return scenarios[found](ctx, p)
}
