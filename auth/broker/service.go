package broker

// Service is a service next to the login that handlers call as their caller.
type Service struct{ b *Broker }
