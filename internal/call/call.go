// Package call has a type that only packages of this module can name. An
// exported function with a parameter of that type cannot be called by users, so
// it is not part of the public API although other packages of the module can
// use it.
package call

// Private is the parameter of such a function. The zero value is all there is.
type Private struct{}
