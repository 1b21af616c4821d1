// Command client is the everything-client of the official conformance suite.
//
//	client URL
//
// The suite says by environment variables which scenario it plays, in which
// revision, and what the client knows beforehand. The command exits with 1 if
// the scenario ends in an error, which some scenarios want.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/signal"
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
}

func run() error {
	if len(os.Args) != 2 {
		return fmt.Errorf("usage: client URL")
	}
	p := play{
		scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"),
		url:      os.Args[1],
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
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt)
	defer cancel()
	ctx, cancelTime := context.WithTimeout(ctx, 25*time.Second)
	defer cancelTime()
	return scenarios[found](ctx, p)
}
