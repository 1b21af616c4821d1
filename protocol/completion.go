package protocol

// Completion holds values that an argument can have, the best ones first.
type Completion struct {
	Values []string `json:"values"` // MaxCompletions at most
	// Total is the number of values there are, which may be more than were
	// sent; HasMore says whether it is.
	Total   int  `json:"total"` // how many there are in all
	HasMore bool `json:"hasMore"`
}
