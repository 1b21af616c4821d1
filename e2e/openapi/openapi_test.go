package openapi

import (
	"bytes"
	"encoding/json"
	"errors"
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
	documents, operations, tools, left, refused, requests, unread int
	judges                                                        []judge
	why                                                           map[string]int
	example                                                       map[string]string
}

// judge is a validator of requests, and how many errors it found.
type judge struct {
	name            string
	unable          []excuse
	excused         []int // by the index in unable
	invalid, unread int
}

// excuse is an error that a judge reports for requests that it cannot check. Such a request
// counts as valid, and at most that many of a million may be.
type excuse struct {
	why  string
	text *regexp.Regexp
	most int
}

// judge counts err for the validator i, unless it is nil.
func (c *tally) judge(i int, err error, where string) {
	if err == nil {
		return
	}
	j := &c.judges[i]
	if at := slices.IndexFunc(j.unable, func(e excuse) bool { return e.text.MatchString(err.Error()) }); at >= 0 {
		j.excused[at]++
		return
	}
	j.invalid++
	c.note("INVALID", fmt.Sprintf("by %s: %v", j.name, err), where)
}

func (c *tally) note(kind, text, where string) {
	text = kind + " " + regexp.MustCompile(`"[^"]*"|[0-9]+`).ReplaceAllString(strings.SplitN(text, "\n", 2)[0], "…")
	text = text[:min(len(text), 150)]
	c.why[text]++
	c.example[text] = where
}

// seed chooses other documents of a sample, and other arguments.
func seed() uint64 {
	n, _ := strconv.ParseUint(os.Getenv("E2E_SEED"), 10, 16) // 0 without one
	return n
}

// TestPublished: of each published document nearly all operations become tools, and the
// requests for random arguments are valid by the document.
func TestPublished(t *testing.T) {
	dir := testdep.Env(t, "E2E_OPENAPI", "e2e/run openapi installs the documents")
	every := 1
	if n, err := strconv.Atoi(os.Getenv("E2E_EVERY")); err == nil {
		every = n
	}
	c := &tally{why: map[string]int{}, example: map[string]string{}, judges: []judge{{name: "kin-openapi", unable: unable}, {name: "libopenapi-validator", unable: unableSecond}}}
	for i := range c.judges {
		c.judges[i].excused = make([]int, len(c.judges[i].unable))
	}
	n := int(seed())
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
	t.Logf("%d documents, %d operations, %d tools, %d left out; %d calls refused; %d requests; the judge refused %d documents",
		c.documents, c.operations, c.tools, c.left, c.refused, c.requests, c.unread)
	var all []string
	for text, n := range c.why {
		all = append(all, fmt.Sprintf("%6d %s | %s", n, text, c.example[text]))
	}
	slices.Sort(all)
	slices.Reverse(all)
	for _, line := range all[:min(len(all), 60)] {
		t.Log(line)
	}
	for _, j := range c.judges {
		t.Logf("%s: %d invalid, %d not judged", j.name, j.invalid, j.unread)
		for i, u := range j.unable {
			t.Logf("%6d excused, %d of a million: %s", j.excused[i], j.excused[i]*1_000_000/max(1, c.requests), u.why)
			if j.excused[i]*1_000_000 > u.most*c.requests {
				t.Errorf("%s: more than %d requests of a million are excused: %s", j.name, u.most, u.why)
			}
		}
		if c.requests == 0 || j.invalid*1000 > c.requests {
			t.Errorf("%s: %d of %d requests are invalid", j.name, j.invalid, c.requests)
		}
		if j.unread*100 > c.requests*2 {
			t.Errorf("%s: %d of %d requests are not judged", j.name, j.unread, c.requests)
		}
	}
	if c.documents == 0 || c.left*1000 > c.operations {
		t.Errorf("%d of %d operations are left out", c.left, c.operations)
	}
}

