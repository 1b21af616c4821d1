package harness

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/talaria-go/mcp"
)

func ServeHTTP(t *testing.T, opts *mcp.Options) *httptest.Server {
	t.Helper()
	server := httptest.NewServer(Fixture(t, opts).Handler())
	t.Cleanup(server.Close)
	return server
}

func PostJSON(t *testing.T, url string, body io.Reader, length int64) (status int, answer string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPost, url, body)
	if err != nil {
		t.Fatal(err)
	}
	req.ContentLength = length
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}
