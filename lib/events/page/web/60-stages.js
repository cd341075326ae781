// What waited, and the table of stages.

// Stages, or those of a name but for its number at the end together.
function groups() {
  if (!FOLDED) return STAGES.map(s => ({...s}));
  const by = new Map();
  for (const s of STAGES) {
    if (!by.has(s.stem)) by.set(s.stem, []);
    by.get(s.stem).push(s);
  }
  return [...by].map(([name, members]) => members.length === 1 ? {...members[0]} : together(name, members));
}
function together(name, members) {
  const sum = f => members.reduce((n, s) => n + (f(s) || 0), 0);
  const reports = members.filter(s => s.report), add = f => reports.reduce((n, s) => n + (f(s.report) || 0), 0);
  const with_times = members.filter(s => s.quantiles && s.quantiles.length);
  const middle = i => { const v = with_times.map(s => s.quantiles[i]).sort((a, b) => a - b); return v[v.length >> 1]; };
  const worst = ['failed', 'cancelled', 'running', 'not run', 'skipped', 'succeeded'].find(o => reports.some(s => s.report.outcome === o));
  const devices = {};
  for (const kind of ['held', 'used']) {
    devices[kind] = {};
    for (const s of reports) for (const [d, v] of Object.entries(s.report[kind])) devices[kind][d] = (devices[kind][d] || 0) + v;
  }
  return {name: `${name}… (${members.length})`, members, place: members[0].place, stem: members[0].stem,
    profile: members.every(s => s.profile === members[0].profile) ? members[0].profile : null,
    start: members[0].start, submitted: Math.min(...members.map(s => s.submitted === null ? Infinity : s.submitted)),
    quantiles: with_times.length ? [Math.min(...with_times.map(s => s.quantiles[0])), middle(1), middle(2), middle(3), Math.max(...with_times.map(s => s.quantiles[4]))] : [],
    levels: LEVELS.map((_, i) => sum(s => s.levels[i])), failed: sum(s => s.failed), lost: sum(s => s.lost), killed: sum(s => s.killed), copies: sum(s => s.copies),
    waits: WAITS.map((_, i) => sum(s => s.waits[i])), nothing_ran: sum(s => s.nothing_ran),
    report: {outcome: worst, tasks: add(r => r.tasks), attempts: add(r => r.attempts), failed: add(r => r.failed), given_up: add(r => r.given_up),
      skipped: add(r => r.skipped), wall: add(r => r.wall), held: devices.held, used: devices.used, cpu: add(r => r.cpu)}};
}

// The first five as the page has its states; the others in colours of the same contrast.
const waitColors = () => ['--warn', '--accent', '--bad', '--soft', '--good'].map(css).concat([5, 3, 4, 7, 11, 6, 8, 9].map(i => COLORS[theme()][i]));

// Which start of a run that had several a stage is of.
const startsOf = s => [...new Set((s.members || [s]).map(m => m.start + 1))].join(', ');
const startColumn = () => STARTS.length > 1 ? [{name: 'Start', sort: s => s.start, cell: startsOf}] : [];

