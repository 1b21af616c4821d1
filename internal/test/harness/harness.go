// Package harness has what the tests below internal/test share: a server with a tool
// for each behavior, clients over every transport and revision, values that keep what
// is logged or observed, and code of users that panics.
package harness
