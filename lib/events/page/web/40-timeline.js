// Executors by node and profile, with their tasks. Executors of a profile on a node that
// were there one after the other share a track; a track is as high as it has tasks at
// once. Only what is to be seen is drawn.
const TL = PAGE.timeline;

function decode(row) {
  const list = [];
  let begin = 0;
  for (let i = 0; i < row.t.length; i += 7) {
    begin += row.t[i];
    const attempt = row.t[i + 4];
    list.push({begin, end: begin + row.t[i + 1], stage: row.t[i + 2], task: row.t[i + 3],
      attempt: attempt < 0 ? -attempt - 1 : attempt, copy: attempt < 0, how: row.t[i + 5], level: row.t[i + 6], row});
  }
  return list;
}

// A lane for each task, such that those of a lane do not overlap.
function lanes(tasks) {
  const ends = [];
  for (const t of tasks) {
    let lane = ends.findIndex(e => e <= t.begin);
    if (lane < 0) lane = ends.length;
    ends[lane] = Math.max(t.end, t.begin + 1);
    t.lane = lane;
  }
  return ends.length;
}

// Nodes: [{name, tracks: [{label, profile, spans: [row], tasks, lanes, binned}]}]
function makeNodes() {
  const nodes = new Map();
  const node = name => {
    if (!nodes.has(name)) nodes.set(name, {name, tracks: [], folded: false});
    return nodes.get(name);
  };
  for (const row of TL.rows) {
    const tasks = decode(row), height = Math.max(row.b ? 1 : lanes(tasks), 1);
    const from = row.f === undefined ? (tasks.length ? tasks[0].begin : 0) : row.f;
    const to = row.g === undefined ? PAGE.length : row.g;
    const gang = row.gang !== undefined;
    const at = node(gang ? 'gangs (MPI)' : row.n === null ? 'all nodes' : PAGE.hosts[row.n]);
    const label = gang ? STAGES[row.gang].name : row.p === null ? 'all' : profileName(row.p);
    let track = gang ? null : at.tracks.find(t => t.label === label && !t.gang && t.end <= from && t.start === row.s);
    if (!track) at.tracks.push(track = {label, gang, rows: [], tasks: [], lanes: 1, end: 0, start: row.s, node: at});
    track.rows.push(row);
    track.tasks.push(...tasks);
    track.binned = track.binned || row.b !== undefined;
    track.lanes = Math.max(track.lanes, height);
    track.end = to;
  }
  return [...nodes.values()].sort((a, b) => a.name.localeCompare(b.name, 'en', {numeric: true}));
}

