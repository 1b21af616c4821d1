package harness

type resourcePage struct {
	Uris []string
	Next string
}
