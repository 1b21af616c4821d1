package wire

// ResultError is the error of a result that cannot be sent, which is a mistake of
// the program.
type ResultError struct {
	Of  string // whose result, such as tool "add"
	Err error  // what is wrong, such as "cannot be encoded: …"
}

// Error says whose result it is.
func (e *ResultError) Error() string { return "the result of " + e.Of + " " + e.Err.Error() }

// Unwrap returns what is wrong.
func (e *ResultError) Unwrap() error { return e.Err }