// unable are the excuses of kin-openapi.
var unable = []excuse{
	{"it does not tell which alternative of lists, forms and files is meant", regexp.MustCompile("doesn't match any schema from"), 1000},
	{"it reads lists in the style deepObject as objects, and so do documents", regexp.MustCompile(`invalid serialization method: style="deepObject"|schema: value must be an object`), 3000},
	{"it does not take null beside allOf", regexp.MustCompile("Value is not nullable"), 1000},
	{"the pattern is not one of Go", regexp.MustCompile("error parsing regexp"), 8000},
	{"it does not read XML, parts of multipart and other forms of a body", regexp.MustCompile("unsupported content type|unsupported schema of request body"), 15000},
	{"it does not read lists of objects in parameters", regexp.MustCompile("schema has non primitive type"), 15000},
	{"a variable stands behind the ? of the path", regexp.MustCompile("in path has an error: value is required but missing"), 1000},
	{"it reads no value of a parameter whose schema has no type", regexp.MustCompile(errUntyped.Error()), 5000},
	{"nothing in the path tells where one of two variables ends", regexp.MustCompile(errAdjacent.Error()), 1000},
	{"OpenAPI ignores the parameter", regexp.MustCompile(`parameter "(?i:Accept|Authorization|Content-[a-z]+)" in header`), 25000},
}

// errUntyped and errAdjacent are errors for requests that a validator and a server read
// differently.
var (
	errUntyped  = errors.New("the judge finds a value empty that is not")
	errAdjacent = errors.New("variables of the path have nothing between them")
)

// credentials returns an Options.Auth that has what the security schemes of a document want.
func credentials(text []byte) func(*mcp.Frame, openapi.Operation, *http.Request) error {
	var keys struct {
		Components struct {
			SecuritySchemes map[string]struct{ Type, In, Name, Scheme string }
		}
	}
	_ = json.Unmarshal(text, &keys) // keys has no schemes of other forms
	return func(_ *mcp.Frame, _ openapi.Operation, r *http.Request) error {
		for _, k := range keys.Components.SecuritySchemes {
			switch {
			case k.Type == "apiKey" && k.In == "header":
				r.Header.Set(k.Name, "key")
			case k.Type == "apiKey" && k.In == "query":
				r.URL.RawQuery = strings.TrimPrefix(r.URL.RawQuery+"&"+url.QueryEscape(k.Name)+"=key", "&")
			case k.Type == "http" && strings.EqualFold(k.Scheme, "basic"):
				r.SetBasicAuth("ann", "password")
			case k.Type != "apiKey":
				r.Header.Set("Authorization", "Bearer token")
			}
		}
		return nil
	}
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
	tools, problems, err := openapi.Tools(text, &openapi.Options{Server: base, Client: &http.Client{Transport: sent},
		Auth:    credentials(text),
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
	other := newSecond(text)
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
			g := &generator{rand.New(rand.NewPCG(uint64(len(op.Path))+seed(), uint64(i))), root}
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
			where := name + " " + op.Method + " " + op.Path + " " + sent.last.URL.RequestURI() + fmt.Sprintf(" %.300s", sent.body)
			c.judge(0, valid(t, judge, op, sent), where)
			if other == nil {
				c.judges[1].unread++
				continue
			}
			c.judge(1, other.valid(op, sent), where)
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
	pattern := regexp.MustCompile(`\\\{[^{}]*\\\}`).ReplaceAllString(regexp.QuoteMeta((&url.URL{Path: path}).Path), `([^/]*?)`)
	params := map[string]string{}
	if strings.Contains(path, "}{") {
		return errAdjacent
	}
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
	err := openapi3filter.ValidateRequest(t.Context(), &openapi3filter.RequestValidationInput{
		Request: req, PathParams: params, QueryParams: req.URL.Query(),
		Route:   &routers.Route{Spec: judge, Path: op.Path, PathItem: item, Method: op.Method, Operation: item.GetOperation(op.Method)},
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, SkipSettingDefaults: true, ExcludeRequestBody: noBody},
	})
	fault, ok := errors.AsType[*openapi3filter.RequestError](err)
	if ok && errors.Is(err, openapi3filter.ErrInvalidEmptyValue) && strings.Join(req.URL.Query()[fault.Parameter.Name], "") != "" {
		return errUntyped
	}
	return err
}
