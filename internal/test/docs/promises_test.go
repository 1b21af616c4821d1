package docs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/protocol"
)

type listed struct {
	Names []string       `json:"names"`
	Ages  map[string]int `json:"ages"`
}

type requiredIn struct {
	Count int    `json:"count" validate:"required"`
	Yes   bool   `json:"yes" validate:"required"`
	Name  string `json:"name,omitempty" validate:"min=3"`
}

// tools.md: nil slices and maps of a result are empty ones.
func TestNilIsEmpty(t *testing.T) {
	mcptest.Each(t, func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(mcp.Tool("list", func(context.Context, struct{}) (listed, error) { return listed{}, nil }))
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		if got := c.Call("list", nil).Text(); got != `{"names":[],"ages":{}}` {
			t.Errorf("%s", got)
		}
	})
}

// tools.md: what the result types give, in revisions with structured content and
// without; errors, masks and panics.
func TestOutcomesOfTools(t *testing.T) {
	for _, mask := range []bool{false, true} {
		mcptest.Each(t, func() *mcp.Server {
			s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &mcp.Options{MaskErrors: mask})
			s.MustAdd(
				mcp.Tool("required", func(_ context.Context, in requiredIn) (requiredIn, error) { return in, nil }),
				mcp.Tool("nothing", func(context.Context, struct{}) (struct{}, error) { return struct{}{}, nil }),
				mcp.Tool("fails", func(context.Context, struct{}) (string, error) { return "", errors.New("account 7 is closed") }),
				mcp.Tool("panics", func(context.Context, struct{}) (string, error) { panic("secret detail") }),
				mcp.Tool("coded", func(context.Context, struct{}) (string, error) {
					return "", errors.Join(mcp.Errorf(mcp.CodeInternal, "the database is down"))
				}),
			)
			return s
		}, func(t *testing.T, c *mcptest.Client) {
			if got := c.Call("required", json.RawMessage(`{"count":0,"yes":false}`)); got.IsError {
				t.Errorf("0 and false: %s", got.Text())
			}
			if got := c.Call("nothing", nil); got.IsError || len(got.Content) != 0 || got.Text() != "" {
				t.Errorf("nothing: %+v", got)
			}
			if got := c.Call("fails", nil); !got.IsError || strings.Contains(got.Text(), "account 7") == mask {
				t.Errorf("masked %t: %q", mask, got.Text())
			}
			for name, want := range map[string]string{"panics": "", "coded": "the database is down"} {
				_, err := c.TryCall(name, nil)
				fault, ok := errors.AsType[*mcp.Error](err)
				if !ok || fault.Code != protocol.CodeInternal || strings.Contains(fault.Message, "secret") || !strings.Contains(fault.Message, want) && !mask {
					t.Errorf("%s: %v", name, err)
				}
			}
		})
	}
}

// asking.md: an answer that does not fit its form is an error, and so is a client
// without the capability.
func TestAskingFaults(t *testing.T) {
	server := func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(
			mcp.Tool("ask", func(f *mcp.Frame, _ struct{}) (string, error) {
				answer, err := mcp.Elicit[Confirm](f, "sure", "Sure?")
				if err != nil {
					return "", err
				}
				if !answer.Accepted() {
					return string(answer.Action), nil
				}
				return "accepted", nil
			}))
		return s
	}
	asked := 0
	mcptest.Each(t, server, func(t *testing.T, c *mcptest.Client) {
		asked = 0
		result, err := c.TryCall("ask", nil)
		if !c.Supports("elicitation") {
			if err != nil || !result.IsError || !strings.Contains(result.Text(), `"elicitation"`) {
				t.Errorf("without the capability: %v, %v", result, err)
			}
			return
		}
		fault, ok := errors.AsType[*mcp.Error](err)
		if !ok || fault.Code != protocol.CodeInvalidParams || !strings.Contains(fault.Message, "/sure: must be true or false") || asked != 1 {
			t.Errorf("asked %d times: %v, %v", asked, result, err)
		}
	}, mcptest.OnElicit(func(context.Context, *client.ElicitParams) (*client.ElicitResult, error) {
		asked++
		return &client.ElicitResult{Action: "accept", Content: json.RawMessage(`{"sure":"maybe"}`)}, nil
	}))
	without := mcptest.New(t, server())
	_, err := without.TryCall("ask", nil)
	if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != -32021 {
		t.Errorf("without the capability: %v", err)
	}
}