function drawWaits() {
  const here = section('waits');
  const total = s => s.waits.reduce((a, b) => a + b, 0);
  const rows = groups().filter(s => total(s) > 0).sort((a, b) => total(b) - total(a));
  here.append(el('p', {class: 'note'},
    'From when a stage could run until its tasks’ first attempts began, all its tasks together. What the ' +
    'scheduler gave as the stage’s own reason counts as that: a slot nearer to its data (locality.wait), ' +
    'executors excluded after failures, max_running, limits of executors, all slots of a barrier at once,' +
    ' room for a gang, tasks of its parents, no time left before the run’s end. Else each moment counts ' +
    'for the first of these that held then: a slot was free (and it is not known why it was not taken); ' +
    'an executor of its profile was starting; one was asked for in Slurm’s queue; one was asked for and ' +
    'was not there (no room yet or, outside of Slurm, starting); all slots were taken.'));
  if (!rows.length) {
    here.append(el('p', {class: 'soft'}, 'Nothing waited.'));
  } else {
    const most = total(rows[0]);
    const bars = s => {
      const box = svg('svg', {viewBox: '0 0 400 14', width: 400, height: 14, role: 'img',
        'aria-label': WAITS.map((w, i) => s.waits[i] ? `${w} ${time(s.waits[i])}` : '').filter(Boolean).join(', ')});
      let x = 0;
      s.waits.forEach((ms, i) => {
        const w = 400 * ms / most;
        if (ms) box.append(svg('rect', {x, y: 0, width: Math.max(w - .5, .5), height: 14, fill: waitColors()[i], 'data-value': JSON.stringify(ms / 1000),
          'data-key': s.members ? null : `stages.${s.start}.${PAGE.stages[s.place].report}.waits.${PAGE.wait_names[i]}`}, svg('title', {}, `${WAITS[i]}: ${time(ms)}`)));
        x += w;
      });
      return box;
    };
    const legendBox = el('div'), tableBox = el('div');
    const draw = () => {
      legendBox.replaceChildren(legend('Colours of waits', WAITS.map((w, i) => [w, waitColors()[i], i]).filter(w => rows.some(s => s.waits[w[2]] > 0))));
      tableBox.replaceChildren(table({caption: 'Waits of tasks, all together (the longest first)', rows, most: 25, columns: [
        {name: 'Stage', text: true, wrap: true, sort: s => s.name, cell: s => s.name},
        ...startColumn(),
        {name: 'Waited', text: true, cell: bars},
        {name: 'In all', sort: total, cell: s => time(total(s))},
        {name: 'A task', sort: s => total(s) / (s.report ? s.report.tasks || 1 : 1), cell: s => time(total(s) / (s.report ? s.report.tasks || 1 : 1))},
        {name: 'Nothing of it ran', sort: s => s.nothing_ran, cell: s => time(s.nothing_ran)},
        {name: 'Most of it', text: true, cell: s => WAITS[s.waits.indexOf(Math.max(...s.waits))]},
      ]}));
    };
    here.append(legendBox, tableBox);
    redraw.push(draw);
    draw();
  }
  if (STAGES.some(s => s.summarised))
    here.append(el('p', {class: 'note'}, `${count(STAGES.reduce((n, s) => n + s.summarised, 0))} tasks were summarised in the event log, without times: their waits are not known.`));
  if (PAGE.told.length)
    here.append(el('details', {}, el('summary', {}, `What was told meanwhile (${count(PAGE.told.length + PAGE.told_left_out)})`),
      table({caption: 'Messages', rows: PAGE.told, most: 50, columns: [
        {name: 'When', text: true, sort: m => m.at, cell: m => clock(m.at, true)},
        {name: 'Level', text: true, sort: m => m.level, cell: m => el('span', {class: m.level === 'error' ? 'fail' : null}, m.level)},
        {name: 'Text', text: true, wrap: true, cell: m => m.text},
      ]}), PAGE.told_left_out ? el('p', {class: 'note'}, `${count(PAGE.told_left_out)} later ones are left out; the event log has them.`) : ''));
}

// Least, quartiles and most on a common scale of powers.
function boxPlot(q, scale, say) {
  if (!q.length) return '–';
  const [low, high] = scale, W = 70;
  const words = ['least', 'a quarter up to', 'half up to', 'three quarters up to', 'most'].map((w, i) => `${w} ${say(q[i])}`).join(', ');
  const x = v => 3 + (W - 6) * (Math.log(Math.max(v, 1)) - low) / Math.max(high - low, 1e-9);
  return svg('svg', {viewBox: `0 0 ${W} 14`, width: W, height: 14, role: 'img', 'aria-label': words}, svg('title', {}, words),
    svg('line', {x1: x(q[0]), x2: x(q[4]), y1: 7, y2: 7, stroke: 'currentColor'}),
    svg('rect', {x: x(q[1]), y: 2, width: Math.max(x(q[3]) - x(q[1]), 1.5), height: 10, fill: css('--held'), stroke: 'currentColor'}),
    svg('line', {x1: x(q[2]), x2: x(q[2]), y1: 1, y2: 13, stroke: css('--accent'), 'stroke-width': 2.5}));
}

