package frame

import "context"

// PrincipalOf returns who was authenticated, as WithPrincipal put it into ctx;
// "" for an anonymous client.
func PrincipalOf(ctx context.Context) string {
	principal, _ := ctx.Value(principalKey{}).(string)
	return principal
}
