// What it would have held otherwise, the foot, and all of it drawn.
function drawAlternatives() {
  const here = section('alternatives'), A = DATA.alternatives;
  if (!A || !A.runs) {
    here.append(el('p', {class: 'soft'}, A && A.why ? A.why : 'This was not computed.'));
    return;
  }
  const words = {monolithic: 'One allocation, with the nodes of the largest stage, from beginning to end', 'job-per-stage': 'A chain: each stage is a Slurm job of its own',
    'inside-first': 'Troupe: stages get what they need and give it back', measured: 'As it was (measured: executors and gangs)'};
  const rows = [...A.runs, {policy: 'measured', makespan: LAST.total.wall, cores: LAST.total.held.cores, used: LAST.total.used.cores, nodes: LAST.total.node_seconds || null}];
  const most = Math.max(...rows.map(r => r.cores)), box = el('div');
  const draw = () => box.replaceChildren(table({caption: 'What it would have held', rows, columns: [
    {name: 'How', text: true, wrap: true, cell: r => words[r.policy] || r.policy},
    {name: 'Cores held, and used of it', text: true, cell: r => svg('svg', {viewBox: '0 0 240 14', width: 240, height: 14, role: 'img', 'aria-label': `${amount(r.cores, 'core')} held, ${amount(r.used, 'core')} used`},
      svg('rect', {x: .5, y: .5, width: Math.max(239 * r.cores / most, 1), height: 13, fill: css('--held'), stroke: css('--strong-line')}),
      svg('rect', {x: .5, y: .5, width: 239 * r.used / most, height: 13, fill: css('--accent')}))},
    {name: 'Cores held', cell: r => amount(r.cores, 'core')},
    {name: 'Used of it', cell: r => percent(r.used, r.cores)},
    {name: 'Nodes held', cell: r => r.nodes === null ? '–' : amount(r.nodes, 'node')},
    {name: 'Time', cell: r => time(r.makespan * 1000)},
  ]}));
  here.append(el('p', {class: 'note'}, A.how), box);
  redraw.push(draw);
  draw();
}

function drawFoot() {
  document.getElementById('foot').append(el('p', {}, `Made by Troupe ${HEAD.version} from ${REPORT.events} on ${new Date(HEAD.made).toISOString().replace('T', ' ').slice(0, 19)} UTC. Times of day are those of this browser’s zone (${Intl.DateTimeFormat().resolvedOptions().timeZone || 'unknown'}). `,
    'Held: executors from when they came to when they went, gangs while they ran. Used: what profiles say that a task takes, while it ran.'));
}

function drawSections() {
  const list = document.getElementById('sections');
  for (const s of document.querySelectorAll('main > section')) {
    const name = s.id === 'run' ? 'Run' : s.querySelector('h2').textContent;
    const failures = s.id === 'failures' ? PAGE.failures.reduce((n, f) => n + f.count, PAGE.failures_left_out) : 0;
    const short = {resources: 'Held and used', waits: 'Waits', bytes: 'Bytes', graph: 'Graph', alternatives: 'Otherwise'}[s.id] || name;
    list.append(el('li', {}, el('a', {href: '#' + s.id}, short, failures ? el('span', {class: 'count'}, ` ${count(failures)}`) : '')));
  }
}

drawSections();
for (const draw of [drawHead, drawTimeline, drawSeries, drawWaits, drawStages, drawFailures, drawBytes, drawGraph, drawAlternatives, drawFoot])
  draw();
let resizing = 0;
window.addEventListener('resize', () => {
  cancelAnimationFrame(resizing);
  resizing = requestAnimationFrame(() => { for (const f of redraw) f(); });
});
setTheme();
document.documentElement.dataset.drawn = 'true';
