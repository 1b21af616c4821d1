package inspector

import (
	"fmt"
	"strings"
	"testing"
)

// TestBrokenContent: a broken item of a result hides no other: what came is there, with the
// places of what is wrong.
func TestBrokenContent(t *testing.T) {
	good := strings.Repeat(`{"type":"text","text":"good"},`, 9)
	for _, revision := range []string{"2026-07-28", "2025-11-25"} {
		for _, c := range []struct{ name, kind, result, state, paths string }{
			{"unknown type", "tool", `"content":[` + good + `{"type":"video","data":"x"}]`, "invalid", "/content/9"},
			{"no base64", "tool", `"content":[{"type":"image","mimeType":"image/png","data":"%%"},` + good + `{"type":"text","text":"last"}]`, "invalid", "/content/0"},
			{"a size that is none", "tool", `"content":[` + good + `{"type":"resource_link","uri":"x://y","name":"y","size":"big"}]`, "invalid", "/content/9"},
			{"two", "tool", `"content":[{"type":7},` + good + `null]`, "invalid", "/content/0 /content/10"},
			{"no content", "tool", `"structuredContent":{"good":1}`, "invalid", ""},
			{"content is an object", "tool", `"content":{"good":1}`, "invalid", ""},
			{"isError is a text", "tool", `"content":[` + good + `{"type":"text","text":"x"}],"isError":"no"`, "invalid", ""},
			{"all good", "tool", `"content":[` + good + `{"type":"text","text":"x"}]`, "done", ""},
			{"p", "prompt", `"messages":[{"role":"user","content":{"type":"text","text":"good"}},{"role":"user","content":{"type":"video"}}]`, "invalid", "/messages/1"},
			{"p", "prompt", `"messages":[{"role":"user","content":{"type":"text","text":"good"}}]`, "done", ""},
			{"x://y", "resource", `"contents":[{"uri":"x://y","text":"good"},{"uri":"x://y","blob":"%%"},{"text":"z"},{"uri":"x://y"}]`, "invalid", "/contents/1 /contents/2 /contents/3"},
			{"x://y", "resource", `"contents":[{"uri":"x://y","text":"good"},{"uri":"x://y","blob":""}]`, "done", ""},
		} {
			more := `"resultType":"complete","ttlMs":0,"cacheScope":"private",`
			i := inspect(t, scripted(revision, map[string]string{
				"tools/list":           `{` + more + `"tools":[{"name":"` + c.name + `","inputSchema":{"type":"object"}}]}`,
				"tools/call " + c.name: `{` + more + c.result + `}`,
				"prompts/list":         `{` + more + `"prompts":[{"name":"p"}]}`,
				"prompts/get p":        `{` + more + c.result + `}`,
				"resources/list":       `{` + more + `"resources":[]}`,
				"resources/read":       `{` + more + c.result + `}`,
			}), "")
			for _, kind := range []string{"tool", "prompt", "resource"} {
				listed(t, i, kind)
			}
			got := ended(t, i, c.kind, c.name, "{}")
			var paths []string
			for _, issue := range got.Issues {
				paths = append(paths, issue.Path)
			}
			if got.State != c.state || strings.Join(paths, " ") != c.paths || (len(got.Issues) > 0) != (c.state == "invalid") || got.Error != nil || !strings.Contains(got.Result, "good") {
				t.Errorf("%s %s: %s, %q, %v, %s", revision, c.name, got.State, got.Issues, got.Error, got.Result)
			}
			i.Close()
		}
	}
}

// TestManyBroken: of very many faults the first are kept.
func TestManyBroken(t *testing.T) {
	if n := len(contentIssues("tools/call", fmt.Appendf(nil, `{"content":[%s7]}`, strings.Repeat("7,", 10_000)))); n != maxIssues {
		t.Errorf("%d issues", n)
	}
}
