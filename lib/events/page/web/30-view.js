// The stretch of time that timeline and charts show, and a canvas or SVG's axis for it.
const VIEW = {from: 0, to: PAGE.length, listeners: []};
function show(from, to) {
  const least = Math.min(Math.max(PAGE.length / 20000, 5), PAGE.length);
  const width = Math.min(Math.max(to - from, least), PAGE.length);
  VIEW.from = Math.min(Math.max(from, 0), PAGE.length - width);
  VIEW.to = VIEW.from + width;
  for (const f of VIEW.listeners) f();
}
function zoom(factor, around) {
  const at = around === undefined ? (VIEW.from + VIEW.to) / 2 : around;
  show(at - (at - VIEW.from) * factor, at + (VIEW.to - at) * factor);
}
const pan = part => { const by = (VIEW.to - VIEW.from) * part; show(VIEW.from + by, VIEW.to + by); };

const STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 15000, 30000, 60000, 120000, 300000,
  600000, 900000, 1800000, 3600000, 7200000, 14400000, 21600000, 43200000, 86400000, 172800000, 604800000];
// Times to write at an axis: [{at, text}], since the beginning.
function ticks(width) {
  const span = VIEW.to - VIEW.from, most = Math.max(2, Math.floor(width / 110));
  const step = STEPS.find(s => span / s <= most) || STEPS[STEPS.length - 1];
  const list = [];
  for (let at = Math.ceil(VIEW.from / step) * step; at <= VIEW.to; at += step)
    list.push({at, text: at === 0 ? '0' : step < 1000 ? number.format(at / 1000) + ' s' : shortTime(at)});
  return list;
}
function shortTime(ms) {
  const s = Math.round(ms / 1000), h = Math.floor(s / 3600), m = Math.floor(s % 3600 / 60);
  if (s < 60) return s + ' s';
  if (s < 3600) return m + ':' + two(s % 60) + ' min';
  return (h < 48 ? h : Math.floor(h / 24) + 'd ' + h % 24) + ':' + two(m) + (s % 60 ? ':' + two(s % 60) : '') + ' h';
}

// The same keys and gestures on each drawing of time.
function navigates(node, x0, width, more) {
  const timeAt = x => VIEW.from + (x - x0()) / width() * (VIEW.to - VIEW.from);
  node.addEventListener('keydown', e => {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const keys = {ArrowLeft: () => pan(-.1), ArrowRight: () => pan(.1), '+': () => zoom(.6), '=': () => zoom(.6),
      '-': () => zoom(1 / .6), '0': () => show(0, PAGE.length), Home: () => show(0, VIEW.to - VIEW.from),
      End: () => show(PAGE.length, PAGE.length * 2), ...more};
    if (!keys[e.key]) return;
    keys[e.key](e);
    e.preventDefault();
  });
  node.addEventListener('wheel', e => {
    if (e.ctrlKey) zoom(e.deltaY < 0 ? .8 : 1.25, timeAt(e.offsetX));
    else if (Math.abs(e.deltaX) > Math.abs(e.deltaY)) pan(e.deltaX / width());
    else return;
    e.preventDefault();
  }, {passive: false});
  let drag = null;
  node.addEventListener('pointerdown', e => {
    drag = {x: e.clientX, from: VIEW.from, to: VIEW.to, moved: false};
  });
  node.addEventListener('pointermove', e => {
    if (!drag || !(e.buttons & 1)) { drag = null; return; }
    if (Math.abs(e.clientX - drag.x) > 4 && !drag.moved) { drag.moved = true; node.setPointerCapture(e.pointerId); }
    const by = (drag.x - e.clientX) / width() * (drag.to - drag.from);
    if (drag.moved) show(drag.from + by, drag.to + by);
  });
  node.addEventListener('pointerup', () => { setTimeout(() => { drag = null; }, 0); });
  node.addEventListener('dblclick', e => zoom(.4, timeAt(e.offsetX)));
  return {timeAt, dragged: () => drag !== null && drag.moved};
}
const KEYS = extra => el('p', {class: 'note keys'}, 'Keys: ',
  [['←', '→'], ['+', '−'], ['0']].map((k, i) => [k.map(x => [el('kbd', {}, x), ' ']), ['move, ', 'zoom, ', 'all, '][i]]), extra,
  '. Mouse: drag, double click, ', el('kbd', {}, 'Ctrl'), ' + wheel.');
const zoomButtons = () => [['−', 'Zoom out', () => zoom(1 / .6)], ['+', 'Zoom in', () => zoom(.6)],
  ['◀', 'Earlier', () => pan(-.3)], ['▶', 'Later', () => pan(.3)], ['All', 'Show all of the run', () => show(0, PAGE.length)]]
  .map(([text, label, f]) => el('button', {type: 'button', 'aria-label': label, title: label, on: {click: f}}, text));
