// JSON without loss: numbers keep their digits, objects are Maps in which any name
// is a name, and what a value was is known when it is written again.

export class Num { constructor(text) { this.text = text } }

// parse reads a JSON text; it throws what is wrong with it.
export function parse(text) {
  JSON.parse(text) // says what is wrong better than this reader
  let at = 0
  const space = () => { while (' \t\n\r'.includes(text[at]) && at < text.length) at++ }
  const string = () => {
    const from = at++
    while (text[at] !== '"') at += text[at] === '\\' ? 2 : 1
    return JSON.parse(text.slice(from, ++at))
  }
  const value = () => {
    space()
    const c = text[at]
    if (c === '"') return string()
    if (c === '{') {
      const map = new Map()
      for (at++, space(); text[at] !== '}'; space()) {
        if (text[at] === ',') { at++; space() }
        const name = string()
        space(); at++
        map.set(name, value())
      }
      at++
      return map
    }
    if (c === '[') {
      const list = []
      for (at++, space(); text[at] !== ']'; space()) {
        if (text[at] === ',') at++
        list.push(value())
      }
      at++
      return list
    }
    const from = at
    while (at < text.length && !',]} \t\n\r'.includes(text[at])) at++
    const word = text.slice(from, at)
    return word === 'true' ? true : word === 'false' ? false : word === 'null' ? null : new Num(word)
  }
  return value()
}

// write is the text of a value that parse has read.
export function write(v) {
  if (v instanceof Num) return v.text
  if (v instanceof Map) return '{' + [...v].map(([name, x]) => JSON.stringify(name) + ':' + write(x)).join(',') + '}'
  if (Array.isArray(v)) return '[' + v.map(write).join(',') + ']'
  return JSON.stringify(v)
}

// indent writes a JSON text on lines of its own; what is none stays as it is.
export function indent(text) {
  const lines = (v, pad) => {
    const inner = pad + '  '
    if (v instanceof Map && v.size) return '{\n' + [...v].map(([n, x]) => inner + JSON.stringify(n) + ': ' + lines(x, inner)).join(',\n') + '\n' + pad + '}'
    if (Array.isArray(v) && v.length) return '[\n' + v.map(x => inner + lines(x, inner)).join(',\n') + '\n' + pad + ']'
    return write(v)
  }
  try { return lines(parse(text), '') } catch { return text }
}
