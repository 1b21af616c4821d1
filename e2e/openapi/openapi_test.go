package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/rs/zerolog"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/internal/test/testdep"
	"github.com/talaria-go/mcp/mcptest"
	"github.com/talaria-go/mcp/openapi"
)

const base = "https://api.example.com"

// recorder keeps the request in place of sending it.
type recorder struct {
	mu   sync.Mutex
	last *http.Request
	body []byte
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last, r.body = req, nil
	if req.Body != nil {
		var err error
		if r.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	return &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

var expressions sync.Map

func matches(pattern, text string) bool {
	re, ok := expressions.Load(pattern)
	if !ok {
		compiled, err := regexp.Compile(pattern)
		if err != nil {
			return false
		}
		re, _ = expressions.LoadOrStore(pattern, compiled)
	}
	return re.(*regexp.Regexp).MatchString(text)
}

// tally counts what became of operations and requests.
type tally struct {
	documents, operations, tools, left, refused, requests, invalid, unread int
	excused                                                                [8]int // by the index in unable
	why                                                                    map[string]int
	example                                                                map[string]string
}

func (c *tally) note(kind, text, where string) {
	text = kind + " " + regexp.MustCompile(`"[^"]*"|[0-9]+`).ReplaceAllString(strings.SplitN(text, "\n", 2)[0], "…")
	text = text[:min(len(text), 150)]
	c.why[text]++
	c.example[text] = where
}

// TestPublished: of each published document nearly all operations become tools, and the
// requests for random arguments are valid by the document.
func TestPublished(t *testing.T) {
	dir := testdep.Env(t, "E2E_OPENAPI", "e2e/run openapi installs the documents")
	every := 1
	if n, err := strconv.Atoi(os.Getenv("E2E_EVERY")); err == nil {
		every = n
	}
	c := &tally{why: map[string]int{}, example: map[string]string{}}
	n := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".json" || strings.Contains(path, ".deref.") {
			return err
		}
		if n++; n%every != 0 {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		document(t, c, strings.TrimPrefix(path, dir), text)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d documents, %d operations, %d tools, %d left out; %d calls refused; %d requests, %d invalid; the judge refused %d documents",
		c.documents, c.operations, c.tools, c.left, c.refused, c.requests, c.invalid, c.unread)
	var all []string
	for text, n := range c.why {
		all = append(all, fmt.Sprintf("%6d %s | %s", n, text, c.example[text]))
	}
	slices.Sort(all)
	slices.Reverse(all)
	for _, line := range all[:min(len(all), 60)] {
		t.Log(line)
	}
	for i, u := range unable {
		t.Logf("%6d excused, %d of a million: %s", c.excused[i], c.excused[i]*1_000_000/max(1, c.requests), u.why)
		if c.excused[i]*1_000_000 > u.most*c.requests {
			t.Errorf("more than %d requests of a million are excused: %s", u.most, u.why)
		}
	}
	if c.documents == 0 || c.left*1000 > c.operations {
		t.Errorf("%d of %d operations are left out", c.left, c.operations)
	}
	if c.requests == 0 || c.invalid*1000 > c.requests {
		t.Errorf("%d of %d requests are invalid", c.invalid, c.requests)
	}
}

// unable are the errors of what the judge cannot check, with the most requests of a
// million that may have one. A request with such an error counts as valid.
var unable = []struct {
	why  string
	text *regexp.Regexp
	most int
}{
	{"it does not tell which alternative of lists, forms and files is meant", regexp.MustCompile("doesn't match any schema from"), 1000},
	{"it reads lists in the style deepObject as objects, and so do documents", regexp.MustCompile(`invalid serialization method: style="deepObject"|schema: value must be an object`), 3000},
	{"it does not take null beside allOf", regexp.MustCompile("Value is not nullable"), 1000},
	{"the pattern is not one of Go", regexp.MustCompile("error parsing regexp"), 8000},
	{"it does not read XML, parts of multipart and other forms of a body", regexp.MustCompile("unsupported content type|unsupported schema of request body"), 15000},
	{"it does not read lists of objects in parameters", regexp.MustCompile("schema has non primitive type"), 15000},
	{"a variable stands behind the ? of the path", regexp.MustCompile("in path has an error: value is required but missing"), 1000},
	{"OpenAPI ignores the parameter", regexp.MustCompile(`parameter "(?i:Accept|Authorization|Content-[a-z]+)" in header`), 25000},
}

// excuse returns the index of the entry of unable that err has; -1 without one.
func excuse(err error) int {
	for i, u := range unable {
		if u.text.MatchString(err.Error()) {
			return i
		}
	}
	return -1
}

// document makes tools of one document and calls each.
func document(t *testing.T, c *tally, name string, text []byte) {
	var head struct {
		OpenAPI string
		Servers json.RawMessage
	}
	if json.Unmarshal(text, &head) != nil || !strings.HasPrefix(head.OpenAPI, "3.") {
		return
	}
	c.documents++
	sent := &recorder{}
	of := map[string]openapi.Operation{}
	var keys struct {
		Components struct {
			SecuritySchemes map[string]struct{ Type, In, Name string }
		}
	}
	_ = json.Unmarshal(text, &keys) // schemes of other forms are no keys
	tools, problems, err := openapi.Tools(text, &openapi.Options{Server: base, Client: &http.Client{Transport: sent},
		Auth: func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
			for _, k := range keys.Components.SecuritySchemes {
				switch {
				case k.Type == "apiKey" && k.In == "header":
					r.Header.Set(k.Name, "key")
				case k.Type == "apiKey" && k.In == "query":
					r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+url.QueryEscape(k.Name)+"=key", "&")
				}
			}
			return nil
		},
		Include: func(op openapi.Operation) bool { c.operations++; return true },
		Tool: func(op openapi.Operation) []mcp.ToolOption {
			of[op.Method+" "+op.Path] = op
			return []mcp.ToolOption{mcp.Meta("example.com/op", op.Method+" "+op.Path)}
		}})
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	c.tools += len(tools)
	for _, p := range problems {
		if p.LeftOut && !strings.Contains(p.Text, "another origin") && !strings.Contains(p.Text, "TRACE") {
			c.left++
			c.note("LEFT OUT", p.Text, name+p.Pointer)
		}
	}
	log := zerolog.Nop()
	s := mcp.NewServer(mcp.Info{Name: "api", Version: "1"}, &mcp.Options{Logger: &log, PageSize: 10_000})
	if err := s.Add(tools...); err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = false
	judge, err := loader.LoadFromData(text)
	if err != nil {
		c.unread++
		return
	}
	client := mcptest.New(t, s)
	defer client.Close()
	for _, tool := range client.Tools() {
		op := of[tool.Meta["example.com/op"].(string)]
		d := json.NewDecoder(bytes.NewReader(tool.InputSchema))
		d.UseNumber()
		var root tree
		if err := d.Decode(&root); err != nil {
			t.Fatal(err)
		}
		for i := range 3 {
			g := &generator{rand.New(rand.NewPCG(uint64(len(op.Path)), uint64(i))), root}
			args, err := json.Marshal(g.value(root, 0))
			if err != nil {
				t.Fatal(err)
			}
			sent.last = nil
			r, err := client.TryCall(tool.Name, mcptest.Raw(args))
			if err != nil || r.IsError || sent.last == nil {
				c.refused++
				continue
			}
			c.requests++
			if err := valid(t, judge, op, sent); err != nil {
				if i := excuse(err); i >= 0 {
					c.excused[i]++
					continue
				}
				c.invalid++
				c.note("INVALID", fmt.Sprintf("%T %v", err, err), name+" "+op.Method+" "+op.Path+" "+sent.last.URL.RequestURI()+fmt.Sprintf(" %.300s", sent.body))
			}
		}
	}
}

