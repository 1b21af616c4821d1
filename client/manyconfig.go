package client

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
)

// Transport returns the transport to the server; its Err, if it has one. Of a
// server over HTTP, SSE or WebSocket, opts are the options, over which the
// headers of the file go; it may be nil.
func (s ServerConfig) Transport(opts *HTTPOptions) (Transport, error) {
	if s.Err != nil {
		return nil, s.Err
	}
	if s.Type == "stdio" {
		t := Command(s.Command, s.Args...)
		t.Dir = s.Dir
		for _, name := range slices.Sorted(maps.Keys(s.Env)) {
			t.Env = append(t.Env, name+"="+s.Env[name])
		}
		return t, nil
	}
	var own HTTPOptions
	if opts != nil {
		own = *opts
	}
	own.Header = own.Header.Clone()
	if own.Header == nil {
		own.Header = http.Header{}
	}
	for name, value := range s.Headers {
		own.Header.Set(name, value)
	}
	switch s.Type {
	case "http":
		return HTTP(s.URL, &own), nil
	case "sse":
		return SSE(s.URL, &own), nil
	case "ws":
		return WebSocket(s.URL, &own), nil
	}
	return nil, &ConfigError{Server: s.Name, Field: "type", Err: fmt.Errorf("%q is not one of stdio, http, sse, ws", s.Type)}
}

// AddConfig adds the servers of a configuration file that are not disabled. One
// with an Err is added too, and has that in its status; one whose name cannot
// be used is left out. The error joins what is wrong with any of them; the
// others are of use nevertheless. opts are for servers over HTTP, SSE or
// WebSocket; it may be nil.
func (m *Many) AddConfig(c *Config, opts *HTTPOptions) error {
	var faults []error
	for _, s := range c.Servers {
		if s.Disabled {
			continue
		}
		t, fault := s.Transport(opts)
		faults = append(faults, fault, m.add(s.Name, t, nil, fault))
	}
	return errors.Join(faults...)
}
