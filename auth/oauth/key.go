package oauth

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"

	"github.com/go-jose/go-jose/v4"
)

// ParseKey reads a private key from PEM: PKCS #8, or the older forms for RSA
// and elliptic curves.
func ParseKey(text []byte) (crypto.PrivateKey, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("oauth: the private key is not PEM")
	}
	var key any
	var err error
	switch block.Type {
	case "RSA PRIVATE KEY":
		key, err = x509.ParsePKCS1PrivateKey(block.Bytes)
	case "EC PRIVATE KEY":
		key, err = x509.ParseECPrivateKey(block.Bytes)
	default:
		key, err = x509.ParsePKCS8PrivateKey(block.Bytes)
	}
	if err != nil {
		// The error of x509 names formats, not contents.
		return nil, fmt.Errorf("oauth: the private key: %w", err)
	}
	if err := checkKey("the private key", key); err != nil {
		return nil, fmt.Errorf("oauth: %w", err)
	}
	return key, nil
}

func checkKey(where string, key crypto.PrivateKey) error {
	if key == nil || len(signingMethods(key)) > 0 {
		return nil
	}
	return fmt.Errorf("%s: %T cannot sign JWTs; use an *rsa.PrivateKey, *ecdsa.PrivateKey or ed25519.PrivateKey", where, key)
}

// signingMethods lists the algorithms that a key can sign with, best first.
func signingMethods(key crypto.PrivateKey) []jose.SignatureAlgorithm {
	switch key := key.(type) {
	case *ecdsa.PrivateKey:
		switch key.Curve.Params().BitSize {
		case 256:
			return []jose.SignatureAlgorithm{jose.ES256}
		case 384:
			return []jose.SignatureAlgorithm{jose.ES384}
		case 521:
			return []jose.SignatureAlgorithm{jose.ES512}
		}
	case ed25519.PrivateKey:
		return []jose.SignatureAlgorithm{jose.EdDSA}
	case *rsa.PrivateKey:
		return []jose.SignatureAlgorithm{jose.RS256, jose.PS256}
	}
	return nil
}

// signer signs JWTs with an algorithm that the other side supports too; it may
// support all of them, which no list says.
func signer(key crypto.PrivateKey, id string, supported []string) (jose.Signer, error) {
	for _, algorithm := range signingMethods(key) {
		if len(supported) == 0 || slices.Contains(supported, string(algorithm)) {
			options := &jose.SignerOptions{}
			return jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: jose.JSONWebKey{Key: key, KeyID: id}}, options.WithType("JWT"))
		}
	}
	return nil, fmt.Errorf("the key cannot sign with any of %q", supported)
}

// publicJWK writes the public half of a key as a JWK (RFC 7517).
func publicJWK(key crypto.PrivateKey, id string) (json.RawMessage, error) {
	return (&jose.JSONWebKey{Key: key, KeyID: id}).Public().MarshalJSON()
}
