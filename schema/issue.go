package schema

import "github.com/talaria-go/mcp/schema/raw"

// Issue is one fault of a document.
type Issue = raw.Issue

// Error says everything that is wrong with a document. Plan.Check and
// Plan.Decode return it, and so does the check of package raw.
type Error = raw.Error

// maxIssues bounds what one document can make the decoder keep.
const maxIssues = 1000
