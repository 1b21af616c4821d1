package wire

import (
	"testing"
)

func TestCheckWebURL(t *testing.T) {
	for address, ok := range map[string]bool{
		"https://example.com/pay?a=b#c": true, "http://127.0.0.1:8080": true, "HTTPS://EXAMPLE.COM": true, "http://[::1]/": true,
		"": false, "example.com": false, "/pay": false, "//example.com/pay": false, "https:": false, "https:///pay": false,
		"https://:443/": false, "https:example.com": false, "https://user@example.com": false, "https://google.com:x@example.com": false,
		"javascript:alert(1)": false, "javascript://example.com/%0aalert(1)": false, "data:text/html,x": false, "data://example.com/x": false,
		"file:///etc/passwd": false, "file://example.com/x": false, "ftp://example.com": false, "vscode://example.com": false,
		"https://example.com/\x1b]8;;": false, "https://exa mple.com": false, "java\nscript:x": false, "ws://example.com": false,
	} {
		if err := CheckWebURL(address); (err == nil) != ok {
			t.Errorf("%q: %v, want it to pass: %v", address, err, ok)
		}
	}
}
