// Package hosts lets the programs of hosts check the schemas that this module makes,
// and holds what lint reports of servers that others have published against them.
// e2e/run hosts installs all of them and runs the tests, which are skipped without.
//
// The checks are code that hosts run on the tools of a request: the grammars of
// llama.cpp and llguidance, re of Python, the clients of Anthropic and Google for
// Python, and the TypeScript SDK with Ajv.
package hosts
