package hostrules

// Reason is what a rule rests on. It is apart from Rule because servers log findings
// without it: their programs are smaller.
type Reason struct {
	Rule   string // its ID
	Date   string // month in which the source was last read or run
	What   string // the definition that breaks the rule
	Who    string // hosts and providers, and what they do
	Source string // threads, pages and code that show it
}

// Reasons has one row for each of Rules, in the same order. A thread without a
// repository is in anthropics/claude-code; of repeat, in ggml-org/llama.cpp.
var Reasons = []Reason{
	{
		Rule: "name", Date: "2026-11",
		What:   "a name with other characters than letters, digits, `_` and `-`",
		Who:    "Claude Desktop and claude.ai drop all tools of the server; OpenAI, Bedrock and Mistral refuse the request; VS Code and Codex write `_`",
		Source: "evoila/meho#2745, hostinger/api-mcp-server#51, openai/codex#8174, API_runtime_ToolSpecification of Bedrock, witsy#164",
	},
	{
		Rule: "name-long", Date: "2026-11",
		What:   "a name of more than 64 characters, by itself or as `mcp__SERVER__TOOL`",
		Who:    "Claude's API and OpenAI refuse the request; Cursor leaves the tool out above 60 with the server's name; Gemini CLI and Codex cut or hash it",
		Source: "#2485, #19882, composio#2788, generateValidName of Gemini CLI",
	},
	{
		Rule: "name-alike", Date: "2026-11",
		What:   "two names that differ in case and separators only",
		Who:    "hosts that rewrite names merge the tools, or append a number",
		Source: "VS Code and Codex, which write `_`",
	},
	{
		Rule: "member", Date: "2026-11",
		What:   "an argument whose name is not 1 to 64 letters, digits, `_`, `.` and `-`",
		Who:    "Claude's API and Bedrock refuse the request",
		Source: "#79418, twilio-labs/mcp#58; nested names pass: aws-solutions generative-ai-documents#709",
	},
	{
		Rule: "properties", Date: "2026-11",
		What:   "a schema of arguments without `properties`",
		Who:    "OpenAI refuses the request",
		Source: "openai-agents-python#449, mark3labs/mcphost#88",
	},
	{
		Rule: "root-type", Date: "2026-11",
		What:   "arguments that are not of type object",
		Who:    "Bedrock refuses the request; Claude Code drops all tools of the server",
		Source: "kirodotdev/Kiro#11027, #88049",
	},
	{
		Rule: "root-union", Date: "2026-11",
		What:   "`anyOf`, `oneOf` or `allOf` at the root of the arguments",
		Who:    "Claude's API refuses the request; Claude Code drops the tool",
		Source: "notion-mcp-server#341",
	},
	{
		Rule: "root-if", Date: "2026-11",
		What:   "`if`, `not`, `enum` or `dependent…` at the root of the arguments",
		Who:    "Claude Code drops the tool; Copilot deletes the keyword; llguidance refuses it",
		Source: "#95504, toolSchemaNormalizer.ts of vscode-copilot-chat, zed#63342",
	},
	{
		Rule: "keyword", Date: "2026-11",
		What:   "`exclusiveMinimum`, `exclusiveMaximum`, `multipleOf`, `propertyNames`, `patternProperties`, `uniqueItems`, `not`, `if` and other rare keywords",
		Who:    "llguidance and the `parameters` of Gemini refuse them; most other clients delete them",
		Source: "llguidance 1.9.1, modelcontextprotocol/servers#1624, decolua/9router#2309",
	},
	{
		Rule: "pattern", Date: "2026-11",
		What:   "a pattern that Python cannot compile, such as `\\p{L}`, `\\u{61}` or `(?<name>`",
		Who:    "OpenAI, Codex and Vertex refuse the request",
		Source: "opencodex#4072, litellm#40485, langfuse#14770",
	},
	{
		Rule: "pattern-look", Date: "2026-11",
		What:   "a pattern with look-around, `(?=` or `(?!`",
		Who:    "OpenAI and llama.cpp refuse the request",
		Source: "vercel/ai#21037, codefuturist/email-mcp#58",
	},
	{
		Rule: "pattern-plain", Date: "2026-11",
		What:   "a pattern without `^` and `$`, with `(?:`, or with an escape such as `\\d`, `\\/` or `[\\-]`",
		Who:    "llama.cpp and LM Studio refuse the request, with all tools",
		Source: "ggml-org/llama.cpp#26930, #27397, #27580; run against its parser",
	},
	{
		Rule: "repeat", Date: "2026-09",
		What:   "`maxLength`, `maxItems` or a repetition of 2,000 or more",
		Who:    "llama.cpp refuses the request, in versions before September 2026",
		Source: "#27087, mended by #28469 of 2026-09; run against its parser",
	},
	{
		Rule: "enum-number", Date: "2026-09",
		What:   "an enum or const of numbers or booleans",
		Who:    "the `parameters` of Gemini refuse the request; its `parametersJsonSchema` takes it",
		Source: "BrokkAi/bifrost#25, hermes-agent#15082, hevy-mcp#1161, celeste-python#263",
	},
	{
		Rule: "enum-blank", Date: "2026-11",
		What:   "an empty text or null in an enum",
		Who:    "Gemini refuses the request",
		Source: "opencode#46676, runlore#40",
	},
	{
		Rule: "items", Date: "2026-11",
		What:   "an array without `items`, or a tuple",
		Who:    "OpenAI and Gemini refuse the request; VS Code drops the tool",
		Source: "ogx#3004, lerd#1267",
	},
	{
		Rule: "type-list", Date: "2026-09",
		What:   "a list of types, such as `[\"string\",\"null\"]`",
		Who:    "Gemini refuses it in items; Gemini CLI, Zed, Copilot and Ollama change it",
		Source: "github/copilot-cli#4623, netclaw#51, transform_schema of anthropic 2.14.0",
	},
	{
		Rule: "type-none", Date: "2026-11",
		What:   "a value without a type",
		Who:    "llama.cpp refuses it in alternatives, and Vertex; Codex makes it a string",
		Source: "llama.cpp#14227, gemini-cli#4400",
	},
	{
		Rule: "ref", Date: "2026-11",
		What:   "`$ref`, as recursive types need it",
		Who:    "Claude's managed agents, Zed with Gemini, and Nova refuse it; Codex and Ollama drop what it stands for",
		Source: "OmniRoute#13552, pydantic-ai#1623",
	},
	{
		Rule: "required", Date: "2026-11",
		What:   "a required name that is not among the properties",
		Who:    "Gemini refuses the request; Copilot leaves the name out",
		Source: "toolSchemaNormalizer.ts of vscode-copilot-chat",
	},
	{
		Rule: "format", Date: "2026-11",
		What:   "a format that JSON Schema does not have, or `int64` and the like on a text",
		Who:    "the `parameters` of Gemini and llguidance refuse it; Zed drops it; Ajv warns or throws",
		Source: "langchain-mcp-tools-ts#36, llguidance 1.9.1, genkit#3412",
	},
	{
		Rule: "dialect", Date: "2026-11",
		What:   "`$schema`, unless it is draft-07 for arguments and 2020-12 for results",
		Who:    "VS Code once left out tools with 2020-12; claude.ai refuses results of draft-07",
		Source: "firecrawl-mcp-server#112, anki-mcp-server-addon#75",
	},
	{
		Rule: "text-none", Date: "2026-11",
		What:   "a tool without a description",
		Who:    "Bedrock refuses the request; VS Code shows <empty>",
		Source: "API_runtime_ToolSpecification of Bedrock, mcpServer.ts of VS Code",
	},
	{
		Rule: "text-2048", Date: "2026-11",
		What:   "a description, or instructions, of more than 2,048 characters",
		Who:    "Claude Code cuts it, and `/mcp` shows the whole",
		Source: "code.claude.com/docs/en/mcp, #81268, #87650",
	},
	{
		Rule: "text-long", Date: "2026-09",
		What:   "a description of more than 1,024 characters",
		Who:    "OpenAI's chat completions and Copilot CLI with Gemini refuse the request",
		Source: "getsentry/sentry-mcp#106, modelcontextprotocol/servers#799, 3gpp-mcp#238",
	},
	{
		Rule: "text-hidden", Date: "2026-11",
		What:   "a control character, or one that is not seen, in a title or description",
		Who:    "scanners and Claude's directory refuse the server",
		Source: "review of Claude's directory",
	},
	{
		Rule: "hints", Date: "2026-11",
		What:   "neither `readOnlyHint` nor `destructiveHint`",
		Who:    "VS Code asks before each call; the directories of Claude and OpenAI want hints",
		Source: "checklist of Claude's directory, Teamwork/mcp#420",
	},
	{
		Rule: "tools", Date: "2026-11",
		What:   "more than 100 tools",
		Who:    "OpenAI and Copilot refuse more than 128 of all servers; Cursor takes 80",
		Source: "zed#32946, Snowflake-Labs/mcp#77",
	},
	{
		Rule: "tokens", Date: "2026-11",
		What:   "a list of more than 10,000 tokens, at 4 bytes each",
		Who:    "every request pays for it; Claude Code defers tools at 10 % of the context",
		Source: "code.claude.com/docs/en/mcp",
	},
	{
		Rule: "unchecked", Date: "2026-11",
		What:   "more than 20,000 tools or 32 MiB, or a schema more than 64 levels deep",
		Who:    "lint does not look further",
		Source: "internal/tooling/hostrules",
	},
}
