// Protected offers the tools on this module behind its authorization: each
// call carries a JSON Web Token, signed with ES256, of one of a hundred users.
package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/talaria-go/mcp"
	"github.com/talaria-go/mcp/auth"

	"github.com/talaria-go/mcp/bench/internal/serve"
	"github.com/talaria-go/mcp/bench/tools"
)

const (
	issuer   = "https://auth.example.com"
	resource = "https://bench.example.com/mcp"
	users    = 100
)

func main() {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	serve.Main(serve.Server{
		HTTP:   func() (http.Handler, error) { return handler(key) },
		Tokens: func() ([]string, error) { return tokens(key) },
		Stdio:  func(context.Context) error { return errors.New("authorization is for HTTP") },
	})
}

func handler(key *ecdsa.PrivateKey) (http.Handler, error) {
	s := mcp.NewServer(mcp.Info{Name: "bench", Version: "1.0.0"}, nil)
	err := s.Add(
		mcp.Tool("add", func(_ *mcp.Frame, in tools.AddIn) (tools.AddOut, error) { return tools.Add(in), nil }, mcp.Scopes("sums:make")),
		mcp.Tool("search", func(_ *mcp.Frame, in tools.SearchIn) (tools.SearchOut, error) { return tools.Search(in), nil }),
	)
	if err != nil {
		return nil, err
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: &key.PublicKey, KeyID: "1", Algorithm: "ES256", Use: "sig"}}})
	if err != nil {
		return nil, err
	}
	verifier := auth.NewJWT(issuer, &auth.JWTOptions{Keys: auth.KeyOptions{Static: keys}})
	protected, err := auth.New(resource, verifier, &auth.Options{Scopes: []string{"tools:call"}})
	if err != nil {
		return nil, err
	}
	return protected.Bearer(s.Handler()), nil
}

func tokens(key *ecdsa.PrivateKey) ([]string, error) {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: jose.JSONWebKey{Key: key, KeyID: "1"}}, (&jose.SignerOptions{}).WithType("at+jwt"))
	if err != nil {
		return nil, err
	}
	list := make([]string, users)
	for i := range list {
		now := time.Now()
		claims, err := json.Marshal(map[string]any{
			"iss": issuer, "aud": resource, "sub": fmt.Sprintf("user-%d", i), "client_id": "https://app.example.com/client.json",
			"scope": "tools:call sums:make", "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "jti": rand.Text(),
		})
		if err != nil {
			return nil, err
		}
		signed, err := signer.Sign(claims)
		if err != nil {
			return nil, err
		}
		if list[i], err = signed.CompactSerialize(); err != nil {
			return nil, err
		}
	}
	return list, nil
}