function drawTimeline() {
  const here = section('timeline');
  if (!TL.rows.length) {
    here.append(el('p', {class: 'soft'}, 'No executor came, and no gang ran: there is nothing to show.'));
    return;
  }
  const nodes = makeNodes(), all = nodes.flatMap(n => n.tracks);
  const only = {stage: '', profile: ''};
  const gutter = 168, top = 24;
  const canvas = el('canvas', {tabindex: '0', role: 'img', 'aria-describedby': 'timeline-keys timeline-detail',
    'aria-label': `Timeline of ${all.length} tracks of executors on ${nodes.length} nodes; the table below has the same`});
  const spacer = el('div', {}), box = el('div', {class: 'lanes'}, canvas, spacer);
  const detail = el('div', {class: 'detail', id: 'timeline-detail', 'aria-live': 'polite'}, soft('Point at a task, or select one with the keys.'));
  const names = [...new Set(STAGES.map(s => FOLDED ? s.stem : s.name))];
  const pick = (label, values, set) => el('label', {}, label, el('select', {on: {change: e => { set(e.target.value); draw(); }}},
    el('option', {value: ''}, 'all'), values.map(v => el('option', {value: v}, v))));
  if (all.length > 60) for (const n of nodes) n.folded = n.tracks.length > 1;
  const foldAll = el('button', {type: 'button', 'aria-pressed': String(nodes.some(n => n.folded)), on: {click: () => {
    const on = foldAll.getAttribute('aria-pressed') !== 'true';
    foldAll.setAttribute('aria-pressed', String(on));
    for (const n of nodes) n.folded = on && n.tracks.length > 1;
    draw();
  }}}, 'One row a node');
  here.append(el('div', {class: 'tools'}, zoomButtons(), foldAll,
    names.length > 1 && names.length <= 400 ? pick('Stage', names, v => { only.stage = v; }) : '',
    PAGE.profiles.length > 1 ? pick('Profile', PAGE.profiles.map(p => p.name), v => { only.profile = v; }) : ''),
  el('div', {class: 'chart'}, box, detail));
  const bins = TL.by !== 'executor' ? ` There are too many executors to show each: rows are ${TL.by}s.` : '';
  if (bins || all.some(t => t.binned))
    here.append(el('p', {class: 'note'}, `Where a row has too many tasks to show each, it shows how much of it each stage used in ${TL.bins} equal parts of the time, and failures one by one.` + bins));
  here.append(KEYS([el('kbd', {}, '↑'), ' ', el('kbd', {}, '↓'), ' row, ', el('kbd', {}, 'Enter'), ' next task in it, ', el('kbd', {}, 'Shift'), '+', el('kbd', {}, 'Enter'), ' the one before']));
  here.querySelector('.keys').id = 'timeline-keys';
  const legends = el('div');
  here.append(legends);

  // What is laid out below another: {y, height, node or track}.
  let lines = [], selected = {line: -1, task: null};
  function layout() {
    let y = top;
    lines = [];
    if (PAGE.jobs.length) {
      const shown = PAGE.jobs.slice(0, 12);
      lines.push({y, height: 16 * shown.length + 6, jobs: shown, label: 'Slurm jobs'});
      y += 16 * shown.length + 6;
    }
    for (const n of nodes) {
      const tracks = n.tracks.filter(t => !only.profile || t.rows.some(r => r.p !== null && profileName(r.p) === only.profile));
      if (!tracks.length) continue;
      if (n.folded) {
        lines.push({y, height: 22, node: n, tracks, label: n.name});
        y += 22;
        continue;
      }
      lines.push({y, height: 20, head: n, label: n.name});
      y += 20;
      for (const t of tracks) {
        const lane = t.binned ? 16 : t.lanes > 16 ? 4 : t.lanes > 6 ? 6 : 9;
        const height = t.lanes * lane + 6;
        lines.push({y, height, track: t, lane, label: t.label});
        y += height;
      }
      y += 4;
    }
    return y + 6;
  }

  let width = 800, height = 300, ctx = null;
  const x = at => gutter + (at - VIEW.from) / (VIEW.to - VIEW.from) * (width - gutter - 8);
  const matches = s => !only.stage || (FOLDED ? STAGES[s].stem : STAGES[s].name) === only.stage;
  function clip(text, room) {
    if (ctx.measureText(text).width <= room) return text;
    let n = text.length;
    while (n > 1 && ctx.measureText(text.slice(0, n) + '…').width > room) n = Math.floor(n * .9);
    return text.slice(0, n) + '…';
  }

  function drawTask(t, y, h) {
    const a = x(t.begin), w = Math.max(x(t.end) - a, 1);
    if (a > width || a + w < gutter) return;
    const bad = t.how === 2 || t.how === 4;
    ctx.globalAlpha = matches(t.stage) ? 1 : .12;
    ctx.fillStyle = bad ? colors.bad : stageColor(STAGES[t.stage]);
    ctx.fillRect(a, y, w > 3 ? w - .8 : w, h - 1);
    if (bad && w > 5) { // a mark besides the colour
      ctx.strokeStyle = colors.back;
      ctx.beginPath();
      ctx.moveTo(a + 1, y); ctx.lineTo(a + Math.min(w, h + 2), y + h - 1);
      ctx.moveTo(a + Math.min(w, h + 2), y); ctx.lineTo(a + 1, y + h - 1);
      ctx.stroke();
    }
    if ((t.how === 3 || t.copy) && w > 5) {
      ctx.strokeStyle = colors.text;
      ctx.setLineDash([2, 2]);
      ctx.strokeRect(a + .5, y + .5, w - 1.8, h - 2);
      ctx.setLineDash([]);
    }
    if (t === selected.task) {
      ctx.strokeStyle = colors.text;
      ctx.lineWidth = 2;
      ctx.strokeRect(a - 1, y - 1, w + 1, h + 1);
      ctx.lineWidth = 1;
    }
    ctx.globalAlpha = 1;
  }
  // Shares of a row, one stage above the other.
  function drawBins(row, y, h) {
    const step = PAGE.length / TL.bins;
    let bin = -1, used = 0;
    for (let i = 0; i < row.b.length; i += 3) {
      if (row.b[i] !== bin) { bin = row.b[i]; used = 0; }
      const a = x(bin * step), w = x((bin + 1) * step) - a, share = Math.min(row.b[i + 2] / 1000, 1);
      const part = Math.max(share * h, .6);
      if (a <= width && a + w >= gutter) {
        ctx.globalAlpha = matches(row.b[i + 1]) ? 1 : .12;
        ctx.fillStyle = stageColor(STAGES[row.b[i + 1]]);
        ctx.fillRect(a, y + h - used - part, w + .3, part);
      }
      used += part;
    }
    ctx.globalAlpha = 1;
  }
  function drawRow(row, line, y, inner) {
    if (row.f !== undefined) {
      const a = x(row.f), b = x(row.g);
      if (row.a < row.f) { // asked for, and not there yet
        ctx.strokeStyle = colors.soft;
        ctx.setLineDash([3, 3]);
        ctx.beginPath();
        ctx.moveTo(Math.max(x(row.a), gutter), y + inner / 2 + .5); ctx.lineTo(Math.max(a, gutter), y + inner / 2 + .5);
        ctx.stroke();
        ctx.setLineDash([]);
      }
      ctx.fillStyle = colors.held;
      ctx.fillRect(Math.max(a, gutter), y - 1, Math.max(b - Math.max(a, gutter), 0), inner + 2);
      ctx.fillStyle = profileColor(row.p);
      if (a >= gutter) ctx.fillRect(a, y - 1, 2, inner + 2);
      if (row.w && b > gutter) { // it was lost
        ctx.fillStyle = colors.bad;
        ctx.fillRect(b - 2, y - 2, 3, inner + 4);
      }
    }
    if (row.b) drawBins(row, y, inner);
  }
  function drawLine(line, y) {
    ctx.fillStyle = colors.text;
    if (line.jobs) {
      line.jobs.forEach((j, i) => {
        const at = y + i * 16 + 2, ran = j.at !== null, a = Math.max(x(ran ? j.at : j.end), gutter), b = Math.max(x(j.end), a + 2);
        if (j.asked !== null) {
          ctx.strokeStyle = colors.soft;
          ctx.setLineDash([3, 3]);
          ctx.beginPath(); ctx.moveTo(Math.max(x(j.asked), gutter), at + 6.5); ctx.lineTo(a, at + 6.5); ctx.stroke();
          ctx.setLineDash([]);
        }
        ctx.fillStyle = colors.panel;
        ctx.strokeStyle = colors.strong;
        if (ran) {
          ctx.fillRect(a, at, b - a, 13);
          ctx.strokeRect(a + .5, at + .5, b - a - 1, 12);
        }
        ctx.fillStyle = colors.text;
        ctx.fillText(clip(`job ${j.id}${!ran ? ', never began' : j.further ? ', additional' : ''}`, 150), a + 4, at + 10);
      });
    } else if (line.head) {
      ctx.font = '600 12px system-ui, sans-serif';
      ctx.fillText(clip(line.label, gutter + 200), 8, y + 14);
      ctx.font = '12px system-ui, sans-serif';
      ctx.fillStyle = colors.line;
      ctx.fillRect(8, y + 19, width - 16, 1);
    } else if (line.node) {
      for (const t of line.tracks) for (const r of t.rows) drawRow(r, line, y + 3, 16);
      for (const t of line.tracks) for (const k of t.tasks) drawTask(k, y + 3 + (16 * k.lane / t.lanes), Math.max(16 / t.lanes, 2));
    } else {
      for (const r of line.track.rows) drawRow(r, line, y + 3, line.height - 6);
      for (const t of line.track.tasks) drawTask(t, y + 3 + (line.track.binned ? 0 : t.lane * line.lane), line.track.binned ? 16 : line.lane);
    }
    if (line.jobs || line.head) return;
    ctx.fillStyle = colors.back;
    ctx.fillRect(0, y, gutter - 1, line.height);
    ctx.fillStyle = line.node ? colors.text : colors.soft;
    ctx.fillText(clip(line.label, gutter - (line.node ? 16 : 30)), line.node ? 8 : 22, y + Math.min(line.height / 2 + 4, 16));
    if (!line.node) { ctx.fillStyle = profileColor(line.track.rows[0].p); ctx.fillRect(12, y + Math.min(line.height / 2 + 4, 16) - 9, 5, 10); }
    if (lines[selected.line] === line) {
      ctx.strokeStyle = colors.accent;
      ctx.lineWidth = 2;
      ctx.strokeRect(3, y + 1, width - 6, line.height - 1);
      ctx.lineWidth = 1;
    }
  }

  let colors = {};
  function draw() {
    const content = layout();
    const ratio = window.devicePixelRatio || 1;
    width = Math.max(box.clientWidth, 320);
    height = Math.min(content, Math.max(260, window.innerHeight * .7));
    spacer.style.height = content - height + 'px';
    canvas.style.height = height + 'px';
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    ctx = canvas.getContext('2d');
    ctx.scale(ratio, ratio);
    colors = {back: css('--back'), text: css('--text'), soft: css('--soft'), line: css('--line'), strong: css('--strong-line'),
      held: css('--held'), bad: css('--bad'), panel: css('--panel'), accent: css('--accent')};
    ctx.font = '12px system-ui, sans-serif';
    ctx.fillStyle = colors.back;
    ctx.fillRect(0, 0, width, height);
    const off = box.scrollTop;
    ctx.strokeStyle = colors.line;
    for (const t of ticks(width - gutter)) {
      ctx.beginPath(); ctx.moveTo(Math.round(x(t.at)) + .5, top - 4); ctx.lineTo(Math.round(x(t.at)) + .5, height); ctx.stroke();
    }
    for (const s of PAGE.axis.slice(1)) { // another start of the run begins
      ctx.fillStyle = colors.strong;
      if (s[2] >= VIEW.from && s[2] <= VIEW.to) ctx.fillRect(x(s[2]) - 1, top - 4, 2, height);
    }
    for (const line of lines)
      if (line.y - off < height && line.y + line.height - off > top) drawLine(line, line.y - off);
    ctx.fillStyle = colors.back;
    ctx.fillRect(0, 0, width, top - 4);
    ctx.fillStyle = colors.soft;
    for (const t of ticks(width - gutter)) if (x(t.at) < width - 40) ctx.fillText(t.text, x(t.at) + 2, 14);
    legends.replaceChildren(names.length <= 60 ? legend('Colours of stages', names.map(n => [n, COLORS[theme()][colorOf.get(n) % 12]])) : '',
      legend('Other marks', [['executor, as long as it was there', colors.held], ['failed or lost', colors.bad]]));
  }

  // ---- telling about one ----
  const where = r => r.n === null ? '' : ' on ' + PAGE.hosts[r.n];
  function tellTask(t) {
    const s = STAGES[t.stage];
    detail.replaceChildren(swatch(stageColor(s)), el('b', {}, s.name), ` task ${taskWord(t.task, s.names && s.names[t.task])}, attempt ${t.attempt}${t.copy ? ' (a copy)' : ''}: `,
      el('span', {class: t.how === 2 || t.how === 4 ? 'fail' : null}, ENDS[t.how]), ` after ${time(t.end - t.begin)}, from ${clock(t.begin)} (${time(t.begin)} in)`,
      t.row.x !== undefined ? ` · executor ${t.row.x}${where(t.row)} · locality: ${LEVELS[t.level]}` : ' · a gang', STARTS.length > 1 ? ` · start ${s.start + 1}` : '');
  }
  function tellRow(r) {
    detail.replaceChildren(el('b', {}, `executor ${r.x}`), `${where(r)} · profile ${profileName(r.p)} · ${count(r.c)} cores, ${count(r.k)} slots · asked for ${time(r.f - r.a)} before it came at ${clock(r.f)} · `,
      r.o ? 'no end in the log' : `there for ${time(r.g - r.f)}`, r.j ? ` · Slurm job ${r.j}` : '', r.w ? [' · ', el('span', {class: 'fail'}, 'it went: ' + r.w)] : '');
  }
  function tellLine(line) {
    if (line.jobs) detail.replaceChildren(...line.jobs.map((j, i) => [
      i ? ' · ' : '',
      `Slurm job ${j.id}${j.further ? ' (additional)' : ''}` +
        (j.at === null ? '' : ` from ${clock(j.at)} for ${time(j.end - j.at)}`) +
        (j.asked === null ? '' : `, ${time((j.at === null ? j.end : j.at) - j.asked)} in the queue`),
    ]).flat());
    else if (line.track && line.track.rows.length === 1 && line.track.rows[0].x !== undefined) tellRow(line.track.rows[0]);
    else detail.replaceChildren(el('b', {}, line.label), ` · ${count((line.tracks || [line.track]).reduce((n, t) => n + t.rows.length, 0))} executors`);
  }
  function at(e) {
    const y = e.offsetY + box.scrollTop, line = lines.find(l => y >= l.y && y < l.y + l.height);
    if (!line || e.offsetX < gutter) return {line};
    const when = gestures.timeAt(e.offsetX), slack = (VIEW.to - VIEW.from) / width * 2;
    for (const t of line.tracks || (line.track ? [line.track] : [])) {
      const lane = line.node ? Math.floor((y - line.y - 3) / Math.max(16 / t.lanes, 2)) : t.binned ? 0 : Math.floor((y - line.y - 3) / line.lane);
      const task = t.tasks.find(k => k.begin - slack <= when && when <= k.end + slack && (t.binned || k.lane === lane));
      const row = t.rows.find(r => r.f !== undefined && r.f <= when && when <= r.g);
      if (task || row) return {line, task, row};
    }
    return {line};
  }
  const tell = hit => hit.task ? tellTask(hit.task) : hit.row ? tellRow(hit.row) : null;
  const reveal = line => {
    if (line.y - box.scrollTop < top) box.scrollTop = line.y - top;
    else if (line.y + line.height - box.scrollTop > height) box.scrollTop = line.y + line.height - height + 4;
  };
  const step = by => () => {
    let i = selected.line;
    do i += by; while (lines[i] && lines[i].head);
    if (!lines[i]) return;
    selected = {line: i, task: null};
    reveal(lines[i]);
    tellLine(lines[i]);
    draw();
  };
  const next = e => {
    const line = lines[selected.line];
    const tasks = line ? (line.tracks || (line.track ? [line.track] : [])).flatMap(t => t.tasks).sort((a, b) => a.begin - b.begin) : [];
    if (!tasks.length) return;
    const i = tasks.indexOf(selected.task) + (e.shiftKey ? -1 : 1);
    selected.task = tasks[Math.min(Math.max(i, 0), tasks.length - 1)];
    if (selected.task.begin < VIEW.from || selected.task.end > VIEW.to) {
      const half = (VIEW.to - VIEW.from) / 2;
      show(selected.task.begin - half, selected.task.begin + half);
    }
    tellTask(selected.task);
    draw();
  };
  const gestures = navigates(canvas, () => gutter, () => width - gutter - 8, {ArrowUp: step(-1), ArrowDown: step(1), Enter: next, ' ': next});
  canvas.addEventListener('pointermove', e => { if (!gestures.dragged() && !selected.task) tell(at(e)); });
  canvas.addEventListener('click', e => {
    if (gestures.dragged()) return;
    const hit = at(e);
    selected = {line: lines.indexOf(hit.line), task: hit.task || null};
    if (hit.line && !tell(hit)) tellLine(hit.line);
    draw();
  });
  box.addEventListener('scroll', draw);
  VIEW.listeners.push(draw);
  redraw.push(draw);
  draw();
  executorTable(here);
}

function executorTable(here) {
  const rows = TL.rows.filter(r => r.x !== undefined);
  if (!rows.length) return;
  here.append(el('details', {class: 'table'}, el('summary', {}, `Executors as a table (${count(rows.length)})`), table({
    caption: 'Executors', rows, columns: [
      {name: 'Executor', text: true, sort: r => r.x, cell: r => String(r.x)},
      {name: 'Node', text: true, sort: r => PAGE.hosts[r.n], cell: r => PAGE.hosts[r.n]},
      {name: 'Profile', text: true, sort: r => profileName(r.p), cell: r => profileName(r.p)},
      {name: 'Slurm job', sort: r => r.j || 0, cell: r => r.j || '–'},
      {name: 'Cores', sort: r => r.c, cell: r => count(r.c)},
      {name: 'Came', sort: r => r.f, cell: r => clock(r.f)},
      {name: 'After being asked for', sort: r => r.f - r.a, cell: r => time(r.f - r.a)},
      {name: 'There for', sort: r => r.g - r.f, cell: r => time(r.g - r.f)},
      {name: 'Went', text: true, wrap: true, sort: r => r.w || '', cell: r => r.o ? 'no end in the log' : r.w || 'in good order'},
    ]})));
}
