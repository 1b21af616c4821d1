package broker

import (
	"context"
	"runtime"
	"testing"

	"github.com/talaria-go/mcp/auth"
)

// Functions of users that do not return end in an error, whatever they do.
func TestBrokerWithCodeThatDoesNotReturn(t *testing.T) {
	for name, way := range map[string]func(){"panic": func() { panic("no way") }, "goexit": runtime.Goexit} {
		t.Run(name, func(t *testing.T) {
			b := &Broker{opts: Options{
				Accept: func(context.Context, *Client) error { way(); return nil },
				Permit: func(context.Context, *auth.Identity) ([]string, error) { way(); return nil, nil },
				Event:  func(Event) { way() },
			}}
			errs := map[string]error{"Accept": b.accept(t.Context(), &Client{})}
			_, errs["Permit"] = b.permit(t.Context(), &auth.Identity{}, []string{"a"})
			for name, err := range errs {
				if err == nil || err.Error() != name+" did not return: the handler panicked" {
					t.Errorf("%s: the error is %v", name, err)
				}
			}
			b.event(Event{Kind: "login"})
		})
	}
}
