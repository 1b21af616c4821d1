package openapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

const petstore = `
openapi: "3.0.0"
info: {title: Swagger Petstore, version: 1.0.0}
servers:
  - url: http://petstore.example.com/v1
paths:
  /pets:
    get:
      summary: List all pets
      operationId: listPets
      tags: [pets]
      parameters:
        - {name: limit, in: query, description: How many items to return, schema: {type: integer, maximum: 100, default: 20}}
        - {name: tags, in: query, style: form, explode: false, schema: {type: array, items: {type: string}}}
      responses:
        200: {description: ok}
    post:
      summary: Create a pet
      operationId: createPets
      requestBody:
        required: true
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Pet"}
  /pets/{petId}:
    parameters:
      - {name: petId, in: path, required: true, schema: {type: string}}
    get: {operationId: showPetById, summary: Info for a specific pet}
    delete: {operationId: deletePet}
components:
  schemas:
    Pet:
      type: object
      required: [id, name]
      properties:
        id: {type: integer, format: int64}
        name: {type: string}
        tag: {type: string, nullable: true}
        created: {type: string, readOnly: true}
        parent: {$ref: "#/components/schemas/Pet"}
`

func TestPetstore(t *testing.T) {
	api := newRecorder(t)
	mcptest.Each(t, func() *mcp.Server {
		tools, problems, err := openapi.Tools([]byte(petstore), &openapi.Options{Server: api.URL + "/v1/"})
		if err != nil || len(problems) > 0 {
			t.Fatal(problems, err)
		}
		s := mcp.NewServer(mcp.Info{Name: "pets", Version: "1"}, nil)
		if err := s.Add(tools...); err != nil {
			t.Fatal(err)
		}
		return s
	}, func(t *testing.T, c *mcptest.Client) {
		for _, tt := range []struct{ tool, args, want, body string }{
			{"listPets", `{}`, "GET /v1/pets", ""},
			{"listPets", `{"limit":"5","tags":["a","b c,d"]}`, "GET /v1/pets?limit=5&tags=a,b%20c%2Cd", ""},
			{"createPets", `{"id":1,"name":"x","tag":null,"parent":{"id":2,"name":"y"}}`, "POST /v1/pets", `{"id":1,"name":"x","parent":{"id":2,"name":"y"},"tag":null}`},
			{"showPetById", `{"petId":"a/b%"}`, "GET /v1/pets/a%2Fb%25", ""},
			{"deletePet", `{"petId":"7"}`, "DELETE /v1/pets/7", ""},
		} {
			result := c.Call(tt.tool, mcptest.Raw(tt.args))
			got := api.last()
			if result.IsError || got.method+" "+got.uri != tt.want || got.body != tt.body {
				t.Errorf("%s %s: %s %s %s; %s", tt.tool, tt.args, got.method, got.uri, got.body, result.Text())
			}
		}
		for _, args := range []string{`{"limit":101}`, `{"limit":1,"more":2}`} {
			if result := c.Call("listPets", mcptest.Raw(args)); !result.IsError || api.last().method != "" {
				t.Errorf("%s was sent: %s", args, result.Text())
			}
		}
	})
}

// Hints, titles and descriptions come from the document, and options change them.
func TestDefinitions(t *testing.T) {
	c, _ := serve(t, petstore, &openapi.Options{
		Include: func(op openapi.Operation) bool { return op.ID != "createPets" },
		Name:    func(op openapi.Operation) string { return strings.TrimSuffix("pet."+op.ID, "pet.deletePet") },
		Tool: func(op openapi.Operation) []mcp.ToolOption {
			if op.Method == "DELETE" {
				return []mcp.ToolOption{mcp.Doc("Deletes.")}
			}
			return nil
		},
	})
	var got []string
	for _, tool := range c.Tools() {
		h := tool.Annotations
		line := tool.Name + "|" + tool.Title + "|" + tool.Description
		if h.ReadOnlyHint != nil {
			line += "|read-only"
		}
		if h.IdempotentHint != nil {
			line += "|idempotent"
		}
		if h.DestructiveHint != nil {
			line += "|destructive"
		}
		if h.OpenWorldHint == nil || !*h.OpenWorldHint {
			line += "|closed"
		}
		got = append(got, line)
	}
	want := "deletePet||Deletes.|idempotent|destructive\npet_listPets|List all pets|List all pets|read-only\npet_showPetById|Info for a specific pet|Info for a specific pet|read-only"
	if s := strings.Join(got, "\n"); s != want {
		t.Errorf("got\n%s\nwant\n%s", s, want)
	}
}

// A document or options that cannot be used at all are an error.
func TestRefused(t *testing.T) {
	jar := &http.Client{Jar: noJar{}}
	for _, tt := range []struct {
		doc  string
		o    *openapi.Options
		want string
	}{
		{``, nil, "openapi: the document cannot be read: "},
		{`{`, nil, "openapi: the document cannot be read: "},
		{`[1]`, nil, `openapi: its member openapi is "": it must be a version 3`},
		{`{"openapi":"4.0.0"}`, nil, `openapi: its member openapi is "4.0.0": it must be a version 3`},
		{`{"swagger":"2.0"}`, nil, "openapi: the document is Swagger 2.0: convert it to OpenAPI 3 first"},
		{`{"openapi":"3.1.0","paths":{}}`, nil, "openapi: the document has no servers: say Options.Server"},
		{`{"openapi":"3.1.0","servers":[{"url":"/v2"}]}`, nil, `openapi: servers[0] is "/v2": say Options.Server`},
		{`{"openapi":"3.1.0","servers":[{"url":"https://{host}/"}]}`, nil, "has a variable without a default: say Options.Server"},
		{`{"openapi":"3.1.0","servers":[{"url":"ftp://x/"}]}`, nil, "is not the address of an HTTP server"},
		{petstore, &openapi.Options{Server: "nowhere"}, "is not the address of an HTTP server"},
		{petstore, &openapi.Options{Client: jar}, "openapi: Client has a cookie jar, which callers would share"},
		{strings.Repeat(`{"a":`, 100_000), nil, "nested deeper than"},
		{strings.Repeat("[", 100_000), nil, "nested deeper than"},
		{"a: " + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000), nil, "nested deeper than"},
		{"a: " + strings.Repeat("[", 100_000), nil, "openapi: the document cannot be read: "},
		{"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: [*c,*c,*c,*c,*c,*c,*c,*c,*c]\n", nil, "more than 1000 aliases"},
		{"a: &a [*a]\n", nil, "openapi: the document cannot be read: "},
		{"? [a]\n: b\n", nil, "a key must be a text"},
	} {
		tools, _, err := openapi.Tools([]byte(tt.doc), tt.o)
		if err == nil || !strings.Contains(err.Error(), tt.want) || tools != nil {
			t.Errorf("%.60q: %d tools, %v; want %q", tt.doc, len(tools), err, tt.want)
		}
	}
}

// noJar is a cookie jar.
type noJar struct{ http.CookieJar }
