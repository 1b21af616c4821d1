// What may be long is drawn in parts, so that the page stays below 5000 elements.
import { html, useState, useMemo, useLayoutEffect, useRef } from './vendor.js'
import { Num, branch, count, seen, seenJSON, write } from './program.js'

export const ctrl = e => e.ctrlKey || e.metaKey

export function Pager({ from, size, total, what, go }) {
  if (total <= size) return null
  const to = (n, name, sign, can = n >= 0 && n < total) => html`<button class="quiet" aria-label=${name + ' ' + what} aria-disabled=${!can} onClick=${() => can && go(n)}>${sign}</button>`
  return html`<div class="pager num dim" role="group" aria-label=${what}><span aria-live="polite">${size > 1 ? from + 1 + '–' : ''}${Math.min(total, from + size)} of ${total} ${what}</span>${to(from - size, 'earlier', '‹')}${to(from + size, 'further', '›')}</div>`
}

// usePages is the part of a list that is drawn, what leads to the others, and where it begins. A list that was
// found with another word begins at its first part.
export function usePages(list, size, what, word) {
  const [[at, of], go] = useState([0])
  const from = of === word && at < list.length ? at : 0
  return [list.slice(from, from + size), html`<${Pager} from=${from} size=${size} total=${list.length} what=${what} go=${n => go([n, word])} />`, from]
}

export const clip = text => text.length > 5e5 ? text.slice(0, 5e5) + '\n… ' + count(text.length - 5e5, 'more character') : text

const rows = 100 // of a tree, at a time

// colorOf is the class of a value, which has a colour.
const colorOf = v => v instanceof Num ? 'jn' : typeof v === 'string' ? 'js' : 'jw'

// inside is how many values a branch has.
const inside = v => branch(v) ? v.size ?? v.length : 0

// opened are the branches that are open at first: those that are small.
function opened(root) {
  const open = new Set(), all = [root].filter(branch)
  let n = 1
  for (const v of all) {
    const inner = inside(v)
    if (v !== root && (inner > 20 || n + inner > rows)) continue
    open.add(v)
    n += inner
    if (n <= rows) all.push(...[...v.values()].filter(branch))
  }
  return open
}

// Tree is a value, a row each for what is in its open branches.
export function Tree({ value, name, most = rows }) {
  const open = useMemo(() => opened(value), [value])
  const [at, setAt] = useState(0)
  const [, redraw] = useState(0)
  const box = useRef(null), moved = useRef(false)
  useLayoutEffect(() => { if (moved.current) box.current.querySelector('[tabindex="0"]')?.focus(); moved.current = false })
  const from = at - at % most, shown = [], walk = [{ rest: [[name, value]].values() }]
  let total = 0
  while (walk.length) {
    const on = walk.at(-1), { done, value: item } = on.rest.next()
    if (done) { walk.pop(); continue }
    if (total >= from && total < from + most) shown.push({ name: item[0], v: item[1], at: total, up: on.at, level: walk.length })
    if (open.has(item[1])) walk.push({ rest: item[1].entries(), at: total })
    total++
  }
  const toggle = r => { if (!open.delete(r.v)) open.add(r.v); setAt(r.at); redraw(n => n + 1) }
  const key = e => {
    const r = shown[at - from], is = open.has(r.v)
    const folds = e.key === 'Enter' || e.key === ' ' || e.key === (is ? 'ArrowLeft' : 'ArrowRight')
    const to = { ArrowDown: at + 1, ArrowRight: at + 1, ArrowUp: at - 1, ArrowLeft: r.up ?? at, Home: 0, End: total - 1 }[e.key]
    if (ctrl(e) || !folds && to === undefined) return
    e.preventDefault()
    moved.current = true
    if (!folds) setAt(Math.max(0, Math.min(total - 1, to)))
    else if (inside(r.v)) toggle(r)
  }
  return html`<${Pager} from=${from} size=${most} total=${total} what="rows" go=${setAt} /><div ref=${box} role="tree" aria-label=${name ?? 'the result'} onKeyDown=${key}>${shown.map(r => {
    const size = inside(r.v)
    return html`<div key=${r.at} role="treeitem" class="leaf" tabindex=${r.at === at ? 0 : -1} aria-level=${r.level} aria-expanded=${size ? open.has(r.v) : undefined} style=${{ '--level': r.level - 1 }} onClick=${() => size ? toggle(r) : setAt(r.at)}>
      ${r.name !== undefined && html`<span class="jk">${seen(String(r.name))}${branch(r.v) ? '' : ':'} </span>`}${branch(r.v) ? html`<span class="dim">${r.v instanceof Map ? `{${size}}` : `[${size}]`}</span>` : typeof r.v === 'string' && r.v.trim().includes('\n') ? html`<pre class="js">${clip(seen(r.v))}</pre>` : html`<code class=${colorOf(r.v)}>${clip(seenJSON(write(r.v)))}</code>`}</div>`
  })}</div>`
}
