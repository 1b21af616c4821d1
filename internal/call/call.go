// Package call has the type that only packages of this module can name: what
// an exported func takes one of is not for users.
package call

// Private is the parameter of such a func. The zero value is all there is.
type Private struct{}
