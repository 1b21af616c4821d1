package oauth

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"mime"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/talaria-go/mcp/internal/jsonx"
	"github.com/talaria-go/mcp/internal/outbound"
)

// tokenAnswer is the answer of a token endpoint (RFC 6749, section 5.1).
type tokenAnswer struct {
	AccessToken  string          `json:"access_token"`
	TokenType    string          `json:"token_type"`
	RefreshToken string          `json:"refresh_token"`
	IssuedType   string          `json:"issued_token_type"` // RFC 8693, section 2.2.1
	ExpiresIn    json.RawMessage `json:"expires_in"`
	Scope        any             `json:"scope"` // text; a few servers send a list, which is ignored

	expiry time.Time // zero if the answer does not tell
}

// readTokens reads an answer with a token. Some servers write it as a form. The
// error names the member, and its value unless that may be a secret.
func readTokens(answer *outbound.Response) (*tokenAnswer, error) {
	given := &tokenAnswer{}
	if isForm(answer) {
		form, err := url.ParseQuery(string(answer.Body))
		if err != nil {
			return nil, errors.New("the answer is not a form")
		}
		*given = tokenAnswer{
			AccessToken: form.Get("access_token"), TokenType: form.Get("token_type"), RefreshToken: form.Get("refresh_token"),
			ExpiresIn: json.RawMessage(strconv.Quote(form.Get("expires_in"))), Scope: form.Get("scope"),
		}
	} else if err := jsonx.Unmarshal(answer.Body, given); err != nil {
		return nil, errors.New("the answer is " + misfit(answer.Body, err))
	}
	if given.AccessToken == "" {
		return nil, errors.New("the answer has no access_token, or an empty one")
	}
	n, err := seconds(given.ExpiresIn)
	if err != nil {
		return nil, fmt.Errorf("the answer has the expires_in %w", err)
	}
	if n > 0 {
		given.expiry = time.Now().Add(time.Duration(min(n, math.MaxInt32)) * time.Second)
	}
	return given, nil
}

// formMedia is the media type of forms.
const formMedia = "application/x-www-form-urlencoded"

// isForm reports whether an answer is a form.
func isForm(answer *outbound.Response) bool {
	media, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	return media == formMedia
}

// readError returns the code and the description of an OAuth error (RFC 6749,
// section 5.2), "" for what the answer does not have, or has as another type.
func readError(answer *outbound.Response) (code, description string) {
	if isForm(answer) {
		form, _ := url.ParseQuery(string(answer.Body)) // what can be read of it
		return form.Get("error"), form.Get("error_description")
	}
	var said struct {
		Code        any `json:"error"`
		Description any `json:"error_description"`
	}
	_ = jsonx.Unmarshal(answer.Body, &said) // a body of another form has neither
	code, _ = said.Code.(string)
	description, _ = said.Description.(string)
	return code, description
}

// seconds reads a number of seconds, as a number or as text with one. It is 0 for
// null, for no text, and for what is less. The error quotes the value.
func seconds(raw json.RawMessage) (float64, error) {
	text := strings.Trim(string(raw), `"`)
	if text == "" || text == "null" {
		return 0, nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) || math.IsNaN(n) {
		return 0, fmt.Errorf("%s, which is not a number of seconds", printable(string(raw)))
	}
	return max(n, 0), nil
}

// unixTime reads seconds since 1970 as seconds does; 0 means no time.
func unixTime(raw json.RawMessage) (at time.Time, err error) {
	n, err := seconds(raw)
	if n > 0 {
		at = time.Unix(int64(min(n, 1<<37)), 0)
	}
	return at, err
}

// misfit says what is wrong with a document that does not decode: the member,
// and its value, if that cannot be a secret.
func misfit(body []byte, err error) string {
	const wrong = "no JSON of the right form"
	var members map[string]json.RawMessage
	at, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok || at.Field == "" || jsonx.Unmarshal(body, &members) != nil {
		return wrong
	}
	name, _, _ := strings.Cut(at.Field, ".")
	if value := members[name]; value != nil && !slices.Contains(secretMembers, name) {
		return wrong + ": its member " + name + " is " + printable(string(value))
	}
	return wrong + ": its member " + name + " is a " + at.Value
}

// secretMembers are the members whose values no error may repeat.
var secretMembers = []string{"access_token", "client_secret", "refresh_token"}
