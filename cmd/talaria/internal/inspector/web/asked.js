// What the server asks, in the place of the result.
import { html, useState, useEffect, useRef } from './vendor.js'
import { post } from './api.js'
import { parse } from './json.js'
import { Form, load, make, placed, value } from './form.js'
import { Content, Tree, contentOf } from './result.js'

// Asked are the questions of the server, in the place of the result.
export function Asked({ state }) {
  return state.questions.map(q => html`<${Question} key=${q.id} q=${q} />`)
}

// asked is the form of a question: all of it is open, as it is short.
function asked(form) {
  const node = make(form)
  for (const n of node.nodes.values()) if (!n.set && (n.c.preset !== undefined || n.c.kind === 'bool')) load(n, parse(n.c.preset ?? 'false'))
  return node
}

function Question({ q }) {
  const node = useRef(null)
  node.current ??= q.form ? asked(q.form) : null
  const [issues, setIssues] = useState([])
  const [text, setText] = useState(q.template ?? '')
  const [error, setError] = useState('')
  const [, redraw] = useState(0)
  const [now, setNow] = useState(Date.now())
  const box = useRef(null), field = useRef(null)
  useEffect(() => {
    (field.current ?? box.current)?.focus()
    const at = text.indexOf('"text": "') + 9 // within the quotes
    field.current?.setSelectionRange(at, at)
    const t = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(t)
  }, [])
  const waits = Math.max(0, Math.round((now - Date.parse(q.since)) / 1000))
  const say = async action => {
    const content = q.kind === 'form' ? value(node.current) ?? '{}' : text
    try {
      if (action === 'accept' && q.kind === 'form') {
        const r = await post('/api/check', { question: q.id, value: content })
        setIssues(r.issues ?? [])
        if (r.issues?.length) return
      }
      await post('/api/questions', { id: q.id, action, content })
      document.querySelector('.ask .primary')?.focus()
    } catch (e) { setError(e.message) }
  }
  const key = e => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); e.stopPropagation(); if (q.kind !== 'url') say('accept') } }
  const href = /^https?:\/\//.test(q.url ?? '') ? new URL(q.url).href : null
  return html`<section class="question" aria-label="The server asks" tabindex="-1" ref=${box} onKeyDown=${key}>
    <div class="bar"><strong>${q.kind === 'sample' ? 'The server asks a model' : 'The server asks'}</strong><span class="space"></span><span class="dim num">waits ${Math.floor(waits / 60)}:${String(waits % 60).padStart(2, '0')}</span></div>
    ${q.message && html`<p class="description">${q.kind === 'sample' && html`<strong>System </strong>`}${q.message}</p>`}
    ${q.wrong && html`<p class="bad">It wants you to visit an address that is not opened: ${q.wrong}</p>`}
    ${href && html`<p>It wants you to visit <strong>${new URL(href).host}</strong>: <a href=${href} target="_blank" rel="noopener noreferrer">${href}</a></p>`}
    ${q.kind === 'form' && html`<${Form} node=${node.current} issues=${issues} all=${true} change=${() => redraw(n => n + 1)} />`}
    ${issues.filter(i => !placed(node.current, i.path)).map(i => html`<p class="bad">${i.path} ${i.message}</p>`)}
    ${q.kind === 'sample' && html`<${Conversation} text=${q.params} /><label class="label" for=${'sample-' + q.id}>Your answer, in the place of the model</label>
      <textarea id=${'sample-' + q.id} ref=${field} class="mono" rows="9" spellcheck="false" value=${text} onInput=${e => setText(e.currentTarget.value)}></textarea>`}
    ${error && html`<p class="bad" role="alert">${error}</p>`}
    <div class="bar">${!q.wrong && html`<button type="button" class="primary" onClick=${() => say('accept')}>${q.kind === 'url' ? 'I visit it' : q.kind === 'sample' ? 'Answer' : 'Accept'}</button>`}<button type="button" onClick=${() => say('decline')}>${q.kind === 'sample' ? 'Refuse' : 'Decline'}</button>
      ${q.kind !== 'sample' && html`<button type="button" onClick=${() => say('cancel')}>Cancel</button>`}</div></section>`
}

// Conversation is what a model is to go on with.
function Conversation({ text }) {
  let read = null
  try { read = parse(text) } catch { return html`<pre tabindex="0">${text}</pre>` }
  const rest = new Map([...read].filter(([name]) => name !== 'messages' && name !== 'systemPrompt'))
  return html`<div class="conversation" tabindex="0" role="region" aria-label="Conversation">${(contentOf(read) ?? []).map((x, i) => html`<${Content} key=${i} item=${x} />`)}
    <${Tree} name="Further params" value=${rest} open=${rest.size < 8} /></div>`
}
