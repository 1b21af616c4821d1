package protocol

import (
	"errors"
	"fmt"
	"net/url"
)

// CheckWebURL tells why address is no page that a person can be sent to: it must
// be absolute, with http or https and a host, and without a user before the
// host, which hides where it leads (RFC 9110, section 4.2.4).
func CheckWebURL(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil:
		return errors.New("it is no URL") // err has all of it
	case u.Scheme == "":
		return errors.New("it is not absolute")
	case u.Scheme != "https" && u.Scheme != "http":
		return fmt.Errorf("it begins with %.20q; http: and https: alone are pages", u.Scheme+":")
	case u.Hostname() == "":
		return errors.New("it has no host")
	case u.User != nil:
		return errors.New("it has a user before its host, which hides where it leads")
	}
	return nil
}
