package hosts

import (
	"errors"
	"fmt"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// ErrShared is the error of a value that others would get to know.
var ErrShared = errors.New("everyone who has the project can read it; write ${NAME}, or \"Bearer ${NAME}\", and set NAME where the program is started")

// reference is a value that only says which environment variable has it.
var reference = regexp.MustCompile(`^(?:Bearer )?\$\{([A-Za-z_][A-Za-z0-9_]*)\}$`)

// Share returns a server as the file of a project may have it: all values of
// environment variables and headers are references, in the form of the host.
func Share(h Host, s Server) (Server, error) {
	var err error
	if s.Env, err = references(h, "--env", s.Env); err != nil {
		return s, err
	}
	if s.Headers, err = references(h, "--header", s.Headers); err != nil {
		return s, err
	}
	return s, plain(s.URL)
}

func references(h Host, flag string, values map[string]string) (map[string]string, error) {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		found := reference.FindStringSubmatch(values[name])
		if found == nil {
			return nil, fmt.Errorf("%s %s: %w", flag, name, ErrShared)
		}
		out[name] = strings.Replace(values[name], "${"+found[1]+"}", strings.Replace(h.filled, "NAME", found[1], 1), 1)
	}
	return out, nil
}

// plain returns why a URL cannot be handed to others: for what may hold a
// secret, whether it does or not.
func plain(text string) error {
	if text == "" {
		return nil
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("it is no URL") // the error would repeat it
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return errors.New("only http and https URLs can be handed to others")
	case u.User != nil:
		return errors.New("the URL has a user or a password, which others would get; leave it out and use --header")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.Contains(text, "#"):
		return errors.New("the URL has a query or a fragment, which may hold a key that others would get; leave it out and use --header")
	}
	return nil
}
