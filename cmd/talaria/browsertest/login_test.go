package browsertest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// TestLoginPages: axe finds nothing in the pages of auth/broker, in light and in dark, and
// they fit into 320 pixels. Their text and HTML is held by a test of that package.
func TestLoginPages(t *testing.T) {
	t.Parallel()
	const broker = "../../../auth/broker/"
	axe, err := os.ReadFile(filepath.Join(testdep.Env(t, "E2E_MODULES", "e2e/run inspector sets it"), "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatal(err)
	}
	style, err := os.ReadFile(broker + "pages.css")
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(broker + "testdata/*.html")
	if err != nil || len(files) < 8 {
		t.Fatalf("the pages are %q, %v", files, err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, err := os.ReadFile(broker + "testdata/" + filepath.Base(r.URL.Path) + ".html")
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(strings.Replace(string(page), "</head>", "<style>"+string(style)+"</style></head>", 1)))
	}))
	t.Cleanup(server.Close)
	b := newTab(t)
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".html")
		t.Run(name, func(t *testing.T) {
			b := b.in(t)
			b.open(server.URL + "/" + name)
			for _, width := range []int64{1280, 320} {
				b.do(chromedp.EmulateViewport(width, 900))
				b.judge(string(axe), 10, func(string) {})
				b.wide()
			}
			b.do(chromedp.EmulateViewport(1280, 900))
			if *screens != "" {
				(&screen{}).shoot(b)
			}
		})
	}
}
