// Package openapi holds the tools that package openapi makes of published documents
// against kin-openapi and libopenapi-validator, which check the requests for random
// arguments, and against Prism, which answers some. e2e/run openapi installs the documents
// and Prism from npm.
package openapi
