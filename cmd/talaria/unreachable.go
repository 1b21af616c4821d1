package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"syscall"

	"github.com/talaria-go/mcp/client"
	"github.com/talaria-go/mcp/cmd/talaria/internal/terminal"
	"github.com/talaria-go/mcp/transport"
)

func isCommand(t client.Transport) bool {
	_, ok := t.(*client.CommandTransport)
	return ok
}

// unreachable is the error of a connection that did not come about.
func unreachable(k kind, t client.Transport, err error) error {
	if errors.Is(err, terminal.ErrInterrupted) {
		return err
	}
	if f := refused(err); f != nil {
		return f
	}
	f := failed(exitConnect, fmt.Errorf("cannot connect to %s: %w", t, reason(unseen(t, err))))
	var dns *net.DNSError
	var plain tls.RecordHeaderError
	var untrusted *tls.CertificateVerificationError
	var silent *client.SilentError
	var exit *transport.ExitError
	status := client.StatusCode(err)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		f.hint = "nothing listens there: is the server running, and is the port right?"
	case errors.Is(err, fs.ErrNotExist) && strings.HasPrefix(t.String(), "unix:"):
		f.hint = "there is no such socket: is the server running, and is the path right?"
	case errors.As(err, &dns):
		f.hint = "check the name of the host"
	case status == http.StatusForbidden:
		f.code, f.hint = exitAuth, "the server refuses whoever asks so: check the host in the URL, and who may use it"
	case status == http.StatusUnauthorized:
		f.code, f.hint = exitAuth, "the server wants to know who you are: --header \"Authorization=…\", or what else it takes"
	case status/100 == 5:
		f.hint = "the server has failed: look at what it logs"
	case errors.As(err, &untrusted):
		f.hint = "this machine does not trust the certificate: SSL_CERT_FILE=FILE names the one that signed it, or use http:// where the server is on this machine"
	case errors.As(err, &plain):
		f.hint = "it does not speak TLS there: try http:// (or ws://) instead"
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented,
		status/100 == 2: // which is a page for people
		f.hint = "check the path of the URL; many servers have /mcp"
	case errors.As(err, &silent):
		if !shows(t) {
			f.err = fmt.Errorf("%w\n%s", f.err, said(silent))
		}
		f.hint = "--timeout sets how long to wait" + keptBack(silent.Withheld)
	case isCommand(t) && missed(err) != "":
		f.hint = "a command does not inherit " + missed(err) + ": --env " + missed(err) + " passes it on"
	case k == kindAny && (errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist)):
		f.hint = "a TARGET is a URL that begins with http:// or the like, or a command in quotes, such as \"npx -y some-server\""
	case errors.Is(err, client.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		f.hint = "it does not answer; --timeout sets how long to wait" + verboseHint
	case errors.As(err, &exit):
		f.hint = "the command exited before it answered; its standard error says why"
		if exit.Stderr == "" {
			f.hint = "the command exited before it answered; run it in a terminal to see why"
		}
	case errors.Is(err, client.ErrUnsupported):
		f.hint = "without --revision this program speaks what the server does; if there is none in common, one of both is to be updated"
	}
	return f
}

// shows reports whether what a command writes to standard error is shown as it comes.
func shows(t client.Transport) bool {
	c, ok := t.(*client.CommandTransport)
	return ok && c.Stderr != nil
}

// unseen leaves out of an error what the command has written to standard error, if that
// was shown as it came.
func unseen(t client.Transport, err error) error {
	exit, ok := errors.AsType[*transport.ExitError](err)
	if !ok || !shows(t) || exit.Stderr == "" {
		return err
	}
	whole := exit.Error()
	short, _, _ := strings.Cut(whole, "; it wrote to standard error:")
	return &shortError{strings.Replace(err.Error(), whole, short, 1), err}
}

// said returns what a command that does not answer has written.
func said(silent *client.SilentError) string {
	if silent.Stderr == "" {
		return "it has written nothing to standard error"
	}
	lines := strings.Split(silent.Stderr, "\n")
	return "its last lines on standard error:\n  " + strings.Join(lines[max(0, len(lines)-lastLines):], "\n  ")
}

// verboseHint ends the hint of a timeout where -v can be given.
const verboseHint = ", -v shows what it writes to standard error"

const (
	lastLines = 10 // of standard error
	mostNames = 12 // of variables
)

// keptBack names variables that a command did not get.
func keptBack(names []string) string {
	if len(names) == 0 {
		return ""
	}
	text := strings.Join(names[:min(len(names), mostNames)], ", ")
	if len(names) > mostNames {
		text += fmt.Sprintf(" and %d more", len(names)-mostNames)
	}
	return "; set here, and not passed to the command (--env NAME does): " + text
}

// missed returns a variable that is set here, that the command did not get, and
// that its last words name; "" if there is none.
func missed(err error) string {
	exit, ok := errors.AsType[*transport.ExitError](err)
	if !ok {
		return ""
	}
	for _, name := range exit.Withheld {
		if strings.Contains(exit.Stderr, name) {
			return name
		}
	}
	return ""
}
