package protocol

import (
	"strings"

	"github.com/talaria-go/mcp/internal/jsonx"
)

// span says in which revisions a method of the specification is, and that it is
// a request unless its name says otherwise.
type span struct{ first, last Revision }

var (
	always   = span{V20241105, Latest}
	sessions = span{V20241105, LatestLegacy}
	stateful = span{V20250618, LatestLegacy}
	modern   = span{V20260728, Latest}
)

// spans has the methods of every revision, from both sides.
var spans = map[string]span{
	MethodInitialize: sessions, MethodInitialized: sessions, MethodPing: sessions, MethodSetLevel: sessions,
	MethodSubscribe: sessions, MethodUnsubscribe: sessions, MethodSample: sessions, MethodRoots: sessions,
	"notifications/roots/list_changed": sessions,
	MethodElicit:                       stateful,
	MethodDiscover:                     modern, MethodListen: modern, MethodAcknowledged: modern,
	MethodToolsList: always, MethodToolsCall: always, MethodResourcesList: always, MethodResourceTemplates: always,
	MethodResourcesRead: always, MethodPromptsList: always, MethodPromptsGet: always, MethodComplete: always,
	MethodCancelled: always, MethodProgress: always, MethodLog: always, MethodToolsChanged: always,
	MethodResourcesChanged: always, MethodPromptsChanged: always, MethodResourceUpdated: always,
}

// Validate checks m by the rules of rev beyond those of Decode: methods of the
// specification are in the revisions that have them, requests with an id and
// notifications without; the params that methods share have their types; modern
// requests carry their _meta; results are objects, which since 2026-07-28 say
// what they are; errors have a code and a message. Methods that no revision has
// are those of extensions and pass. An error is an *Error, which is what to
// answer with if m is a request.
func (m *Message) Validate(rev Revision) error {
	switch m.Kind() {
	case 0:
		return Errorf(CodeInvalidRequest, "member method is missing")
	case KindResponse:
		return m.validateResponse(rev)
	}
	if s, known := spans[m.Method]; known {
		if rev < s.first || rev > s.last {
			return Errorf(CodeMethodNotFound, "Method not found: %s is not in revision %s", m.Method, rev)
		}
		if notification := strings.HasPrefix(m.Method, "notifications/"); notification != (m.Kind() == KindNotification) {
			if notification {
				return Errorf(CodeInvalidRequest, "%s is a notification: it has no id", m.Method)
			}
			return Errorf(CodeInvalidRequest, "%s is a request: member id is missing", m.Method)
		}
	}
	var p Params
	if err := m.DecodeParams(&p); err != nil {
		return err
	}
	if !rev.Modern() || m.Kind() == KindNotification {
		return nil
	}
	switch {
	case p.Meta.ProtocolVersion != rev.String():
		return Errorf(CodeInvalidParams, "params._meta[%q] must be %q, got %q", MetaVersion, rev, p.Meta.ProtocolVersion)
	case p.Meta.ClientCapabilities == nil:
		return Errorf(CodeInvalidParams, "params._meta[%q] is missing; every request must carry it", MetaCapabilities)
	}
	return nil
}

func (m *Message) validateResponse(rev Revision) error {
	if m.Result != nil {
		if jsonx.KindOf(m.Result[0]) != jsonx.Object {
			return Errorf(CodeInvalidRequest, "result must be an object, got %s", jsonx.KindOf(m.Result[0]))
		}
		if rev.Modern() && jsonx.Lookup(m.Result, []string{"resultType"}) == nil {
			return Errorf(CodeInvalidRequest, "result.resultType is missing; every result of revision %s has it", rev)
		}
		return nil
	}
	if kind := jsonx.KindOf(m.Error[0]); kind != jsonx.Object {
		return Errorf(CodeInvalidRequest, "error must be an object, got %s", kind)
	}
	code := jsonx.Scanner{Buf: jsonx.Lookup(m.Error, []string{"code"})}
	if _, integer, err := code.Number(); err != nil || !integer {
		return Errorf(CodeInvalidRequest, "error.code must be an integer")
	}
	if message := jsonx.Lookup(m.Error, []string{"message"}); message == nil || message[0] != '"' {
		return Errorf(CodeInvalidRequest, "error.message must be a string")
	}
	return nil
}
