// Markdown that is read, and no more: nothing in it is loaded or leads elsewhere, and HTML
// is text.
import { html, useMemo } from './vendor.js'
import { Code } from './json.js'
import { seen } from './program.js'

const nesting = 6 // lists and quotes within each other, and marks within marks
const longest = 200e3 // characters
const most = 1500 // elements; the rest is drawn as plain text

const fence = line => /^ {0,3}(`{3,}|~{3,})([^`]*)$/.exec(line)
const heading = line => /^ {0,3}(#{1,6})[ \t]+(\S.*)$/.exec(line)
const item = line => /^(\s*)([-*+]|\d{1,9}[.)])[ \t]+(\S.*)$/.exec(line)
const rule = line => /^ {0,3}([-*_])[ \t]*(\1[ \t]*){2,}$/.test(line)
const bordered = line => line !== undefined && line.includes('|') && line.includes('-') && cells(line).every(c => /^:?-+:?$/.test(c))
const closes = (line, mark) => { const t = line.trim(); return t.length >= mark.length && t[0] === mark[0] && t === mark[0].repeat(t.length) }

// isMarkdown tells whether a text of no known type has enough of the marks of Markdown.
export function isMarkdown(text) {
  if (text.length > longest || !text.trim().includes('\n')) return false
  const lines = text.slice(0, 20e3).split('\n')
  let sum = 0
  const once = (is, points) => { if (is) sum += points }
  once(lines.filter(fence).length > 1, 2)
  once(lines.some((l, i) => l.includes('|') && bordered(lines[i + 1])), 2)
  once(lines.some((l, i) => heading(l) && !lines[i + 1]?.trim()), 2)
  once(lines.some(heading), 1)
  once(/\*\*[^\s*][^*\n]*\*\*/.test(text.slice(0, 20e3)), 1)
  once(lines.some(l => /\[[^\]\n]{1,200}\]\([^)\s]{1,500}\)/.test(l)), 1)
  once(lines.filter(item).length > 1, 1)
  return sum > 1
}

// cells are those of a row of a table.
function cells(line) {
  const all = []
  let cell = ''
  for (let at = 0; at < line.length; at++) {
    if (line[at] === '\\' && line[at + 1] === '|') cell += line[++at]
    else if (line[at] === '|') { all.push(cell); cell = '' } else cell += line[at]
  }
  all.push(cell)
  if (!all[0].trim()) all.shift()
  if (all.length && !all.at(-1).trim()) all.pop()
  return all.map(c => c.trim())
}

const begins = (lines, at) => fence(lines[at]) || heading(lines[at]) || item(lines[at]) || rule(lines[at]) || /^ {0,3}>/.test(lines[at]) || lines[at].includes('|') && bordered(lines[at + 1])

function blocks(lines, depth, page) {
  const out = []
  for (let at = 0, end, m; at < lines.length; at = end) {
    end = at + 1
    if (!lines[at].trim()) continue
    const until = stop => { while (end < lines.length && !stop(lines[end])) end++ }
    if (page.left-- < 0 || depth > nesting) return [...out, html`<p>${lines.slice(at).join('\n')}</p>`]
    if (m = fence(lines[at])) {
      until(l => closes(l, m[1]))
      const text = lines.slice(at + 1, end).join('\n')
      page.left -= 200
      out.push(/^json/i.test(m[2].trim()) ? html`<${Code} text=${text} />` : html`<pre class="code">${text}</pre>`)
      end++
    } else if (m = heading(lines[at])) {
      while (page.levels.at(-1) >= m[1].length) page.levels.pop()
      page.levels.push(m[1].length)
      out.push(html`<div role="heading" class=${'h' + m[1].length} aria-level=${Math.min(6, 2 + page.levels.length)}>${inline(m[2].trim().replace(/ #+$/, ''), 0, page)}</div>`)
    } else if (rule(lines[at])) out.push(html`<hr />`)
    else if (/^ {0,3}>/.test(lines[at])) {
      until(l => !/^ {0,3}>/.test(l))
      out.push(html`<blockquote>${blocks(lines.slice(at, end).map(l => l.replace(/^ {0,3}> ?/, '')), depth + 1, page)}</blockquote>`)
    } else if (item(lines[at])) {
      const [list, after] = items(lines, at, depth, page)
      out.push(list)
      end = after
    } else if (lines[at].includes('|') && bordered(lines[at + 1])) {
      const head = cells(lines[at])
      end = at + 2
      until(l => !l.includes('|') || page.left < 0 || (page.left -= head.length + 1, false))
      const row = (l, tag) => { const c = cells(l); return html`<tr>${head.map((_, i) => tag === 'th' ? html`<th>${inline(c[i] ?? '', 0, page)}</th>` : html`<td>${inline(c[i] ?? '', 0, page)}</td>`)}</tr>` }
      out.push(html`<div class="wide"><table><thead>${row(lines[at], 'th')}</thead><tbody>${lines.slice(at + 2, end).map(l => row(l, 'td'))}</tbody></table></div>`)
    } else {
      while (end < lines.length && lines[end].trim() && !begins(lines, end)) end++
      out.push(html`<p>${inline(lines.slice(at, end).map(l => l.trim()).join('\n'), 0, page)}</p>`)
    }
  }
  return out
}

