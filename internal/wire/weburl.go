package wire

import (
	"errors"
	"fmt"
	"net/url"
)

// CheckWebURL returns nil if a person can be sent to address in a browser, else
// an error that continues a sentence about the address. The
// address must be absolute, have the scheme http or https and a host, and no
// user before the host, which is a way to hide where a link leads (RFC 9110,
// section 4.2.4). The error does not repeat the address, whose query may be
// secret.
func CheckWebURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no URL") // err has all of it
	case u.Scheme == "":
		return errors.New("it is not absolute")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("it begins with %.20q; only http: and https: are pages", u.Scheme+":")
	case u.Hostname() == "":
		return errors.New("it has no host")
	case u.User != nil:
		return errors.New("it has a user before its host, which hides where it leads")
	}
	return nil
}
