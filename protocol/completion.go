package protocol

// Completion holds values that an argument can have, the best ones first. Total
// is how many there are in all, and HasMore whether some were not sent.
type Completion struct {
	Values  []string `json:"values"` // 100 at most
	Total   int      `json:"total"`
	HasMore bool     `json:"hasMore"`
}