// prompts.md and completion.md: arguments that are unknown or missing are -32602;
// enums and booleans complete without an option; a client receives at most 100 values,
// and none for a tool.
func TestPromptPromises(t *testing.T) {
	type picked struct {
		Tone  string `json:"tone" validate:"oneof=calm cheerful"`
		Short bool   `json:"short,omitempty"`
		Word  string `json:"word,omitempty"`
	}
	many := make([]string, 300)
	for i := range many {
		many[i] = fmt.Sprint("word", i)
	}
	mcptest.Each(t, func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(
			mcp.Prompt("struct", func(context.Context, picked) (string, error) { return "ok", nil }, mcp.CompleteFrom("word", many...)),
			stored("map", "Greet {who}", []mcp.PromptArgument{{Name: "who", Required: true}}),
			mcp.Tool("tool", func(context.Context, picked) (string, error) { return "ok", nil }),
		)
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		for _, tt := range []struct {
			name      string
			arguments map[string]string
			good      bool
		}{
			{"struct", map[string]string{"tone": "calm", "short": "true"}, true},
			{"struct", map[string]string{"tone": "calm", "other": "x"}, false},
			{"struct", nil, false},
			{"map", map[string]string{"who": "Ada"}, true},
			{"map", map[string]string{"who": "Ada", "other": "x"}, false},
			{"map", nil, false},
		} {
			_, err := c.TryGetPrompt(tt.name, tt.arguments)
			if fault, ok := errors.AsType[*mcp.Error](err); tt.good && err != nil || !tt.good && (!ok || fault.Code != protocol.CodeInvalidParams) {
				t.Errorf("%s %v: %v", tt.name, tt.arguments, err)
			}
		}
		for argument, want := range map[string][]string{"tone": {"calm", "cheerful"}, "short": {"true", "false"}} {
			got := c.Complete("struct", argument, "", nil)
			if slices.Sort(got); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
				t.Errorf("%s: got %q, want %q", argument, got, want)
			}
		}
		if got := c.Complete("struct", "word", "word", nil); len(got) != 100 {
			t.Errorf("%d values", len(got))
		}
		if got, err := c.TryComplete("tool", "tone", "", nil); err == nil {
			t.Errorf("a tool completes %q", got)
		}
	})
}

// middleware.md: a list is private if its clients may see different ones.
func TestPrivateLists(t *testing.T) {
	all := func(*mcp.Frame, mcp.Kind, string) bool { return true }
	for name, tt := range map[string]struct {
		opts    mcp.Options
		options []mcp.ToolOption
		want    string
	}{
		"no filter":          {mcp.Options{}, nil, "public"},
		"filter":             {mcp.Options{Filter: all}, nil, "private"},
		"filter of one tool": {mcp.Options{}, []mcp.ToolOption{mcp.VisibleTo(func(*mcp.Frame) bool { return true })}, "private"},
	} {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, &tt.opts)
		s.MustAdd(mcp.Tool("tool", func(context.Context, struct{}) (string, error) { return "", nil }, tt.options...))
		var list struct {
			CacheScope string `json:"cacheScope"`
		}
		if err := json.Unmarshal(mcptest.New(t, s).Request(protocol.MethodToolsList, nil), &list); err != nil || list.CacheScope != tt.want {
			t.Errorf("%s: %q, %v; want %q", name, list.CacheScope, err, tt.want)
		}
	}
}

// custom-methods.md: params are not coerced, and names of the specification are errors.
func TestMethodPromises(t *testing.T) {
	type in struct {
		Count int `json:"count"`
	}
	double := func(_ context.Context, in in) (in, error) { in.Count *= 2; return in, nil }
	mcptest.Each(t, func() *mcp.Server {
		s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
		s.MustAdd(mcp.Method("shop/double", double))
		for _, name := range []string{"tools/double", "prompts/double", "server/double", "notifications/double"} {
			if err := s.Add(mcp.Method(name, double)); err == nil {
				t.Errorf("%s is a method", name)
			}
		}
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		if _, err := c.TryRequest("shop/double", map[string]any{"count": 2}); err != nil {
			t.Error(err)
		}
		_, err := c.TryRequest("shop/double", map[string]any{"count": "2"})
		if fault, ok := errors.AsType[*mcp.Error](err); !ok || fault.Code != protocol.CodeInvalidParams {
			t.Errorf("a text for a number: %v", err)
		}
	})
}

