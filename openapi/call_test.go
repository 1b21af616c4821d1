package openapi_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

// Code of users that panics, or ends its goroutine, costs the call alone.
func TestAuthThatDoesNotReturn(t *testing.T) {
	api := newRecorder(t)
	for name, end := range map[string]func(){"panic": func() { panic("secret of the panic") }, "exit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			bad := true
			spring := func() {
				if bad {
					end()
				}
			}
			for where, o := range map[string]*openapi.Options{
				"Auth":   {Server: api.URL, Auth: func(*mcp.Frame, openapi.Operation, *http.Request) error { spring(); return nil }},
				"Client": {Server: api.URL, Client: &http.Client{Transport: trip(func(r *http.Request) (*http.Response, error) { spring(); return http.DefaultTransport.RoundTrip(r) })}},
			} {
				c, _ := serve(t, document(operation("", ""), ""), o)
				bad = true
				if _, err := c.TryCall("op", nil); err == nil || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s: %v", where, err)
				}
				bad = false
				if r := c.Call("op", nil); r.IsError {
					t.Errorf("%s: after that: %s", where, r.Text())
				}
			}
		})
	}
}

// trip is an http.RoundTripper.
type trip func(*http.Request) (*http.Response, error)

func (f trip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// Auth runs last, for each attempt, and its error is that of the tool.
func TestAuth(t *testing.T) {
	api := newRecorder(t)
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/x" {
			http.Redirect(w, r, "/y", http.StatusFound)
		}
	}
	n := 0
	var fail error
	doc := document(`"/x":{"get":{"operationId":"op","parameters":[{"name":"X-Key","in":"header","schema":{"type":"string"}}]}}`, "")
	c, _ := serve(t, doc, &openapi.Options{Server: api.URL, Auth: func(f *mcp.Frame, op openapi.Operation, r *http.Request) error {
		n++
		r.Header.Set("X-Key", fmt.Sprint(op.ID, n, f.Request().Params.Name, f.Principal()))
		return fail
	}})
	c.Call("op", mcptest.Raw(`{"X-Key":"of the model"}`))
	var got []string
	for _, r := range api.seen {
		got = append(got, r.uri+" "+r.header.Get("X-Key"))
	}
	if s := strings.Join(got, ", "); s != "/x op1op, /y op2op" {
		t.Error(s)
	}
	api.last()
	fail = errors.New("no token for you")
	if r := c.Call("op", nil); !r.IsError || r.Text() != "no token for you" || api.last().method != "" {
		t.Error(r.Text())
	}
	fail = &mcp.Error{Code: -32042, Message: "log in"}
	if _, err := c.TryCall("op", nil); err == nil || !strings.Contains(err.Error(), "log in") {
		t.Error(err)
	}
}

// Nothing of the incoming request is forwarded, and keys of security schemes are no
// arguments.
func TestNothingForwarded(t *testing.T) {
	api := newRecorder(t)
	doc := document(operation(`{"name":"api_key","in":"query","required":true,"schema":{"type":"string"}},
		{"name":"q","in":"query","schema":{"type":"string"}}`, ""), `{"securitySchemes":{"k":{"type":"apiKey","in":"query","name":"api_key"}}}`)
	tools, _, err := openapi.Tools([]byte(doc), &openapi.Options{Server: api.URL})
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, nil)
	s.MustAdd(tools...)
	c := mcptest.New(t, s, mcptest.OverHTTP(), mcptest.Header("Authorization", "Bearer incoming"), mcptest.Header("Cookie", "incoming=1"), mcptest.Header("X-Incoming", "1"))
	c.Call("op", mcptest.Raw(`{"q":"x"}`))
	got := api.last()
	if got.uri != "/x?q=x" || strings.Contains(strings.ToLower(fmt.Sprint(got.header)), "incoming") {
		t.Errorf("%s with %v", got.uri, got.header)
	}
	if r := c.Call("op", mcptest.Raw(`{"api_key":"k"}`)); !r.IsError {
		t.Error("the key is an argument")
	}
}

// Calls of two principals at the same time: each has its own credentials.
func TestCallers(t *testing.T) {
	api := newRecorder(t)
	api.answer = func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = fmt.Fprint(w, r.Header.Get("Who"), " ", r.URL.Query().Get("who"))
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openapi.Tools([]byte(petstore), &openapi.Options{Client: &http.Client{Jar: jar}}); err == nil {
		t.Error("a jar is accepted")
	}
	doc := document(`"/x":{"get":{"operationId":"op","parameters":[{"name":"who","in":"query","schema":{"type":"string"}}]}}`, "")
	tools, _, err := openapi.Tools([]byte(doc), &openapi.Options{Server: api.URL, Auth: func(f *mcp.Frame, _ openapi.Operation, r *http.Request) error {
		r.Header.Set("Who", strings.TrimPrefix(f.Principal(), "test|"))
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, nil)
	s.MustAdd(tools...)
	var wg sync.WaitGroup
	for _, who := range []string{"ann", "bob"} {
		c := mcptest.New(t, s, mcptest.As(mcp.Identity{Subject: who}), mcptest.OverHTTP())
		for lane := range 4 {
			wg.Go(func() {
				for i := range 250 {
					want := fmt.Sprint(who, lane, "-", i)
					r, err := c.TryCall("op", map[string]string{"who": want})
					if err != nil || !strings.Contains(r.Text(), who+" "+want) {
						t.Errorf("%s: %v, %v", want, r, err)
						return
					}
				}
			})
		}
	}
	wg.Wait()
}

// A call that takes longer than the timeout of the client ends, and so does one that is
// cancelled.
func TestTimeout(t *testing.T) {
	c, _ := serve(t, document(operation("", ""), ""), &openapi.Options{Server: "http://api.example.com", Client: &http.Client{Timeout: 1, Transport: trip(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, context.Cause(r.Context())
	})}})
	if r := c.Call("op", nil); !r.IsError || r.Text() != "POST http://api.example.com/x: no answer within 1ns" {
		t.Error(r.Text())
	}
}
