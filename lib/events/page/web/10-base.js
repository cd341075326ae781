'use strict';
// What all that follows uses. Text of the run reaches the page by textContent alone.
const DATA = JSON.parse(document.getElementById('data').textContent);
const PAGE = DATA.page, REPORT = DATA.report, HEAD = DATA.head;
const STARTS = REPORT.starts, LAST = STARTS[STARTS.length - 1];
const MANY = 40; // stages above that are put together by name

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'on') for (const [what, f] of Object.entries(value)) node.addEventListener(what, f);
    else if (name === 'color') node.style.backgroundColor = value;
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? '' : value);
  }
  for (const child of children.flat(Infinity))
    if (child !== null && child !== undefined && child !== '') node.append(child);
  return node;
}
const el = (tag, attributes, ...children) => fill(document.createElement(tag), attributes, children);
const svg = (tag, attributes, ...children) =>
  fill(document.createElementNS('http://www.w3.org/2000/svg', tag), attributes, children);
const section = id => document.getElementById(id);
const soft = text => el('span', {class: 'soft'}, text);

// ---- numbers ----
const number = new Intl.NumberFormat('en', {maximumFractionDigits: 2});
const whole = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const count = n => whole.format(n);
function time(ms) {
  if (ms === null || ms === undefined) return '–';
  if (ms < 1) return number.format(ms * 1000) + ' µs';
  if (ms < 1000) return number.format(ms < 10 ? ms : Math.round(ms)) + ' ms';
  const s = ms / 1000;
  if (s < 60) return (s < 10 ? s.toFixed(2) : s.toFixed(1)) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}
// Core-, device- or node-time: hours, or seconds where hours would be nothing.
const amount = (s, what) => s >= 3600 ? number.format(s / 3600) + ' ' + what + '-h'
  : number.format(s < 10 ? s : Math.round(s * 10) / 10) + ' ' + what + '-s';
// The same where the head of a column says of what.
const shortAmount = s => amount(s >= 1000 && s < 3600 ? Math.round(s) : s, '').replace(' -', ' ');
function bytes(n) {
  for (const unit of ['B', 'KiB', 'MiB', 'GiB', 'TiB']) {
    if (n < 1024 || unit === 'TiB') return (unit === 'B' ? n : n < 10 ? n.toFixed(2) : n.toFixed(1)) + ' ' + unit;
    n /= 1024;
  }
}
const mib = n => bytes(n * 1048576);
const percent = (part, of) => of > 0 ? (100 * part / of).toFixed(part / of < .1 ? 1 : 0) + ' %' : '–';
// A figure of `troupe report --json`, with what that has of it beside: the test compares.
const figure = (key, value, text) => el('span', {'data-key': key, 'data-value': JSON.stringify(value)}, text);

// ---- times on the axis ----
function wall(at) {
  let stretch = PAGE.axis[0];
  for (const s of PAGE.axis) if (at >= s[2]) stretch = s;
  return stretch[0] + at - stretch[2];
}
const two = n => String(n).padStart(2, '0');
function clock(at, date) {
  const d = new Date(wall(at));
  const day = d.getFullYear() + '-' + two(d.getMonth() + 1) + '-' + two(d.getDate());
  return (date ? day + ' ' : '') + two(d.getHours()) + ':' + two(d.getMinutes()) + ':' + two(d.getSeconds());
}

// ---- stages ----
// What a task is called, as troupe logs takes it: a name that looks like a number has key= before it.
const taskWord = (n, name) => typeof name !== 'string' ? String(n) : /^(\d+(\.s\d+)?(\.\d+){0,2}$|key=)/.test(name) ? 'key=' + name : name;
const stem = name => name.replace(/\d+$/, '');
const STAGES = PAGE.stages.map((s, place) => ({...s, place, stem: stem(s.name),
  report: s.report === null ? null : STARTS[s.start].stages[s.report]}));
const FOLDED = STAGES.length > MANY;
// Colours go by name: a stage has the same in each start, and one of a thousand that
// differ by a number the same as the others.
const COLORS = {
  light: ['#2f6db5', '#c26a00', '#2b8050', '#b03a7e', '#0c8385', '#7557cf', '#96571a', '#5d6b7e', '#577d10', '#a13f5b', '#0a6aa8', '#7f6a00'],
  dark: ['#79aef5', '#f2b04e', '#6fcc95', '#ee8fc3', '#5ccccd', '#b5a0ff', '#dba06e', '#a7b5c8', '#b3d46a', '#f598ac', '#5fc2f5', '#d9c450'],
};
const colorOf = new Map();
for (const s of STAGES) {
  const name = FOLDED ? s.stem : s.name;
  if (!colorOf.has(name)) colorOf.set(name, colorOf.size);
}
const stageColor = s => COLORS[theme()][colorOf.get(FOLDED ? s.stem : s.name) % 12];
const profileColor = p => p === null ? 'gray' : COLORS[theme()][(p * 5 + 3) % 12];
const profileName = p => p === null || p === undefined ? '?' : PAGE.profiles[p].name;
// What tasks wait for, in the order of PAGE.wait_names.
const WAITS = PAGE.wait_names.map(name => ({
  free_slot: 'a slot was free', starting: 'executor starting', queued: 'in Slurm’s queue', asked: 'executor asked for', slots: 'all slots taken',
  locality: 'a nearer slot', excluded: 'executors excluded', limits: 'limits of executors', barrier: 'all slots of a barrier', gang: 'room for a gang',
  parents: 'tasks of its parents', end: 'the run’s end',
})[name] || name);
const LEVELS = ['process', 'node', 'no preference', 'rack', 'any'];
const ENDS = ['running', 'succeeded', 'failed', 'killed', 'lost'];

