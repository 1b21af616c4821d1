package origin

import (
	"net/http"
	"strings"
	"testing"
)

func TestStatusError(t *testing.T) {
	tests := []struct{ name, body, want string }{
		{"nothing", "", "the server answered with HTTP status 404 Not Found"},
		{"blank", " \n", "the server answered with HTTP status 404 Not Found"},
		{"text", "404 page\n not found\n", "the server answered with HTTP status 404 Not Found: 404 page not found"},
		{"page", "<!DOCTYPE html>\n<HTML><head>\n<Title> Error\n response </Title></head>…", `the server answered with HTTP status 404 Not Found: a page with the title "Error response"`},
		{"page without a title", "<p>No</p>", "the server answered with HTTP status 404 Not Found: <p>No</p>"},
		{"title without an end", "<title>x", "the server answered with HTTP status 404 Not Found: <title>x"},
		{"long", strings.Repeat("é", 200), "the server answered with HTTP status 404 Not Found: " + strings.Repeat("é", 100) + "…"},
		{"cut in a character", "x" + strings.Repeat("é", 200), "the server answered with HTTP status 404 Not Found: x" + strings.Repeat("é", 99) + "…"},
	}
	for _, tt := range tests {
		if got := (&StatusError{Code: http.StatusNotFound, Body: []byte(tt.body)}).Error(); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}
