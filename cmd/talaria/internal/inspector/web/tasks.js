// Calls that run as tasks, and the tasks that a server lists.
import { html, useState, useEffect } from './vendor.js'
import { count, del, post, seen } from './program.js'
import { kindOf } from './call.js'

const taskWords = { __proto__: null, working: 'working', input_required: 'waits for an answer', completed: 'completed', failed: 'failed', cancelled: 'cancelled' }

// Running are the calls that are tasks now, or watch, with what cancels them.
export function Running({ calls, edit }) {
  const list = calls.filter(c => c.state === 'running' && (c.task || c.method === 'events/stream'))
  if (!list.length) return null
  return html`<section aria-label="Running"><h2>Running <span class="num dim">${list.length}</span></h2><ul class="list">${list.map(c => html`<li key=${c.id} class="task"><button onClick=${() => edit(c, kindOf(c))}>
    <span class="one">${c.label} <span class="dim">${c.task ? c.task.message || taskWords[c.task.status] || c.task.status : count(c.events ?? 0, 'event')}</span></span></button><button class="quiet" aria-label=${'Cancel ' + c.label} onClick=${() => del('/api/calls/' + c.id).catch(() => {})}>cancel</button></li>`)}</ul></section>`
}

// Tasks are those that a server of 2025-11-25 lists, also of other clients.
export function Tasks() {
  const [page, setPage] = useState(null)
  const load = () => post('/api/request', { method: 'tasks/list', params: {} }).then(setPage, e => setPage({ error: e.message }))
  useEffect(() => { load() }, [])
  const cancel = t => post('/api/request', { method: 'tasks/cancel', params: { taskId: t.id } }).then(load, e => setPage({ ...page, error: e.message }))
  return html`<section aria-label="Tasks of the server"><div class="bar"><h3>Tasks</h3><span class="space"></span><button class="quiet" onClick=${load}>reload</button></div>
    ${page?.error && html`<p class="bad" role="alert">${page.error}</p>`}${page?.tasks && !page.tasks.length && html`<p class="dim">No tasks.</p>`}
    ${page?.tasks?.length > 0 && html`<table><thead><tr><th>Task</th><th>Status</th><th>Created</th><td></td></tr></thead><tbody>${page.tasks.map(t => html`<tr key=${t.id}><td class="mono">${seen(t.id)}</td><td>${taskWords[t.status] ?? t.status} <span class="dim">${t.message}</span></td>
      <td class="num">${t.created && new Date(t.created).toLocaleString()}</td><td>${t.id && /^(working|input_required)$/.test(t.status) && html`<button aria-label=${'Cancel ' + seen(t.id)} onClick=${() => cancel(t)}>Cancel</button>`}</td></tr>`)}</tbody></table>`}
    ${page?.more && html`<p class="dim">The server has more.</p>`}</section>`
}