// ---- colours of the page ----
const system = window.matchMedia('(prefers-color-scheme: dark)');
let chosen = 'auto';
const theme = () => chosen === 'auto' ? (system.matches ? 'dark' : 'light') : chosen;
const redraw = []; // functions that draw again, when colours or the width change
const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
function setTheme() {
  document.documentElement.dataset.theme = theme();
  const b = document.getElementById('theme');
  b.querySelector('span').textContent = chosen;
  b.setAttribute('aria-label', 'Colours: ' + (chosen === 'auto' ? 'as the system has them' : chosen));
  for (const f of redraw) f();
}
document.documentElement.dataset.theme = theme();
document.getElementById('theme').addEventListener('click', () => {
  chosen = chosen === 'auto' ? (theme() === 'dark' ? 'light' : 'dark') : chosen === 'dark' ? 'light' : 'dark';
  setTheme();
});
system.addEventListener('change', setTheme);

// ---- tables ----
// columns: {name, text: is text, sort: row => number or text, cell: row => node or text}.
// Rows may have `members`, which a button shows.
function table(options) {
  const {columns, caption} = options;
  let rows = options.rows, by = options.by === undefined ? -1 : options.by, down = options.down || false;
  let most = options.most || 200;
  const head = el('tr'), body = el('tbody');
  const more = el('div', {class: 'tools'});
  const buttons = columns.map((c, i) => el('th', {class: c.text ? 'text' : null, scope: 'col'},
    c.sort ? el('button', {type: 'button', title: c.title, on: {click: () => {
      down = by === i ? !down : !c.text;
      by = i;
      draw();
    }}}, c.name, el('span', {'aria-hidden': 'true'})) : c.name));
  head.append(...buttons);
  const open = new Set();
  const cells = (row, kind) => el('tr', {class: kind}, columns.map((c, i) => {
    const of = c.cell(row, kind);
    return i ? el('td', {class: (c.text ? 'text' : 'number') + (c.wrap ? ' wrap' : '')}, of)
      : el('th', {class: 'text' + (c.wrap ? ' wrap' : ''), scope: 'row'}, row.members && fold(row), of);
  }));
  const fold = row => el('button', {type: 'button', class: 'fold', 'aria-expanded': String(open.has(row)),
    'aria-label': (open.has(row) ? 'Fold ' : 'Unfold ') + row.name, on: {click: () => {
      if (!open.delete(row)) open.add(row);
      draw(row);
    }}}, open.has(row) ? '−' : '+');
  function draw(focus) {
    const value = by >= 0 ? columns[by].sort : null;
    const order = (a, b) => {
      const x = value(a), y = value(b);
      const less = typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y;
      return down ? -less : less;
    };
    const sorted = value ? [...rows].sort(order) : rows;
    buttons.forEach((b, i) => {
      if (columns[i].sort) b.setAttribute('aria-sort', i !== by ? 'none' : down ? 'descending' : 'ascending');
      const mark = b.querySelector('span');
      if (mark) mark.textContent = i !== by ? '' : down ? ' ▼' : ' ▲';
    });
    body.replaceChildren(...sorted.slice(0, most).flatMap(row => {
      const first = cells(row, row.members ? 'group' : null);
      if (!row.members || !open.has(row)) return [first];
      const members = value ? [...row.members].sort(order) : row.members;
      return [first, ...members.slice(0, 500).map(m => cells(m, 'member'))];
    }));
    more.replaceChildren();
    if (sorted.length > most)
      more.append(el('button', {type: 'button', on: {click: () => { most += 500; draw(); }}},
        `Show more (${count(sorted.length - most)} are left out)`));
    if (focus) {
      const i = sorted.indexOf(focus);
      const button = [...body.querySelectorAll('tr.group button.fold')].find(b => b.getAttribute('aria-label').endsWith(focus.name));
      if (i >= 0 && button) button.focus();
    }
  }
  draw();
  const whole = el('div', {}, el('div', {class: 'scroll', tabindex: '0', role: 'region', 'aria-label': caption},
    el('table', {}, el('caption', {}, caption), el('thead', {}, head), body)), more);
  whole.show = now => { rows = now; draw(); };
  return whole;
}
const swatch = color => el('span', {class: 'swatch', 'aria-hidden': 'true', color});
const legend = (label, entries) => el('ul', {class: 'legend', 'aria-label': label},
  entries.map(([name, color]) => el('li', {title: name}, swatch(color), name)));
