// Package oidc tests authorization from end to end: a client of this module, a
// server of this module that is protected by its own middleware, and between
// them an identity provider that this module has no hand in, the one of
// github.com/zitadel/oidc. The user is a scripted browser.
package oidc