// items is a list that begins in a line, and the line after it.
function items(lines, at, depth, page) {
  const first = item(lines[at]), counted = /\d/.test(first[2]), left = first[1].length, all = []
  while (at < lines.length) {
    const m = item(lines[at])
    if (!m || m[1].length > left + 1 || m[1].length < left || /\d/.test(m[2]) !== counted) break
    const own = [m[3]], in_ = left + m[2].length + 1
    for (at++; at < lines.length; at++) {
      const space = lines[at].search(/\S/)
      if (space < 0 ? !(lines[at + 1]?.search(/\S/) > left) : space <= left && (item(lines[at]) || begins(lines, at) || !lines[at - 1].trim())) break
      own.push(lines[at].slice(Math.max(0, Math.min(space, in_))))
    }
    while (at < lines.length && !lines[at].trim() && item(lines[at + 1] ?? '')?.[1].length === left) at++ // a loose list
    const box = /^\[([ xX])\] /.exec(own[0])
    if (box) own[0] = own[0].slice(4)
    page.left--
    all.push(html`<li>${box && (box[1] === ' ' ? '☐ ' : '☑ ')}${own.length > 1 ? blocks(own, depth + 1, page) : inline(own[0], 0, page)}</li>`)
    if (page.left < 0) break
  }
  return [counted ? html`<ol start=${parseInt(first[2])}>${all}</ol>` : html`<ul class="dots">${all}</ul>`, at]
}

const marks = /\\([!-/:-@[-`{-~])|`+|!?\[|\*\*|__|~~|[*_]/g

// inline is the text of a block with its marks.
function inline(text, depth, page) {
  if (depth > nesting || text.length > 20e3) return text
  const out = [], none = new Set(), find = new RegExp(marks)
  let from = 0
  const add = (node, start, end) => { if (start > from) out.push(text.slice(from, start)); out.push(node); from = find.lastIndex = end; page.left-- }
  for (let m; page.left > 0 && (m = find.exec(text));) {
    const [mark] = m, at = m.index, after = at + mark.length
    if (m[1]) add(m[1], at, after)
    else if (mark[0] === '`') {
      const end = none.has(mark) ? -1 : text.indexOf(mark, after)
      if (end > 0) add(html`<code>${text.slice(after, end).trim()}</code>`, at, end + mark.length)
      else none.add(mark)
    } else if (mark.endsWith('[')) {
      const link = /^([^[\]\n]{0,500})\]\(<?([^()\s<>]{0,2000}(?:\([^()\s]{0,200}\))?[^()\s<>]{0,2000})>?(?:\s+"[^"\n]{0,200}")?\)/.exec(text.slice(after, after + 5e3))
      if (link) add(html`${mark === '![' ? html`<span class="dim">image </span>` : ''}${inline(link[1], depth + 1, page)} <code class="dim">${link[2]}</code>`, at, after + link[0].length)
    } else if (!none.has(mark) && /\S/.test(text[after] ?? ' ') && !(mark[0] === '_' && /\w/.test(text[at - 1] ?? ' '))) {
      let end = after
      for (let tries = 0; tries < 20; tries++) {
        end = text.indexOf(mark, end + 1)
        if (end < 0 || /\S/.test(text[end - 1]) && !(mark[0] === '_' && /\w/.test(text[end + mark.length] ?? ' ')) && !(mark === '*' && (text[end + 1] === '*' || text[end - 1] === '*'))) break
      }
      if (end < 0) { none.add(mark); continue }
      const inner = inline(text.slice(after, end), depth + 1, page)
      add(mark === '~~' ? html`<s>${inner}</s>` : mark.length === 2 ? html`<strong>${inner}</strong>` : html`<em>${inner}</em>`, at, end + mark.length)
    }
  }
  return from ? [...out, text.slice(from)] : text
}

export function Markdown({ text, room = most }) {
  const drawn = useMemo(() => blocks(seen(text).replaceAll('\r\n', '\n').split('\n'), 0, { left: room, levels: [] }), [text])
  return html`<div class="md">${drawn}</div>`
}
