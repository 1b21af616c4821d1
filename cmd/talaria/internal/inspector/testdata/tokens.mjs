// Prints how many tokens the tools of some servers are, for TestTokens. What it needs is
// in node_modules of the working directory.
import { spawn } from 'node:child_process'
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'
import { readFileSync } from 'node:fs'

const load = createRequire(process.cwd() + '/')
const { countTokens: claude } = load('@anthropic-ai/tokenizer')
const o200k = load('gpt-tokenizer/encoding/o200k_base').countTokens, cl100k = load('gpt-tokenizer/encoding/cl100k_base').countTokens

const servers = [
  ['@modelcontextprotocol/server-everything'], ['@modelcontextprotocol/server-filesystem', '.'], ['@modelcontextprotocol/server-memory'], ['@modelcontextprotocol/server-sequential-thinking'],
  ['@playwright/mcp'], ['@upstash/context7-mcp'], ['@notionhq/notion-mcp-server'], ['chrome-devtools-mcp'],
]

async function toolsOf([name, ...args]) {
  const at = process.cwd() + '/node_modules/' + name + '/'
  const { bin } = JSON.parse(readFileSync(at + 'package.json'))
  const child = spawn(process.execPath, [at + (typeof bin === 'string' ? bin : Object.values(bin)[0]), ...args], { stdio: ['pipe', 'pipe', 'ignore'] })
  const send = m => child.stdin.write(JSON.stringify({ jsonrpc: '2.0', ...m }) + '\n')
  send({ id: 1, method: 'initialize', params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'tokens', version: '1' } } })
  try {
    for await (const line of createInterface({ input: child.stdout })) {
      let m
      try { m = JSON.parse(line) } catch { continue }
      if (m.id === 1) { send({ method: 'notifications/initialized' }); send({ id: 2, method: 'tools/list' }) }
      if (m.id === 2) return m.result.tools
    }
  } finally { child.kill() }
  throw new Error(name + ' ended')
}

const out = []
for (const [i, server] of servers.entries())
  for (const tool of await toolsOf(server)) {
    const Text = JSON.stringify(tool)
    out.push({ Held: i >= 4, Text, Counts: { o200k_base: o200k(Text), cl100k_base: cl100k(Text), claude: claude(Text) } })
  }
process.stdout.write(JSON.stringify(out), () => process.exit(0))
