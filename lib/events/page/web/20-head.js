// The headline, and the starts of a run that had several.
function stateBadge(exit, word) {
  if (exit === 0) return el('span', {class: 'badge good'}, 'succeeded');
  if (exit === 75) return el('span', {class: 'badge warn'}, 'stopped: time was up');
  if (exit === 130) return el('span', {class: 'badge warn'}, 'cancelled');
  if (exit !== null) return el('span', {class: 'badge bad'}, 'failed, exit status ' + exit);
  return el('span', {class: 'badge ' + (word === 'running' ? 'warn' : 'bad')}, word);
}

// The totals of all starts: what was held and used is added up; a stage that a later start
// goes on with has the same tasks, and what it has lost is what its last start says.
function wholeRun() {
  const add = f => STARTS.reduce((n, s) => n + (f(s.total) || 0), 0);
  const kinds = kind => Object.fromEntries(STARTS.flatMap(s => Object.keys(s.total[kind])).map(d => [d, add(t => t[kind][d])]));
  const stages = new Map();
  for (const s of STARTS) {
    const now = new Map();
    for (const g of s.stages) {
      const of = now.get(g.name) || {tasks: 0, given_up: 0, skipped: 0};
      for (const key of Object.keys(of)) of[key] += g[key];
      now.set(g.name, of);
    }
    for (const [name, of] of now) stages.set(name, {...of, tasks: Math.max(of.tasks, stages.has(name) ? stages.get(name).tasks : 0)});
  }
  const sum = key => [...stages.values()].reduce((n, s) => n + s[key], 0);
  return {tasks: sum('tasks'), given_up: sum('given_up'), skipped: sum('skipped'), attempts: add(t => t.attempts), failed: add(t => t.failed),
    wall: add(t => t.wall), cpu: add(t => t.cpu), node_seconds: add(t => t.node_seconds), held: kinds('held'), used: kinds('used')};
}

function drawHead() {
  const here = section('run'), title = section('run-title');
  const total = STARTS.length > 1 ? wholeRun() : LAST.total, exit = LAST.exit;
  const word = exit === null ? HEAD.state : '';
  title.append(LAST.name === null ? '?' : figure('name', LAST.name, LAST.name), ' ', stateBadge(exit, word));
  const at = STARTS.length > 1 ? 'all' : 'total';
  here.append(el('p', {class: 'soft'},
    HEAD.run ? ['run ', el('code', {}, HEAD.run), ' · '] : '',
    'started ', figure('started', STARTS[0].started, clock(PAGE.axis[0][2], true)),
    exit === null ? ` · last heard of ${clock(PAGE.length)}` : ` · ended ${clock(PAGE.length)}`,
    STARTS.length > 1 ? ` · ${STARTS.length} starts` : '',
    PAGE.live ? ' · it goes on: this page is what was known when it was made' : ''));
  const cards = el('dl', {class: 'cards'});
  const card = (name, value, small) => cards.append(el('div', {}, el('dt', {}, name), el('dd', {}, value, small ? el('small', {}, small) : '')));
  card('Time', figure(at + '.wall', total.wall, time(total.wall * 1000)));
  card('Tasks', figure(at + '.tasks', total.tasks, count(total.tasks)),
    [figure(at + '.attempts', total.attempts, count(total.attempts)), ' attempts']);
  card('Failed attempts', figure(at + '.failed', total.failed, count(total.failed)),
    [figure(at + '.given_up', total.given_up, count(total.given_up)), ' tasks given up, ',
      figure(at + '.skipped', total.skipped, count(total.skipped)), ' skipped']);
  card('Cores held', figure(at + '.held.cores', total.held.cores, amount(total.held.cores, 'core')),
    'by executors and gangs');
  card('Cores used', figure(at + '.used.cores', total.used.cores, amount(total.used.cores, 'core')),
    `${percent(total.used.cores, total.held.cores)} of what was held`);
  card('CPU time', figure(at + '.cpu', total.cpu, amount(total.cpu, 'CPU')),
    `${percent(total.cpu, total.used.cores)} of what was used`);
  for (const device of Object.keys(total.held))
    if (device !== 'cores') {
      const used = total.used[device] || 0;
      card(device + ' held', figure(at + '.held.' + device, total.held[device], amount(total.held[device], device)),
        total.used[device] === undefined ? 'none used'
          : [figure(at + '.used.' + device, used, amount(used, device)), ` used, ${percent(used, total.held[device])}`]);
    }
  if (total.node_seconds > 0)
    card('Nodes held', figure(at + '.node_seconds', total.node_seconds, amount(total.node_seconds, 'node')),
      `${count(PAGE.jobs.length)} Slurm job${PAGE.jobs.length === 1 ? '' : 's'}`);
  const came = PAGE.timeline.rows.filter(r => r.x !== undefined);
  if (PAGE.timeline.by === 'executor')
    card('Executors', count(came.length), `on ${count(PAGE.hosts.length)} host${PAGE.hosts.length === 1 ? '' : 's'}, of ${count(new Set(came.map(r => r.p)).size)} profile${new Set(came.map(r => r.p)).size === 1 ? '' : 's'}`);
  here.append(cards);
  if (STARTS.length > 1) drawStarts(here);
}

function drawStarts(here) {
  here.append(el('p', {class: 'note'}, 'The figures above are those of all starts together. The time axes show all of them; what lay between is cut short.'),
    table({caption: 'Starts of this run', rows: STARTS.map((s, i) => ({s, i})), columns: [
      {name: 'Start', text: true, cell: r => String(r.i + 1)},
      {name: 'Began', text: true, cell: r => clock(PAGE.axis[r.i][2], true)},
      {name: 'How it ended', text: true, cell: r => stateBadge(r.s.exit, r.i + 1 < STARTS.length ? 'no end in the log' : HEAD.state)},
      {name: 'Time', cell: r => time(r.s.total.wall * 1000)},
      {name: 'Tasks', cell: r => count(r.s.total.tasks)},
      {name: 'Attempts', cell: r => count(r.s.total.attempts)},
      {name: 'Failed', cell: r => count(r.s.total.failed)},
      {name: 'Cores held', cell: r => amount(r.s.total.held.cores, 'core')},
      {name: 'Cores used', cell: r => amount(r.s.total.used.cores, 'core')},
    ]}));
}
