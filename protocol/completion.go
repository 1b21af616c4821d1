package protocol

// Completion holds values that an argument can have, the best ones first. Total
// is how many there are in total, and HasMore whether some were not sent.
type Completion struct {
	Values  []string `json:"values"` // 100 at most
	Total   int      `json:"total"`
	HasMore bool     `json:"hasMore"`
}

// CompleteParams are the params of completion/complete
// (server/utilities/completion of every revision).
type CompleteParams struct {
	Ref      CompletionReference `json:"ref"`
	Argument CompletionArgument  `json:"argument"`
	Context  CompletionContext   `json:"context,omitzero"`
	Meta     map[string]any      `json:"_meta,omitempty"`
}

// CompletionReference says whose argument is to be completed: that of the prompt
// Name with the Type "ref/prompt", that of the resource template URI with
// "ref/resource".
type CompletionReference struct {
	Type string `json:"type"`
	Name string `json:"name,omitempty"` // of a prompt
	URI  string `json:"uri,omitempty"`  // of a resource template, or one that fits it
}

// CompletionArgument names the argument to complete, and has what the user has
// typed so far, which may be "".
type CompletionArgument struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// CompletionContext has the arguments that the user has filled in before, in
// revisions from 2025-06-18 on.
type CompletionContext struct {
	Arguments map[string]string `json:"arguments,omitempty"`
}
