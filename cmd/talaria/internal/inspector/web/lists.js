// What the server offers, list by list: tools, prompts, resources, templates.
import { html, useState } from './vendor.js'
import { get, post } from './api.js'

export const kinds = {
  tool: { title: 'Tools', verb: 'Call' }, prompt: { title: 'Prompts', verb: 'Get' },
  resource: { title: 'Resources', verb: 'Read' }, template: { title: 'Templates', verb: 'Read' },
}

// kindOf is the kind that a call was of.
export const kindOf = call => ({ 'prompts/get': 'prompt', 'resources/read': 'resource' })[call.method] ?? 'tool'

// begin calls a tool, gets a prompt, or reads a resource; uri is that of a template
// with its values.
export const begin = (kind, name, args, uri) => kind === 'tool' ? post('/api/call', { tool: name, arguments: args })
  : post('/api/request', kind === 'prompt' ? { method: 'prompts/get', params: { name, arguments: JSON.parse(args) } } : { method: 'resources/read', params: { uri: kind === 'template' ? uri : name } })

// fetchAll asks for all lists and tells of each as it comes.
export function fetchAll(told) {
  return Object.keys(kinds).map(kind => get('/api/list?kind=' + kind).catch(e => ({ entries: [], error: e.message })).then(l => { told(kind, l); return [kind, l] }))
}

export const wanted = (list, word) => (list?.entries ?? []).filter(t => !word || (t.label + ' ' + (t.description ?? '')).toLowerCase().includes(word))

const shown = 200

export function Lists({ lists, ready, word, kind, tool, choose }) {
  const move = e => {
    const by = { ArrowDown: 1, ArrowUp: -1, j: 1, k: -1 }[e.key]
    if (!by) return
    e.preventDefault()
    const all = [...e.currentTarget.querySelectorAll('button[data-tool]')]
    all[Math.min(all.length - 1, Math.max(0, all.indexOf(document.activeElement) + by))]?.focus()
  }
  return html`<div onKeyDown=${move}>${Object.entries(kinds).map(([k, { title }]) => {
    const list = lists[k], found = wanted(list, word)
    if (k !== 'tool' && !list?.error && !found.length) return null
    return html`<section key=${k} aria-label=${title}><h2>${title} <span class="num dim">${list ? (word ? `${found.length} of ${list.entries.length}` : list.entries.length) : ''}</span></h2>
      ${list?.error && html`<p class="bad">${list.error}</p>`}
      ${ready && k === 'tool' && list?.entries.length === 0 && !list.error && html`<p class="dim empty">This server has no tools.</p>`}
      <${List} kind=${k} entries=${found} tool=${k === kind ? tool : null} choose=${choose} /></section>`
  })}</div>`
}

function List({ kind, entries, tool, choose }) {
  const [most, setMost] = useState(shown)
  return html`<ul class="list">${entries.slice(0, most).map((t, i) => html`<li key=${t.name + ' ' + i}><button type="button" data-tool aria-current=${t.name === tool ? 'true' : undefined} onClick=${() => choose(t.name, false, kind)}>
    <span class="one">${t.label}</span>${t.wrong && html`<span class="bad" title=${t.wrong}>!</span>`}</button></li>`)}
    ${entries.length > most && html`<li><button type="button" onClick=${() => setMost(most + 1000)}>${entries.length - most} more</button></li>`}</ul>`
}
