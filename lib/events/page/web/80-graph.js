// The graph of the stages, in layers from left to right. Stages of a name but for its
// number are one box where there are many; an edge back to an earlier layer (a loop of
// such stages) is dashed.
function graphNodes() {
  const byName = new Map(), nameOf = s => FOLDED ? s.stem : s.name;
  for (const s of STAGES) {
    const name = nameOf(s);
    if (!byName.has(name)) byName.set(name, {name, stages: [], parents: new Set()});
    byName.get(name).stages.push(s);
  }
  for (const s of STAGES)
    for (const p of s.parents || []) {
      const from = byName.get(nameOf(STAGES[p]));
      if (from !== byName.get(nameOf(s))) byName.get(nameOf(s)).parents.add(from);
      else byName.get(nameOf(s)).loops = true;
    }
  return [...byName.values()];
}

function drawGraph() {
  const here = section('graph'), nodes = graphNodes();
  if (nodes.length > 400) {
    here.append(el('p', {class: 'soft'}, `${count(nodes.length)} kinds of stages are too many to draw.`));
    return;
  }
  // Layers: the longest way from a beginning; an edge that closes a circle is put aside.
  const state = new Map(), back = new Set();
  const visit = n => {
    state.set(n, 1);
    n.layer = 0;
    for (const p of n.parents) {
      if (state.get(p) === 1) { back.add(n.name + '\n' + p.name); continue; }
      if (!state.get(p)) visit(p);
      n.layer = Math.max(n.layer, p.layer + 1);
    }
    state.set(n, 2);
  };
  for (const n of nodes) if (!state.get(n)) visit(n);
  const layers = [];
  for (const n of nodes) (layers[n.layer] = layers[n.layer] || []).push(n);
  // Each in the middle of those it comes after, then of those that come after it.
  layers.forEach(l => l.forEach((n, i) => { n.order = i; }));
  for (let round = 0; round < 6; round++)
    layers.forEach(l => {
      for (const n of l) {
        const near = round % 2 ? nodes.filter(m => m.parents.has(n)) : [...n.parents];
        n.weight = near.length ? near.reduce((t, m) => t + m.order / layers[m.layer].length, 0) / near.length : n.order / l.length;
      }
      l.sort((a, b) => a.weight - b.weight).forEach((n, i) => { n.order = i; });
    });
  const W = 176, H = 46, DX = 232, DY = 60;
  const tallest = Math.max(...layers.map(l => l.length));
  for (const l of layers) l.forEach((n, i) => { n.x = 10 + n.layer * DX; n.y = 10 + (i + (tallest - l.length) / 2) * DY; });
  const width = layers.length * DX, height = tallest * DY + 20;
  const box = el('div', {class: 'chart graph', tabindex: '0', role: 'region', 'aria-label': 'Graph of the stages; the list below has the same'});
  const draw = () => {
    const edges = [], boxes = [];
    for (const n of nodes)
      for (const p of n.parents) {
        const loop = back.has(n.name + '\n' + p.name);
        const x1 = p.x + W, y1 = p.y + H / 2, x2 = n.x, y2 = n.y + H / 2, bend = Math.max((x2 - x1) / 2, 28);
        edges.push(svg('path', {d: `M${x1} ${y1}C${x1 + bend} ${y1} ${x2 - bend} ${y2} ${x2} ${y2}`, fill: 'none', stroke: css('--strong-line'),
          'stroke-width': 1.3, 'stroke-dasharray': loop ? '4 3' : null, 'marker-end': 'url(#arrow)'}));
      }
    for (const n of nodes) {
      const reports = n.stages.filter(s => s.report).map(s => s.report);
      const bad = reports.some(r => r.outcome === 'failed'), tasks = reports.reduce((t, r) => t + r.tasks, 0);
      const held = reports.reduce((t, r) => t + r.held.cores, 0);
      const title = `${n.name}: ${[...new Set(reports.map(r => r.outcome))].join(', ')}, ${count(tasks)} tasks, ${amount(held, 'core')} held${n.stages.length > 1 ? `, ${n.stages.length} stages` : ''}`;
      const short = n.name.length > 23 ? n.name.slice(0, 22) + '…' : n.name;
      boxes.push(svg('g', {transform: `translate(${n.x} ${n.y})`}, svg('title', {}, title),
        svg('rect', {width: W, height: H, rx: 5, fill: css('--panel'), stroke: bad ? css('--bad') : css('--strong-line'), 'stroke-width': bad ? 2 : 1}),
        svg('rect', {width: 5, height: H, rx: 2, fill: stageColor(n.stages[0])}),
        svg('text', {x: 13, y: 19, 'font-weight': 600}, short + (n.stages.length > 1 ? '…' : '')),
        svg('text', {x: 13, y: 36, class: 'soft'}, `${count(tasks)} task${tasks === 1 ? '' : 's'}${n.stages.length > 1 ? ` · ${n.stages.length} stages` : ''}${bad ? ' · failed' : ''}${n.loops ? ' ↻' : ''}`)));
    }
    box.replaceChildren(svg('svg', {width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `${nodes.length} stages in ${layers.length} layers`},
      svg('defs', {}, svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 8, refY: 4, markerWidth: 7, markerHeight: 7, orient: 'auto'}, svg('path', {d: 'M0 0L8 4L0 8Z', fill: css('--strong-line')}))),
      edges, boxes));
    box.firstChild.style.width = width + 'px';
    box.firstChild.style.maxWidth = 'none';
  };
  redraw.push(draw);
  draw();
  here.append(box, el('details', {class: 'table'}, el('summary', {}, 'The graph as a list'), el('ul', {class: 'plain'},
    nodes.map(n => el('li', {}, el('b', {}, n.name), n.parents.size ? ' after ' + [...n.parents].map(p => p.name).join(', ') : ' at the beginning')))));
}
