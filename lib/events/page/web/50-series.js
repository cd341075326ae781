// Cores, memory and devices over time: what was held and what was asked for as outlines,
// what was used as areas, one above the other.
function drawSeries() {
  const here = section('resources'), S = PAGE.series;
  const unpack = v => {
    const list = [];
    for (const n of v || []) if (n < 0) for (let i = 0; i < -n; i++) list.push(0); else list.push(n / 1000);
    while (list.length < S.bins) list.push(0);
    return list;
  };
  const QUANTITIES = ['Cores', 'Memory', ...PAGE.devices];
  const say = (q, n) => q === 0 ? count(n) : q === 1 ? mib(n) : number.format(n);
  const any = q => ['asked', 'held', 'used'].some(m => S[m].some(l => l.v[q]));
  let by = 'stages', profile = '';
  const charts = [];
  const choose = (label, value) => el('button', {type: 'button', 'aria-pressed': String(by === value), on: {click: e => {
    by = value;
    for (const b of e.target.parentNode.querySelectorAll('[aria-pressed]')) b.setAttribute('aria-pressed', String(b === e.target));
    for (const c of charts) c();
  }}}, label);
  here.append(el('div', {class: 'tools'}, soft('Used, by'), choose('stage', 'stages'), choose('profile', 'used'),
    PAGE.profiles.length > 1 ? el('label', {}, 'Profile', el('select', {on: {change: e => { profile = e.target.value; for (const c of charts) c(); }}},
      el('option', {value: ''}, 'all'), PAGE.profiles.slice(0, 12).map((p, i) => el('option', {value: String(i)}, p.name)))) : '',
    el('span', {class: 'gap'}), zoomButtons()));
  const keep = line => profile === '' || String(line.of) === profile ||
    (by === 'stages' && line.of !== null && line.stage && String(STAGES[line.of].profile) === profile);
  const sum = (lines, q) => {
    const total = new Array(S.bins).fill(0);
    for (const l of lines) if (l.v[q] && keep(l)) unpack(l.v[q]).forEach((n, i) => { total[i] += n; });
    return total;
  };
  for (const l of S.stages) l.stage = true;

  QUANTITIES.forEach((name, q) => {
    if (!any(q)) return;
    const W = 1000, H = 150, left = 76, bottom = 20;
    const drawing = svg('svg', {viewBox: `0 0 ${W} ${H + bottom}`, tabindex: '0', role: 'img', height: H + bottom, preserveAspectRatio: 'none'});
    const told = el('div', {class: 'detail', 'aria-live': 'polite'}), legendBox = el('div');
    let cursor = null, model = null, width = W;
    here.append(el('h3', {}, q === 1 ? 'Memory (used: the sum of the peaks of the tasks that ran)' : name), el('div', {class: 'chart'}, drawing, told), legendBox);
    function collect() {
      const lines = (by === 'stages' ? S.stages : S.used).filter(l => l.v[q] && keep(l)).map(l => ({
        name: l.of === null ? 'others' : by === 'stages' ? STAGES[l.of].name : profileName(l.of),
        color: l.of === null ? css('--soft') : by === 'stages' ? stageColor(STAGES[l.of]) : profileColor(l.of), v: unpack(l.v[q])}));
      // Stages of one name (of several starts) are one.
      const merged = new Map();
      for (const l of lines) {
        const m = merged.get(l.name);
        if (m) m.v = m.v.map((n, i) => n + l.v[i]); else merged.set(l.name, l);
      }
      const held = sum(S.held, q), asked = sum(S.asked, q).map((n, i) => n + held[i]);
      const used = [...merged.values()].reduce((t, l) => t.map((n, i) => n + l.v[i]), new Array(S.bins).fill(0));
      const most = Math.max(...held, ...asked, ...used, 1e-9);
      // The axis of cores has whole numbers, at its middle too.
      return {lines: [...merged.values()], held, asked, used, most: q === 0 ? 2 * Math.ceil(most / 2) : most};
    }
    const step = PAGE.length / S.bins;
    const X = at => left + (at - VIEW.from) / (VIEW.to - VIEW.from) * (width - left - 8);
    const Y = n => H - n / model.most * (H - 14);
    const range = () => [Math.max(Math.floor(VIEW.from / step), 0), Math.min(Math.ceil(VIEW.to / step), S.bins)];
    const outline = (v, base) => {
      const [a, b] = range();
      let d = '';
      for (let i = a; i < b; i++) d += `${i === a ? 'M' : 'L'}${X(i * step).toFixed(1)} ${Y(v[i]).toFixed(1)}H${X((i + 1) * step).toFixed(1)}`;
      if (!base) return d;
      for (let i = b - 1; i >= a; i--) d += `L${X((i + 1) * step).toFixed(1)} ${Y(base[i]).toFixed(1)}H${X(i * step).toFixed(1)}`;
      return d + 'Z';
    };
    function tell() {
      const i = cursor === null ? null : Math.min(Math.max(Math.floor(cursor / step), 0), S.bins - 1);
      if (i === null) {
        told.replaceChildren(soft(`Most at once: ${say(q, Math.max(...model.held))} held, ${say(q, Math.max(...model.used))} used. Point at the chart, or press `), el('kbd', {}, ','), ' ', el('kbd', {}, '.'));
        return;
      }
      told.replaceChildren(el('b', {}, clock(i * step)), ` held ${say(q, model.held[i])}, used ${say(q, model.used[i])} (${percent(model.used[i], model.held[i])})`,
        model.asked[i] > model.held[i] + 1e-6 ? `, asked for besides ${say(q, model.asked[i] - model.held[i])}` : '', ' · ',
        model.lines.filter(l => l.v[i] > 0).sort((a, b) => b.v[i] - a.v[i]).slice(0, 8).map(l => [swatch(l.color), `${l.name} ${say(q, l.v[i])}  `]).flat());
    }
    function draw() {
      model = collect();
      width = Math.max(drawing.clientWidth, 320);
      drawing.setAttribute('viewBox', `0 0 ${width} ${H + bottom}`);
      drawing.setAttribute('aria-label', `${name} over time: at most ${say(q, Math.max(...model.held))} held and ${say(q, Math.max(...model.used))} used at once; the table of stages has the sums`);
      const base = new Array(S.bins).fill(0), parts = [];
      parts.push(svg('path', {d: outline(model.held, base), fill: css('--held')}));
      let below = base;
      for (const l of model.lines) {
        const above = below.map((n, i) => n + l.v[i]);
        parts.push(svg('path', {d: outline(above, below), fill: l.color}, svg('title', {}, l.name)));
        below = above;
      }
      parts.push(svg('path', {d: outline(model.asked), fill: 'none', stroke: css('--soft'), 'stroke-dasharray': '4 3'}));
      parts.push(svg('path', {d: outline(model.held), fill: 'none', stroke: css('--text'), 'stroke-width': 1.3}));
      const axis = [svg('rect', {x: 0, y: 0, width: left, height: H + bottom, fill: css('--back')})];
      for (const part of [0, .5, 1]) {
        const y = Y(model.most * part);
        axis.push(svg('line', {class: 'axis', x1: left, x2: width - 8, y1: y, y2: y}), svg('text', {class: 'soft', x: left - 6, y: y + 4, 'text-anchor': 'end'}, say(q, model.most * part)));
      }
      for (const t of ticks(width - left)) if (X(t.at) < width - 30) axis.push(svg('text', {class: 'soft', x: X(t.at), y: H + 15}, t.text));
      if (cursor !== null) axis.push(svg('line', {x1: X(cursor), x2: X(cursor), y1: 0, y2: H, stroke: css('--text')}));
      drawing.replaceChildren(...parts, ...axis);
      legendBox.replaceChildren(legend('Colours', [...model.lines.map(l => [l.name, l.color]), ['held (outline)', css('--held')], ['asked for besides (dashes)', css('--soft')]]));
      tell();
    }
    const move = by => () => { cursor = Math.min(Math.max((cursor === null ? VIEW.from : cursor) + by * step, 0), PAGE.length - step / 2); draw(); };
    const gestures = navigates(drawing, () => left, () => width - left - 8, {'.': move(1), ',': move(-1), '>': move(10), '<': move(-10), Escape: () => { cursor = null; draw(); }});
    drawing.addEventListener('pointermove', e => { if (!gestures.dragged()) { cursor = gestures.timeAt(e.offsetX); draw(); } });
    charts.push(draw);
    VIEW.listeners.push(draw);
    redraw.push(draw);
    draw();
  });
  if (!charts.length) here.append(el('p', {class: 'soft'}, 'Nothing was held.'));
  else here.append(KEYS([el('kbd', {}, ','), ' ', el('kbd', {}, '.'), ' read the values']));
}
