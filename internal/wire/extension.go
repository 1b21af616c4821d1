package wire

import (
	"encoding/json"
	"maps"
)

// The extensions that this module has itself.
const (
	// TasksExtension is for calls that outlive their request. It came with
	// 2026-07-28 and is for no revision before.
	TasksExtension = "io.modelcontextprotocol/tasks"
	// SkillsExtension is for folders of instructions. Its text is for 2026-07-28;
	// hosts look for it in sessions of 2025-11-25, too.
	SkillsExtension = "io.modelcontextprotocol/skills"
	// AppsExtension is for views that hosts show for the results of tools. Hosts look
	// for it in every revision.
	AppsExtension = "io.modelcontextprotocol/ui"
	// CredentialsExtension is for clients that log in for themselves. They declare it in
	// every revision.
	CredentialsExtension = "io.modelcontextprotocol/oauth-client-credentials"
	// EnterpriseExtension is for clients whose users log in through the identity provider
	// of their company. They declare it in every revision.
	EnterpriseExtension = "io.modelcontextprotocol/enterprise-managed-authorization"
)

// Extension is one that a server declares. The catalog of the server has it among
// its entries, so that it is mounted with them; no list shows it.
type Extension struct {
	ID       string
	Settings json.RawMessage // an object
}

// ViewType is the MIME type of a view.
const ViewType = "text/html;profile=mcp-app"

// MetaUI is where the _meta of a tool has a ToolUI, and that of a view what it asks
// of the host.
const MetaUI = "ui"

// metaView is the first form of ToolUI.View, which the extension has deprecated and
// will remove. Its own library wrote both in October 2026, for hosts that have not
// followed; it goes from here on 2027-07-01.
const metaView = "ui/resourceUri"

// ToolUI says what a tool has to do with views.
type ToolUI struct {
	View       string   `json:"resourceUri,omitempty"`
	Visibility []string `json:"visibility,omitempty"` // none is for models and views
}

// MetaIssues is where the _meta of a result has the faults of the arguments, for programs.
const MetaIssues = "io.github.talaria-go/issues"

// MetaChecks is a mark in the _meta of a tool: the server checks more than the inputSchema
// says, and has MethodCheck for the tool.
const MetaChecks = "io.github.talaria-go/checks"

// MethodCheck checks the arguments of a tool, which does not run. Its params are those of
// tools/call. Its result has all faults in MetaIssues. Other servers refuse it, so that it is
// safe where a mark was copied.
const MethodCheck = "io.github.talaria-go/check"

// MetaWithChecks returns meta with the mark. meta is not changed.
func MetaWithChecks(meta map[string]any) map[string]any {
	all := map[string]any{MetaChecks: true}
	maps.Copy(all, meta)
	return all
}

// MetaWithUI returns meta with ui, in both of its forms. meta is not changed.
func MetaWithUI(meta map[string]any, ui ToolUI) map[string]any {
	all := map[string]any{MetaUI: ui}
	if ui.View != "" {
		all[metaView] = ui.View
	}
	maps.Copy(all, meta)
	return all
}

// MetaWithoutView returns the result of MetaWithUI for a client that does not see
// the view. meta is not changed.
func MetaWithoutView(meta map[string]any) map[string]any {
	left := maps.Clone(meta)
	delete(left, metaView)
	delete(left, MetaUI)
	if ui, ok := meta[MetaUI].(ToolUI); ok && ui.Visibility != nil {
		left[MetaUI] = ToolUI{Visibility: ui.Visibility}
	}
	return left
}

// The methods of skills.
const (
	MethodSkillsList    = "skills/list"
	MethodSkillsGet     = "skills/get"
	MethodDirectoryRead = "resources/directory/read"
)

// Skill is an entry of skills/list, and what skills/get returns. It is whole on one
// page: Resources has every file of the skill, those of skills within it too.
type Skill struct {
	URI         string          `json:"uri"` // of its SKILL.md
	Frontmatter json.RawMessage `json:"frontmatter"`
	Resources   []SkillFile     `json:"resources"`
}

// SkillFile is a file of a skill: where it can be read as a resource, the SHA-256 of
// its bytes as "sha256:" and 64 digits, and how many there are.
type SkillFile struct {
	URI    string `json:"uri"`
	Digest string `json:"digest"`
	Size   int64  `json:"size"`
}

// What the extension lets a skill have at most. Clients have to take as much, and
// need not take more.
const (
	MaxSkillFiles = 512
	MaxSkillBytes = 16 << 20
)
