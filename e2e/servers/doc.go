// Package servers tests the client of this module with servers of others: the
// reference servers from npm, and servers made with the official Go SDK and with
// mcp-go. e2e/run servers runs its tests; those that need what npm installs are
// skipped without it.
package servers
