package docs_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/go-chi/chi/v5"

	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"
)

func cors(origin string) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			h := w.Header()
			h.Add("Vary", "Origin")
			if r.Header.Get("Origin") == origin {
				h.Set("Access-Control-Allow-Origin", origin)
				h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
				if r.Method == http.MethodOptions {
					h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
					h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, "+
						"Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name")
					w.WriteHeader(http.StatusNoContent)
					return
				}
			}
			next.ServeHTTP(w, r)
		})
	}
}

var database = mcp.NewKey[*sql.DB]("database")

func withDatabase(byTenant map[string]*sql.DB) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			db := byTenant[r.Header.Get("X-Tenant")]
			next.ServeHTTP(w, r.WithContext(database.With(r.Context(), db)))
		})
	}
}

func count(f *mcp.Frame, _ struct{}) (int, error) {
	db, _ := database.Get(f)
	if db == nil {
		return 0, errors.New("there is no such tenant")
	}
	n := 0
	err := db.QueryRowContext(f, "SELECT count(*) FROM notes").Scan(&n)
	return n, err
}

func staticTokens(r chi.Router, s *mcp.Server) error {
	users := map[string]string{"3bf2a71c": "ann"}
	keys := auth.VerifierFunc(func(_ context.Context, token string) (*auth.Identity, error) {
		if user, ok := users[token]; ok {
			return &auth.Identity{Subject: user, Scopes: []string{"notes:read"}}, nil
		}
		return nil, auth.Invalid("the key is unknown")
	})
	protected, err := auth.New("https://notes.example.com/mcp", keys, nil)
	if err != nil {
		return err
	}
	r.With(protected.Bearer).Mount("/mcp", s.Handler())
	return nil
}

// ask sends a request and returns the answer.
func ask(h http.Handler, method string, header map[string]string, body string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/mcp", strings.NewReader(body))
	for name, value := range header {
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

const modernCall = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"count","_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func calling(more ...string) map[string]string {
	header := map[string]string{
		"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "count",
	}
	for i := 0; i < len(more); i += 2 {
		header[more[i]] = more[i+1]
	}
	return header
}

// registerDriver registers the driver, once for all runs of the test.
var registerDriver = sync.OnceFunc(func() { sql.Register("docs", countingDriver{}) })

func TestTransports(t *testing.T) {
	const origin = "https://app.example.com"
	s := mcp.NewServer(mcp.Info{Name: "notes", Version: "1"}, &mcp.Options{AllowedOrigins: []string{origin}})
	s.MustAdd(mcp.Tool("count", count))

	preflight := ask(cors(origin)(s.Handler()), http.MethodOptions, map[string]string{"Origin": origin}, "")
	if preflight.Code != http.StatusNoContent || preflight.Header().Get("Access-Control-Allow-Origin") != origin {
		t.Errorf("%d %v", preflight.Code, preflight.Header())
	}
	foreign := ask(cors(origin)(s.Handler()), http.MethodPost, calling("Origin", "https://evil.example.com"), modernCall)
	if foreign.Code != http.StatusForbidden || foreign.Header().Get("Access-Control-Allow-Origin") != "" {
		t.Errorf("%d %v", foreign.Code, foreign.Header())
	}

	r := chi.NewRouter()
	if err := staticTokens(r, s); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]int{"3bf2a71c": http.StatusOK, "made-up": http.StatusUnauthorized} {
		if got := ask(r, http.MethodPost, calling("Authorization", "Bearer "+token), modernCall); got.Code != want {
			t.Errorf("%s: %d %s", token, got.Code, got.Body)
		}
	}

	registerDriver()
	db, err := sql.Open("docs", "")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h := withDatabase(map[string]*sql.DB{"acme": db})(s.Handler())
	for tenant, want := range map[string]string{"acme": `"text":"42"`, "other": "there is no such tenant"} {
		if got := ask(h, http.MethodPost, calling("X-Tenant", tenant), modernCall); !strings.Contains(got.Body.String(), want) {
			t.Errorf("%s: %s", tenant, got.Body)
		}
	}
}

// countingDriver is a database whose every query has the one result 42.
type (
	countingDriver struct{}
	countingRows   struct{ read bool }
)

func (countingDriver) Open(string) (driver.Conn, error)    { return countingDriver{}, nil }
func (countingDriver) Prepare(string) (driver.Stmt, error) { return countingDriver{}, nil }
func (countingDriver) Begin() (driver.Tx, error)           { return nil, errors.New("no transactions") }
func (countingDriver) Close() error                        { return nil }
func (countingDriver) NumInput() int                       { return 0 }
func (countingDriver) Exec([]driver.Value) (driver.Result, error) {
	return nil, errors.New("nothing to execute")
}
func (countingDriver) Query([]driver.Value) (driver.Rows, error) { return &countingRows{}, nil }
func (*countingRows) Columns() []string                          { return []string{"count"} }
func (*countingRows) Close() error                               { return nil }
func (r *countingRows) Next(row []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read, row[0] = true, int64(42)
	return nil
}
