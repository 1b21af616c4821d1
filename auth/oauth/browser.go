package oauth

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"strings"

	"github.com/talaria-go/mcp/internal/wire"
)

// OpenBrowser shows an http or https URL in the user's browser. It returns once
// the browser has been asked, not when the user is done.
func OpenBrowser(ctx context.Context, address string) error {
	if err := wire.CheckWebURL(address); err != nil {
		return fmt.Errorf("only http and https URLs are opened: %w", err)
	}
	// No shell: the URL comes from a server.
	var opener []string
	switch runtime.GOOS {
	case "darwin":
		opener = []string{"open"}
	case "windows":
		opener = []string{"rundll32", "url.dll,FileProtocolHandler"}
	default:
		opener = []string{"xdg-open"}
	}
	cmd := exec.CommandContext(ctx, opener[0], append(opener[1:], address)...)
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", opener[0], err)
	}
	return nil
}

// AskUser returns a function for Manual.Ask that writes to out and reads one line
// from in. Reading does not end with the context.
func AskUser(in io.Reader, out io.Writer) func(context.Context, string) (string, error) {
	lines := bufio.NewReader(in)
	return func(ctx context.Context, authorizeURL string) (string, error) {
		_, err := fmt.Fprintf(out, "Open this address in a browser:\n\n  %s\n\nThen paste the address that the browser ends at, even if its page cannot be loaded:\n", authorizeURL)
		if err != nil {
			return "", err
		}
		line, err := lines.ReadString('\n')
		if line = strings.TrimSpace(line); line != "" {
			return line, ctx.Err()
		}
		if err == nil || errors.Is(err, io.EOF) {
			err = errors.New("no address was given")
		}
		return "", err
	}
}
