package main

import (
	"cmp"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/client/config"
	"github.com/talaria-go/mcp/cmd/talaria/internal/login"
	"github.com/talaria-go/mcp/cmd/talaria/internal/shellwords"
	"github.com/talaria-go/mcp/transport"
)

// dialer makes transports to servers, as its flags say.
type dialer struct {
	header, headerEnv, env []string
	cwd, config            string
	maxMessage             int                                // bytes
	input                  func(config.Input) (string, error) // for what a configuration file asks; nil takes defaults
	verbose                int
	access
}

func (d *dialer) add(flags *pflag.FlagSet) {
	d.access.add(flags)
	flags.StringArrayVarP(&d.header, "header", "H", nil, "send an HTTP header, `NAME=value`; again for more")
	flags.StringArrayVar(&d.headerEnv, "header-env", nil, "send an HTTP header with the value of an environment variable, `NAME=VARIABLE`; again for more")
	flags.StringArrayVar(&d.env, "env", nil, "set an environment variable of the command, `NAME=value`; NAME alone passes it on")
	flags.StringVar(&d.cwd, "cwd", "", "start the command in this `directory`")
	flags.StringVar(&d.config, "config", "", "take the server of that name from this `file` of a desktop client")
	flags.IntVar(&d.maxMessage, "max-message", maxMessage, "longest message of the server, in `bytes`")
	flags.CountVarP(&d.verbose, "verbose", "v", "show warnings; -vv information, -vvv everything")
}

// maxMessage is the default of --max-message, in bytes; images are large.
const maxMessage = 64 << 20

// kind says how to reach a server; "" finds out from the target.
type kind string

const (
	kindAny     kind = ""
	kindCommand kind = "stdio"
	kindHTTP    kind = "http"
	kindSSE     kind = "sse"
	kindSocket  kind = "ws"
)

// transport makes the transport to a target: a URL, or a command as words.
func (d *dialer) transport(k kind, target []string, stderr io.Writer) (client.Transport, error) {
	if d.maxMessage <= 0 {
		return nil, usage("--max-message %d: must be greater than 0", d.maxMessage)
	}
	if d.config != "" {
		return d.configured(target, stderr)
	}
	text := target[0]
	if k == kindCommand || k == kindAny && !isURL(text) {
		return d.commandLine(k, target, stderr)
	}
	if len(d.env) > 0 || d.cwd != "" {
		return nil, usage("--env and --cwd are for commands, and %s is a URL", login.Shown(text))
	}
	if address, ok := strings.CutPrefix(text, "unix:"); ok {
		return client.Dial("unix", strings.TrimPrefix(address, "//"), &transport.SocketOptions{MaxMessage: d.maxMessage}), nil
	}
	rest, isSSE := strings.CutPrefix(text, "sse+")
	u, err := url.Parse(rest)
	if err != nil || u.Host == "" {
		return nil, usage("%q is no URL", login.Shown(text)).with("write a URL such as http://127.0.0.1:8080/mcp")
	}
	if u.Scheme == "tcp" {
		return client.Dial("tcp", u.Host, &transport.SocketOptions{MaxMessage: d.maxMessage}), nil
	}
	o, err := d.httpOptions(rest)
	if err != nil {
		return nil, err
	}
	web, socket := u.Scheme == "http" || u.Scheme == "https", u.Scheme == "ws" || u.Scheme == "wss"
	switch {
	case k == kindSSE && web, isSSE && web && k == kindAny:
		return client.SSE(rest, o), nil
	case k == kindSocket && (web || socket), socket && k == kindAny:
		return client.WebSocket(rest, o), nil
	case k == kindHTTP && web, web && k == kindAny:
		return client.HTTP(rest, o), nil
	}
	return nil, usage("%s is no URL for this: the scheme is %q", login.Shown(text), u.Scheme).with("schemes: http, https, ws, wss, sse+http, sse+https, tcp, unix")
}

