package oidc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/talaria-go/mcp/internal/test/testdep"
)

// keycloak starts Keycloak with a realm that lets no client register. Its users are user1,
// user2 and so on, who have their names as passwords.
func keycloak(t *testing.T, callback string) idp {
	t.Helper()
	type object map[string]any
	home := testdep.Env(t, "E2E_KEYCLOAK", installed)
	users := []object{}
	for i := range 20 {
		name := fmt.Sprint("user", i+1)
		users = append(users, object{
			"username": name, "enabled": true, "email": name + "@example.com", "emailVerified": true, "firstName": name, "lastName": "of the company",
			"credentials": []object{{"type": "password", "value": name}},
		})
	}
	realm, err := json.Marshal(object{
		"realm": "company", "enabled": true, "users": users,
		"clients": []object{{"clientId": "notes", "secret": "a-secret-of-the-notes-server", "redirectUris": []string{callback}, "directAccessGrantsEnabled": false}},
	})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(home, "data", "import", "company-realm.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if old, err := os.ReadFile(file); err != nil || !bytes.Equal(old, realm) {
		if err := os.WriteFile(file, realm, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	address := freeAddress(t)
	host, port, _ := strings.Cut(address, ":")
	p := start(t, home, nil, filepath.Join(home, "bin", "kc.sh"), "start", "--optimized", "--import-realm", "--http-enabled=true", "--http-host="+host, "--http-port="+port, "--hostname=http://"+address)
	for line := p.line(); !strings.Contains(line, "Listening on"); line = p.line() {
		if line == "" {
			t.Fatal("Keycloak does not listen")
		}
	}
	go func() {
		for p.lines.Scan() { // what else it says
		}
	}()
	return idp{"http://" + address + "/realms/company", []string{"Sign in to company"}}
}
