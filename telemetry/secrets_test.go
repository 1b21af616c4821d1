package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	mcpgateway "github.com/talaria-go/mcp/gateway"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// text returns all that c was told, as text.
func (c *collector) text(t testing.TB) string {
	t.Helper()
	var b strings.Builder
	for _, span := range c.spans.Ended() {
		fmt.Fprintln(&b, span.Name(), text(span.Attributes()), span.Status(), span.Events(), span.Links())
	}
	for name, m := range c.metrics(t) {
		fmt.Fprintln(&b, name, m)
	}
	return b.String()
}

// login has secrets wherever a type can have them.
type login struct {
	User     string `json:"user"`
	Password string `json:"password" mcp:"secret" validate:"min=4"`
	Pin      int    `json:"pin,omitempty" mcp:"secret" validate:"max=9999"`
	Keys     []struct {
		Name string `json:"name"`
		Key  string `json:"key" mcp:"secret"`
	} `json:"keys,omitempty"`
	Vault map[string]string `json:"vault,omitempty" mcp:"secret"`
}

// FuzzSecrets: what clients put into secret fields, and what handlers say of it in
// errors and panics, is in no span and no metric; what the library itself writes to
// the log has none of it either.
func FuzzSecrets(f *testing.F) {
	for _, seed := range []string{`"x"`, `17`, `{"a":["x"]}`, `[[1],"x"]`, `null`, `"` + strings.Repeat("y", 300) + `"`} {
		for way := range uint8(6) {
			f.Add(seed, way)
		}
	}
	const marker = "Ma2k8dQz"
	var log bytes.Buffer
	logger := zerolog.New(&log)
	s := mcp.NewServer(mcp.Info{Name: "vault", Version: "1"}, &mcp.Options{Logger: &logger})
	s.MustAdd(
		mcp.Tool("login", func(_ *mcp.Frame, in login) (string, error) { return in.Password, nil }),
		mcp.Tool("refuse", func(_ *mcp.Frame, in login) (string, error) { return "", fmt.Errorf("%s is wrong", in.Password) }),
		mcp.Tool("code", func(_ *mcp.Frame, in login) (string, error) {
			return "", &mcp.Error{Code: mcp.CodeBusy, Message: in.Password, Err: errors.New(in.Password)}
		}),
		mcp.Tool("panic", func(_ *mcp.Frame, in login) (string, error) { panic(in.Password) }),
		mcp.Prompt("login", func(_ *mcp.Frame, in struct {
			Password string `json:"password" mcp:"secret" validate:"max=2"`
		}) (string, error) {
			return in.Password, nil
		}),
	)
	told := newCollector()
	c := mcptest.New(f, told.watch(f, s, nil))
	f.Fuzz(func(t *testing.T, value string, way uint8) {
		if !json.Valid([]byte(value)) {
			value = `"` + marker + `"`
		}
		value = strings.ReplaceAll(value, `"x`, `"`+marker)
		before := log.Len()
		secrets := fmt.Sprintf(`{"user":"ann","password":%[1]s,"pin":%[1]s,"keys":[{"name":"a","key":%[1]s}],"vault":{"%[2]s":%[1]s}}`, value, marker)
		good := fmt.Sprintf(`{"user":"ann","password":"%[1]s","keys":[{"name":"a","key":"%[1]s"}],"vault":{"a":"%[1]s"}}`, marker)
		switch way % 6 {
		case 0:
			_, _ = c.TryRequest("tools/call", rawText(`{"name":"login","arguments":`+good+`}`))
		case 1:
			_, _ = c.TryRequest("tools/call", rawText(`{"name":"login","arguments":`+secrets+`}`))
		case 2:
			_, _ = c.TryRequest("tools/call", rawText(`{"name":"refuse","arguments":`+good+`}`))
		case 3:
			_, _ = c.TryRequest("tools/call", rawText(`{"name":"code","arguments":`+good+`}`))
		case 4:
			_, _ = c.TryRequest("tools/call", rawText(`{"name":"panic","arguments":`+good+`}`))
		case 5:
			_, _ = c.TryRequest("prompts/get", rawText(`{"name":"login","arguments":{"password":"`+marker+`"}}`))
		}
		if all := told.text(t); strings.Contains(all, marker) {
			t.Errorf("the secret was told:\n%.500s", all[max(0, strings.Index(all, marker)-200):])
		}
		told.spans.Reset()
		// What a handler panics with is its own, and is logged.
		if said := log.String()[before:]; way%6 != 4 && strings.Contains(said, marker) {
			t.Errorf("the log has the secret: %s", said)
		}
	})
}

// FuzzAddresses: the keys of an API and of an upstream of a gateway, in their addresses and
// headers, are in no span, no metric and no line of the log, whatever the two answer.
func FuzzAddresses(f *testing.F) {
	const marker = "Ma2k8dQz7Fp0"
	f.Add("not valid: %s", 500)
	f.Add(`{"jsonrpc":"2.0","error":{"code":-32000,"message":"bad key %s"}}`, 400)
	f.Add("", 307)
	f.Add("%s", 200)
	f.Fuzz(func(t *testing.T, body string, status int) {
		if status < 200 || status > 599 {
			return
		}
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://elsewhere.example"+r.URL.String())
			w.WriteHeader(status)
			_, _ = fmt.Fprint(w, strings.ReplaceAll(body, "%s", fmt.Sprint(r.URL, r.Header)))
		}))
		defer web.Close()
		address := "http://ann:" + marker + "@" + web.Listener.Addr().String() + "/v1?key=" + marker
		log := &logText{}
		logger := zerolog.New(log)
		s := mcp.NewServer(mcp.Info{Name: "front", Version: "1"}, &mcp.Options{Logger: &logger})
		tools, _, err := openapi.Tools([]byte(`{"openapi":"3.1.0","paths":{"/x":{"get":{"operationId":"get"},"post":{"operationId":"post"}}}}`), &openapi.Options{Server: address,
			Auth: func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
				r.URL.RawQuery = "key=" + marker
				return nil
			}})
		if err != nil {
			t.Fatal(err)
		}
		s.MustAdd(tools...)
		g := mcpgateway.New(s, nil)
		defer func() { _ = g.Close() }()
		to := client.HTTP(address, &client.HTTPOptions{Header: http.Header{"X-Api-Key": {marker}}})
		if err := g.Set("up", mcpgateway.Upstream{For: func(*mcp.Frame) (string, client.Transport, error) { return "ada", to, nil }}); err != nil {
			t.Fatal(err)
		}
		told := newCollector()
		c := mcptest.New(t, told.watch(t, s, nil), mcptest.Timeout(500*time.Millisecond))
		for _, name := range []string{"get", "post", "up_x"} {
			if r, err := c.TryCall(name, nil); strings.Contains(fmt.Sprintf("%v %+v", err, r), marker) {
				t.Errorf("%s: the key was answered: %v %+v", name, err, r)
			}
		}
		if all := told.text(t) + log.String(); strings.Contains(all, marker) {
			t.Errorf("the key was told:\n%.500s", all[max(0, strings.Index(all, marker)-200):])
		}
	})
}