// valid returns what kin-openapi has against a request.
func valid(t *testing.T, judge *openapi3.T, op openapi.Operation, sent *recorder) error {
	// The judge takes an empty form for no body, and wants an object as a text for one that
	// the document describes so.
	kind := sent.last.Header.Get("Content-Type")
	// A GET has no body, whatever the document says.
	noBody := op.Method == http.MethodGet || strings.HasPrefix(kind, "text/plain") || len(sent.body) == 0 && kind == "application/x-www-form-urlencoded"
	item := judge.Paths.Value(op.Path)
	if item == nil || item.GetOperation(op.Method) == nil {
		return fmt.Errorf("the judge has no such operation")
	}
	req := sent.last.Clone(t.Context())
	req.Body = io.NopCloser(bytes.NewReader(sent.body))
	path, _, _ := strings.Cut(op.Path, "#")
	path, _, _ = strings.Cut(path, "?")
	names := regexp.MustCompile(`\{([^{}]*)\}`).FindAllStringSubmatch(path, -1)
	pattern := regexp.MustCompile(`\\\{[^{}]*\\\}`).ReplaceAllString(regexp.QuoteMeta((&url.URL{Path: path}).Path), `([^/]*)`)
	params := map[string]string{}
	found := regexp.MustCompile(pattern + "$").FindStringSubmatch(req.URL.EscapedPath())
	if found == nil && len(names) > 0 {
		return nil // the path has characters that are escaped
	}
	for i, m := range names {
		var err error
		if params[m[1]], err = url.PathUnescape(found[i+1]); err != nil {
			return err
		}
	}
	return openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, QueryParams: req.URL.Query(),
		Route:   &routers.Route{Spec: judge, Path: op.Path, PathItem: item, Method: op.Method, Operation: item.GetOperation(op.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, ExcludeRequestBody: noBody},
	})
}
