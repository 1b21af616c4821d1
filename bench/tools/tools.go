// Package tools has the two tools that every server of the benchmark offers,
// so that they differ in nothing but the framework around them.
package tools

import "fmt"

// AddIn is the input of add.
type AddIn struct {
	A int `json:"a" jsonschema_description:"first summand"`
	B int `json:"b" jsonschema_description:"second summand"`
}

// AddOut is the result of add.
type AddOut struct {
	Sum int `json:"sum" jsonschema_description:"the sum of both"`
}

// Add adds.
func Add(in AddIn) AddOut { return AddOut{Sum: in.A + in.B} }

// SearchIn is the input of search: six fields, all with rules.
type SearchIn struct {
	Query  string   `json:"query" validate:"required,max=200" jsonschema_description:"words to look for"`
	Limit  int      `json:"limit,omitempty" validate:"min=1,max=100" jsonschema_description:"how many rows at most"`
	Sort   string   `json:"sort,omitempty" validate:"oneof=relevance newest oldest" jsonschema_description:"order of the rows"`
	Tags   []string `json:"tags,omitempty" validate:"max=8,unique,dive,min=1,max=32" jsonschema_description:"tags that a row must have"`
	Since  string   `json:"since,omitempty" validate:"datetime=2006-01-02" jsonschema_description:"earliest day, such as 2026-07-28"`
	Filter Filter   `json:"filter" jsonschema_description:"what else a row must match"`
}

// Filter is the nested object of SearchIn.
type Filter struct {
	Lang     string `json:"lang" validate:"len=2" jsonschema_description:"two-letter language"`
	MinStars int    `json:"minStars,omitempty" validate:"min=0,max=1000000" jsonschema_description:"fewest stars"`
	Archived bool   `json:"archived,omitempty" jsonschema_description:"archived ones too"`
}

// Row is one row of SearchOut.
type Row struct {
	ID      int      `json:"id"`
	Title   string   `json:"title"`
	URL     string   `json:"url"`
	Score   float64  `json:"score"`
	Tags    []string `json:"tags"`
	Updated string   `json:"updated"`
}

// SearchOut is the result of search.
type SearchOut struct {
	Query string `json:"query"`
	Total int    `json:"total"`
	Rows  []Row  `json:"rows"`
}

var rows = func() []Row {
	rows := make([]Row, 100)
	for i := range rows {
		rows[i] = Row{
			ID:      1000 + i,
			Title:   fmt.Sprintf("Result %d: a title of the usual length", i),
			URL:     fmt.Sprintf("https://example.com/items/%d", 1000+i),
			Score:   float64(100-i) / 128,
			Tags:    []string{"go", "protocol"},
			Updated: "2026-07-28T10:00:00Z",
		}
	}
	return rows
}()

// Search answers with in.Limit rows, which are always the same ones: finding
// them is not what is measured.
func Search(in SearchIn) SearchOut {
	return SearchOut{Query: in.Query, Total: 1234, Rows: rows[:in.Limit]}
}

// AddSchema and SearchSchema are the rules of AddIn and SearchIn as JSON
// Schema, for frameworks that do not read them from the tags.
const (
	AddSchema = `{
		"type": "object", "additionalProperties": false, "required": ["a", "b"],
		"properties": {
			"a": {"type": "integer", "description": "first summand"},
			"b": {"type": "integer", "description": "second summand"}
		}
	}`
	SearchSchema = `{
		"type": "object", "additionalProperties": false, "required": ["query", "filter"],
		"properties": {
			"query": {"type": "string", "minLength": 1, "maxLength": 200, "description": "words to look for"},
			"limit": {"type": "integer", "minimum": 1, "maximum": 100, "description": "how many rows at most"},
			"sort": {"enum": ["relevance", "newest", "oldest"], "description": "order of the rows"},
			"tags": {
				"type": "array", "maxItems": 8, "uniqueItems": true,
				"items": {"type": "string", "minLength": 1, "maxLength": 32}, "description": "tags that a row must have"
			},
			"since": {"type": "string", "format": "date", "description": "earliest day, such as 2026-07-28"},
			"filter": {
				"type": "object", "additionalProperties": false, "required": ["lang"], "description": "what else a row must match",
				"properties": {
					"lang": {"type": "string", "minLength": 2, "maxLength": 2, "description": "two-letter language"},
					"minStars": {"type": "integer", "minimum": 0, "maximum": 1000000, "description": "fewest stars"},
					"archived": {"type": "boolean", "description": "archived ones too"}
				}
			}
		}
	}`
)
