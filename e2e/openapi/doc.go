// Package openapi holds the tools that package openapi makes of published documents
// against kin-openapi, which checks the requests for random arguments. e2e/run openapi
// installs the documents from npm.
package openapi
