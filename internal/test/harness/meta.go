package harness

import (
	"fmt"

	"github.com/talaria-go/mcp/internal/facts"
	"github.com/talaria-go/mcp/protocol"
)

func ModernMeta(rev protocol.Revision) string {
	return fmt.Sprintf(`%q:%q,%q:{"name":"c","version":"1"},%q:{}`, facts.MetaVersion, rev, facts.MetaClientInfo, facts.MetaCapabilities)
}