function drawStages() {
  const here = section('stages');
  const rows = groups();
  const times = rows.flatMap(s => s.quantiles.length ? [s.quantiles[0], s.quantiles[4]] : []).map(v => Math.log(Math.max(v, 1)));
  const scale = [Math.min(...times), Math.max(...times)];
  const brief = ms => ms >= 60000 ? shortTime(ms) : time(ms);
  const ns = v => v === undefined ? '–' : brief(v / 1e6);
  const rep = (s, key, text) => {
    if (!s.report) return '–';
    const v = s.report[key];
    return s.members ? text(v) : figure(`stages.${s.start}.${PAGE.stages[s.place].report}.${key}`, v, text(v));
  };
  const of = (s, key) => s.report ? s.report[key] || 0 : 0;
  const outcome = o => el('span', {class: 'badge ' + ({succeeded: 'good', failed: 'bad', cancelled: 'warn', running: 'warn'}[o] || '')}, o);
  const levels = s => {
    const all = s.levels.reduce((a, b) => a + b, 0);
    return all ? s.levels.map((n, i) => n ? `${LEVELS[i]} ${percent(n, all)}` : '').filter(Boolean).join(', ') : '–';
  };
  const devices = [...new Set(STARTS.flatMap(s => Object.keys(s.total.held)))].filter(d => d !== 'cores');
  const losses = ['given_up', 'skipped'].filter(key => rows.some(s => of(s, key) > 0));
  const ended = rows.some(s => s.lost + s.killed > 0);
  const columns = [
    {name: 'Stage', text: true, wrap: true, sort: s => s.name, cell: s => [swatch(stageColor(s)), rep(s, 'name', () => s.name)]},
    {name: 'Profile', text: true, sort: s => profileName(s.profile), cell: s => s.members ? profileName(s.profile) : rep(s, 'profile', v => v === null ? '?' : v)},
    {name: 'Outcome', text: true, sort: s => s.report ? s.report.outcome : '', cell: s => s.report ? rep(s, 'outcome', outcome) : '–'},
    {name: 'Tasks', sort: s => of(s, 'tasks'), cell: s => rep(s, 'tasks', count)},
    {name: 'Attempts', sort: s => of(s, 'attempts'), cell: s => [rep(s, 'attempts', count), s.copies ? el('span', {title: 'Speculative ones'}, `, ${count(s.copies)} of them copies`) : '']},
    {name: ['Failed', ...losses.map(k => k.replace('_', ' ')), ...(ended ? ['lost'] : [])].join(', '),
      title: 'Attempts that failed; tasks that were given up, or skipped; attempts lost with their executor, or ended by us (copies that were slower, a cancelled run)', sort: s => of(s, 'failed'),
      cell: s => s.report ? [...['failed', ...losses].map((k, i) => [i ? ', ' : '', el('span', {class: of(s, k) ? 'fail' : null}, rep(s, k, count))]), ended ? ', ' + count(s.lost + s.killed) : ''] : '–'},
    {name: 'Task times', title: 'By their median; point at a box for the quartiles', text: true, sort: s => s.quantiles[2] || 0, cell: s => boxPlot(s.quantiles, scale, ns)},
    {name: 'Median', sort: s => s.quantiles[2] || 0, cell: s => s.members ? '≈ ' + ns(s.quantiles[2]) : rep(s, 'median', v => v === null ? '–' : brief(v * 1000))},
    {name: 'Most', sort: s => s.quantiles[4] || 0, cell: s => s.members ? ns(s.quantiles[4]) : rep(s, 'max', v => v === null ? '–' : brief(v * 1000))},
    {name: 'Time', title: 'From when it could run to its end', sort: s => of(s, 'wall'), cell: s => rep(s, 'wall', v => brief(v * 1000))},
    {name: 'Cores held', title: 'Core-seconds, or core-hours', sort: s => s.report ? s.report.held.cores : 0, cell: s => rep(s, 'held', v => shortAmount(v.cores))},
    {name: 'Cores used', title: 'Core-seconds, or core-hours', sort: s => s.report ? s.report.used.cores : 0, cell: s => rep(s, 'used', v => shortAmount(v.cores))},
    {name: 'Of it', title: 'Used of what was held', sort: s => s.report && s.report.held.cores ? s.report.used.cores / s.report.held.cores : 0, cell: s => s.report ? percent(s.report.used.cores, s.report.held.cores) : '–'},
    ...devices.flatMap(d => [
      {name: d + ' held', title: `${d}-seconds, or ${d}-hours`, sort: s => s.report && s.report.held[d] || 0, cell: s => s.report && s.report.held[d] ? shortAmount(s.report.held[d]) : '–'},
      {name: 'Of it', title: `Used of the ${d} that was held`, sort: s => s.report && s.report.held[d] ? (s.report.used[d] || 0) / s.report.held[d] : 0,
        cell: s => s.report && s.report.held[d] ? percent(s.report.used[d] || 0, s.report.held[d]) : '–'},
    ]),
    {name: 'Locality', text: true, wrap: true, cell: levels},
  ];
  columns.splice(1, 0, ...startColumn());
  const whole = table({caption: FOLDED ? `${count(STAGES.length)} stages; those whose names differ by a number are one row, whose quartiles are the middle ones of theirs` : `${count(STAGES.length)} stages`, rows, columns});
  const filter = el('input', {type: 'search', size: '24', 'aria-label': 'Show stages whose names have', on: {input: () => {
    const word = filter.value.toLowerCase();
    whole.show(!word ? rows : FOLDED ? STAGES.filter(s => s.name.toLowerCase().includes(word)) : rows.filter(s => s.name.toLowerCase().includes(word)));
  }}});
  here.append(el('div', {class: 'tools'}, el('label', {}, 'Names with', filter)), el('div', {class: 'dense'}, whole));
  redraw.push(() => whole.show(rows));
}
