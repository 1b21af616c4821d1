// Icons of kinds, and panes whose sizes are the user's.
import { html, useRef } from './vendor.js'
import { post } from './program.js'

const shapes = {
  tool: 'M10.5 2a3.5 3.5 0 0 0-3.3 4.7L2 11.9 4.1 14l5.2-5.2A3.5 3.5 0 0 0 13.8 4.6L11.7 6.7 9.3 4.3 11.4 2.2A3.5 3.5 0 0 0 10.5 2z',
  prompt: 'M2.5 3h11v8h-6L4.5 13.5V11h-2z', resource: 'M4 2h5l3.5 3.5V14H4zM9 2v3.5h3.5', template: 'M6 2.5C4 2.5 5 7 3 8c2 1 1 5.5 3 5.5M10 2.5c2 0 1 4.5 3 5.5-2 1-1 5.5-3 5.5',
  event: 'M8 2v1M4.5 11V7a3.5 3.5 0 0 1 7 0v4l1.5 1.5H3zM6.5 14h3',
}

export const Icon = ({ kind }) => html`<svg class="icon" viewBox="0 0 16 16" width="14" height="14" aria-hidden="true"><path d=${shapes[kind]} fill="none" stroke="currentColor" stroke-width="1.3" stroke-linejoin="round" /></svg>`

const panes = { nav: 240, form: 0, traffic: 0 } // pixels; 0 is a share of the window

// setPanes takes sizes, which a page of before or the program has.
export function setPanes(sizes) {
  for (const name in panes) if (sizes?.[name] > 0) document.documentElement.style.setProperty('--' + name, (panes[name] = sizes[name]) + 'px')
}

// Splitter changes the size of a pane: by dragging it, or with the arrows.
export function Splitter({ name, label }) {
  const box = useRef(null), timer = useRef(0), tall = name === 'traffic'
  const size = () => { // of the pane beside it
    const r = (tall ? box.current.parentElement : box.current.previousElementSibling).getBoundingClientRect(); return tall ? r.height : r.width }
  const set = to => {
    const all = tall ? innerHeight : innerWidth
    setPanes({ [name]: Math.round(Math.max(140, Math.min(to, all * .8))) })
    box.current.ariaValueNow = panes[name]
    clearTimeout(timer.current)
    timer.current = setTimeout(() => post('/api/history', { panes: { [name]: panes[name] } }).catch(() => {}), 300)
  }
  const down = e => {
    e.preventDefault()
    e.currentTarget.setPointerCapture(e.pointerId)
    const from = size(), at = tall ? e.clientY : e.clientX
    box.current.onpointermove = m => set(from + (tall ? at - m.clientY : m.clientX - at))
    box.current.onpointerup = box.current.onpointercancel = () => { box.current.onpointermove = null }
  }
  const key = e => {
    const by = tall ? { ArrowUp: 16, ArrowDown: -16 }[e.key] : { ArrowLeft: -16, ArrowRight: 16 }[e.key]
    if (by) { e.preventDefault(); e.stopPropagation(); set(size() + by) }
  }
  return html`<div class=${'splitter ' + name} ref=${box} role="separator" tabindex="0" aria-label=${label} aria-orientation=${tall ? 'horizontal' : 'vertical'} aria-valuenow=${panes[name]} aria-valuemin="140" aria-valuemax="4000" onPointerDown=${down} onKeyDown=${key}></div>`
}
