// A text of which the server says what it may be.
import { html, useState, useEffect, useRef } from './vendor.js'
import { post } from './api.js'

// completer asks for an argument, with what the others are.
export const completer = (kind, name, node) => (argument, value, signal) => {
  const others = Object.fromEntries([...node.nodes].filter(([key, n]) => key !== argument && n.set && n.text !== '').map(([key, n]) => [key, n.text]))
  return post('/api/request', { method: 'completion/complete', params: {
    ref: kind === 'prompt' ? { type: 'ref/prompt', name } : { type: 'ref/resource', uri: name }, argument: { name: argument, value }, context: { arguments: others } } }, signal)
}

export function Complete({ n, aria, ctx, touch }) {
  const [found, setFound] = useState(null)
  const [at, setAt] = useState(-1)
  const timer = useRef(0), stop = useRef(null)
  const close = () => { clearTimeout(timer.current); stop.current?.abort(); setFound(null); setAt(-1) }
  useEffect(() => close, [])
  // look asks a while after the last key; what comes late counts for nothing.
  const look = wait => {
    clearTimeout(timer.current)
    stop.current?.abort()
    const mine = stop.current = new AbortController()
    timer.current = setTimeout(() => ctx.complete(n.c.key, n.text, mine.signal).then(
      r => { if (!mine.signal.aborted) { setFound(r); setAt(-1) } },
      e => { if (!mine.signal.aborted) setFound({ values: [], error: e.message }) }), wait)
  }
  const values = found?.values ?? [], list = aria.id + '-l'
  const pick = i => { n.text = values[i].value; close(); touch() }
  const key = e => {
    if (e.key === 'ArrowDown' && !found) look(0)
    else if (e.key === 'ArrowDown') setAt(Math.min(values.length - 1, at + 1))
    else if (e.key === 'ArrowUp' && found) setAt(Math.max(-1, at - 1))
    else if (e.key === 'Enter' && at >= 0 && !e.ctrlKey && !e.metaKey) pick(at)
    else if (e.key === 'Escape' && found) close()
    else return
    e.preventDefault()
  }
  useEffect(() => document.getElementById(list + at)?.scrollIntoView({ block: 'nearest' }), [at])
  return html`<div class="completes"><input ...${aria} role="combobox" aria-autocomplete="list" aria-expanded=${values.length > 0 ? 'true' : 'false'} aria-controls=${values.length > 0 ? list : undefined} aria-activedescendant=${at >= 0 ? list + at : undefined}
      autocomplete="off" placeholder="↓ shows what it may be" value=${n.text} onKeyDown=${key} onInput=${e => { n.text = e.currentTarget.value; ctx.change(); look(250) }} onBlur=${() => { close(); touch() }} />
    ${values.length > 0 && html`<ul id=${list} role="listbox" aria-label=${'values of ' + n.c.label}>${values.map((v, i) => html`<li id=${list + i} role="option" aria-selected=${i === at} onMouseDown=${e => { e.preventDefault(); pick(i) }}>${v.label}</li>`)}</ul>`}
    <span class="dim" role="status">${found?.error || (found && !values.length ? 'the server knows none' : found?.more ? 'there are more: type on' : '')}</span></div>`
}
