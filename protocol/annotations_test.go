package protocol

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Wherever annotations are, a lastModified without a zone is in UTC.
func TestLastModified(t *testing.T) {
	content := func(raw string) (*Annotations, error) {
		item, err := ParseContent([]byte(raw))
		switch item := item.(type) {
		case TextContent:
			return item.Annotations, err
		case ImageContent:
			return item.Annotations, err
		case AudioContent:
			return item.Annotations, err
		case ResourceLink:
			return item.Annotations, err
		case EmbeddedResource:
			return item.Annotations, err
		}
		return nil, err
	}
	places := map[string]func(members string) (*Annotations, error){
		"text":  func(m string) (*Annotations, error) { return content(`{"type":"text","text":"a",` + m + `}`) },
		"image": func(m string) (*Annotations, error) { return content(`{"type":"image","data":"",` + m + `}`) },
		"audio": func(m string) (*Annotations, error) { return content(`{"type":"audio","data":"",` + m + `}`) },
		"link": func(m string) (*Annotations, error) {
			return content(`{"type":"resource_link","uri":"a:b","name":"a",` + m + `}`)
		},
		"embedded": func(m string) (*Annotations, error) {
			return content(`{"type":"resource","resource":{"uri":"a:b","text":""},` + m + `}`)
		},
		"resource": func(m string) (*Annotations, error) {
			var r Resource
			err := json.Unmarshal([]byte(`{"uri":"a:b","name":"a",`+m+`}`), &r)
			return r.Annotations, err
		},
		"template": func(m string) (*Annotations, error) {
			var r ResourceTemplate
			err := json.Unmarshal([]byte(`{"uriTemplate":"a:{b}","name":"a",`+m+`}`), &r)
			return r.Annotations, err
		},
		"prompt message": func(m string) (*Annotations, error) {
			var s SampleMessage
			err := json.Unmarshal([]byte(`{"role":"user","content":{"type":"text","text":"a",`+m+`}}`), &s)
			if len(s.Content) != 1 {
				return nil, err
			}
			return s.Content[0].(TextContent).Annotations, err
		},
	}
	want := time.Date(2026, 11, 27, 2, 0, 0, 0, time.UTC)
	for place, read := range places {
		for text, want := range map[string]time.Time{
			`"2026-11-27T02:00:00"`:        want,
			`"2026-11-27T02:00:00.000000"`: want,
			`"2026-11-27 02:00:00"`:        want,
			`"2026-11-27T02:00:00Z"`:       want,
			`"2026-11-27T04:00:00+02:00"`:  want,
			`"2026-11-27"`:                 want.Truncate(24 * time.Hour),
			`null`:                         {},
			`""`:                           {},
		} {
			a, err := read(fmt.Sprintf(`"annotations":{"audience":["user"],"priority":0.5,"lastModified":%s}`, text))
			if err != nil || a == nil || !a.LastModified.Equal(want) || len(a.Audience) != 1 || a.Priority == nil || *a.Priority != 0.5 {
				t.Errorf("%s, %s: %+v, %v", place, text, a, err)
			}
		}
		if a, err := read(`"annotations":null`); err != nil || a != nil {
			t.Errorf("%s, null: %+v, %v", place, a, err)
		}
		for _, text := range []string{`"yesterday"`, `5`, `{}`} {
			if _, err := read(`"annotations":{"lastModified":` + text + `}`); err == nil || !strings.Contains(err.Error(), "annotations") || !strings.Contains(err.Error(), strings.Trim(text, `"`)) {
				t.Errorf("%s, %s: %v", place, text, err)
			}
		}
	}
}