// compatibility.md: the table is what Revision.Has reports, and Go is that of go.mod.
func TestCompatibility(t *testing.T) {
	text := page(t, "compatibility.md")
	rows := map[string]string{}
	for line := range strings.Lines(text) {
		if cells := strings.Split(strings.TrimSpace(line), "|"); len(cells) == 8 {
			rows[strings.TrimSpace(cells[1])] = strings.ReplaceAll(strings.Join(cells[2:7], "|"), " ", "")
		}
	}
	for row, features := range map[string][]protocol.Feature{
		"batches":               {protocol.FeatureBatches},
		"hints of tools, audio": {protocol.FeatureToolAnnotations, protocol.FeatureAudioContent},
		"structured content, resource links, titles, elicitation": {protocol.FeatureStructuredContent, protocol.FeatureResourceLinks, protocol.FeatureTitles, protocol.FeatureElicitation},
		"icons, elicitation by URL, tools in sampling, skills":    {protocol.FeatureIcons, protocol.FeatureElicitModes, protocol.FeatureSamplingTools, protocol.FeatureSkills},
		"tasks, cache hints, structured content of any type":      {protocol.FeatureCacheHints, protocol.FeatureAnyStructured},
	} {
		for _, feature := range features {
			var has []string
			for _, rev := range protocol.Revisions() {
				has = append(has, map[bool]string{true: "✓"}[rev.Has(feature)])
			}
			slices.Reverse(has) // the newest comes first
			if got := strings.Join(has, "|"); rows[row] != got {
				t.Errorf("%s: the page has %q, Has reports %q", row, rows[row], got)
			}
		}
	}
	mod, err := os.ReadFile(root + "/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	if _, version, ok := strings.Cut(text, "requires Go "); !ok || !strings.Contains(string(mod), "\ngo "+strings.SplitN(version, ". ", 2)[0]) {
		t.Error("the version of Go is not that of go.mod")
	}
}

// progress.md: a client of 2026-07-28 that closes its HTTP request cancels the call, and a
// call of a session continues.
func TestDisconnectedCalls(t *testing.T) {
	gone, started, ended, release := make(chan bool, 1), make(chan bool, 1), make(chan error, 1), make(chan bool)
	s := mcp.NewServer(mcp.Info{Name: "x", Version: "1"}, nil)
	s.MustAdd(mcp.Tool("wait", func(f *mcp.Frame, _ struct{}) (string, error) {
		started <- true
		select {
		case <-f.Done():
		case <-release:
		}
		ended <- f.Err()
		return "", nil
	}))
	handler := s.Handler()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/call") {
			context.AfterFunc(r.Context(), func() { gone <- true })
		}
		handler.ServeHTTP(w, r)
	}))
	defer server.Close()
	post := func(ctx context.Context, path, session, body string) (http.Header, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Method": {"tools/call"}, "Mcp-Name": {"wait"}, "Mcp-Protocol-Version": {protocol.V20260728.String()}}
		switch {
		case session != "":
			r.Header = http.Header{"Content-Type": r.Header["Content-Type"], "Accept": r.Header["Accept"], "Mcp-Session-Id": {session}, "Mcp-Protocol-Version": {"2025-11-25"}}
		case path != "/call":
			r.Header = http.Header{"Content-Type": r.Header["Content-Type"], "Accept": r.Header["Accept"]}
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.Header, err
	}
	leave := func(session, body string) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			<-started
			cancel()
		}()
		_, err := post(ctx, "/call", session, body)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("the call was not made: %v", err)
		}
		<-gone
	}
	leave("", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"wait","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"a","version":"1"},"io.modelcontextprotocol/clientCapabilities":{}}}}`)
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("the stateless call ended with %v", err)
	}
	headers, err := post(t.Context(), "/", "", `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`)
	if err != nil {
		t.Fatal(err)
	}
	leave(headers.Get("Mcp-Session-Id"), `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"wait"}}`)
	close(release)
	if err := <-ended; err != nil {
		t.Errorf("the call of the session ended with %v", err)
	}
}