func (d *dialer) httpOptions(address string) (*client.HTTPOptions, error) {
	headers, err := pairs("--header", d.header)
	if err != nil {
		return nil, err
	}
	variables, err := pairs("--header-env", d.headerEnv)
	if err != nil {
		return nil, err
	}
	for name, variable := range variables {
		value, ok := os.LookupEnv(variable)
		if !ok {
			return nil, usage("--header-env %s=%s: there is no such variable", name, variable)
		}
		headers[name] = value
	}
	o := &client.HTTPOptions{Header: http.Header{}, MaxMessage: d.maxMessage}
	for name, value := range headers {
		o.Header.Set(name, value)
	}
	o.Client, err = d.authorize(address, o.Header)
	return o, err
}

// commandLine makes the transport to a child process. One word is split as a shell
// does; several are taken as they are.
func (d *dialer) commandLine(k kind, target []string, stderr io.Writer) (client.Transport, error) {
	if len(target) == 1 {
		list, err := shellwords.Split(target[0])
		if err == nil && len(list) == 0 {
			err = errors.New("it is empty")
		}
		if err != nil {
			return nil, usage("%q is no command: %w", target[0], err)
		}
		if _, err := exec.LookPath(target[0]); err != nil || !strings.ContainsAny(target[0], " \t") {
			target = shellwords.Texts(list)
		}
	}
	if len(d.header)+len(d.headerEnv) > 0 || d.given() {
		return nil, usage("--header and --token are for URLs, and %s is a command", target[0])
	}
	if k == kindCommand && isURL(target[0]) {
		return nil, usage("%s is a URL, not a command", login.Shown(target[0])).with("talaria http, sse or ws connect to URLs")
	}
	return d.process(target, stderr)
}

// process makes the transport to a program and its arguments.
func (d *dialer) process(target []string, stderr io.Writer) (client.Transport, error) {
	t := client.Command(target[0], target[1:]...)
	for _, text := range d.env {
		if !strings.Contains(text, "=") {
			value, ok := os.LookupEnv(text)
			if !ok {
				return nil, usage("--env %s: there is no such variable here; write --env %s=value", text, text)
			}
			text += "=" + value
		}
		t.Env = append(t.Env, text)
	}
	t.Dir = d.cwd
	t.Grace = 2 * time.Second // scripts wait for it
	t.MaxMessage = d.maxMessage
	if d.verbose > 0 {
		t.Stderr = stderr
	}
	return t, nil
}

// spares returns an error if a file to write is one that a target, or a flag, names: the
// source of the server, perhaps.
func (d *dialer) spares(out, target string) error {
	there, err := os.Stat(out)
	if err != nil {
		return nil // to write it says what is wrong
	}
	list, _ := shellwords.Split(target) // empty if target is one word with an odd quote
	for _, name := range append([]string{target, d.config, d.tokenFile}, shellwords.Texts(list)...) {
		for _, path := range []string{name, filepath.Join(d.cwd, name)} {
			if info, err := os.Stat(path); name != "" && err == nil && os.SameFile(info, there) {
				return usage("--out %s: the command reads this file; name another one", out)
			}
		}
	}
	return nil
}

// configured takes the server from a configuration file.
func (d *dialer) configured(target []string, stderr io.Writer) (client.Transport, error) {
	config, err := config.Read(d.config, &config.Options{Input: d.input})
	if err != nil {
		return nil, usage("--config: %w", err)
	}
	server, ok := config.Server(target[0])
	if !ok {
		var names []string
		for _, s := range config.Servers {
			names = append(names, s.Name)
		}
		return nil, usage("%s has no server %q", d.config, target[0]).with("it has: " + strings.Join(names, ", "))
	}
	if len(target) > 1 {
		return nil, usage("unexpected argument %q after the server's name", target[1])
	}
	if server.Err != nil {
		return nil, usage("%w", server.Err)
	}
	plain := *d
	plain.config = ""
	plain.header = over(server.Headers, d.header)
	if server.URL != "" {
		t, err := plain.transport(kind(server.Type), []string{server.URL}, stderr)
		d.authorized = plain.authorized
		return t, err
	}
	plain.env, plain.cwd = over(server.Env, d.env), cmp.Or(d.cwd, server.Dir)
	return plain.process(append([]string{server.Command}, server.Args...), stderr)
}

// over returns NAME=value for each of a file's, and behind them those of flags,
// which count.
func over(file map[string]string, flags []string) []string {
	var list []string
	for _, name := range sortedKeys(file) {
		list = append(list, name+"="+file[name])
	}
	return append(list, flags...)
}
