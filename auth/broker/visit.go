package broker

import (
	"net/http"

	"golang.org/x/oauth2"

	"github.com/talaria-go/mcp/auth"
)

// visit is a user's way to a provider and back. It is sealed in a cookie of its
// own, which is bound to its state.
type visit struct {
	purpose string // login; who: compare the user before a connection; or service
	service string // of the services, "" for the login provider
	data    string // what purpose needs, opaque here; at most 2 KiB
}

// leave sends the browser to a provider. params are added to its authorization
// URL; scopes nil means those of the Provider.
func (b *Broker) leave(w http.ResponseWriter, r *http.Request, u *upstream, v visit, scopes []string, params map[string]string) {
}

// arrival is a visit that has come back. Those of purpose who go to the method
// identified of the Service, and those of purpose service to its method connected.
// id is verified; it is nil if the service cannot tell whose the token is.
type arrival struct {
	visit
	token *oauth2.Token
	id    *auth.Identity
}
