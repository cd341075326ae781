// What it would have held otherwise, the foot, and all of it drawn.
function drawAlternatives() {
  const here = section('alternatives'), A = DATA.alternatives;
  if (!A || !A.runs) {
    here.append(el('p', {class: 'soft'}, A && A.why ? A.why : 'This was not computed.'));
    return;
  }
  const words = {monolithic: 'One allocation as large as the largest stage, from beginning to end', 'job-per-stage': 'A chain: each stage is a Slurm job of its own', options: 'With this run’s options'};
  const most = Math.max(...A.runs.map(r => r.held.cores_hours));
  here.append(el('p', {class: 'note'}, A.how),
    table({caption: 'Simulated, on the times that tasks took in this run', rows: A.runs, columns: [
      {name: 'How', text: true, wrap: true, cell: r => words[r.policy] || r.policy},
      {name: 'Held', text: true, cell: r => svg('svg', {viewBox: '0 0 240 14', width: 240, height: 14, role: 'img', 'aria-label': amount(r.held.cores_hours * 3600, 'core')},
        svg('rect', {width: Math.max(240 * r.held.cores_hours / most, 1), height: 14, fill: css('--held'), stroke: css('--strong-line')}),
        svg('rect', {width: 240 * r.used.cores_hours / most, height: 14, fill: css('--accent')}))},
      {name: 'Cores held', cell: r => amount(r.held.cores_hours * 3600, 'core')},
      {name: 'Used of it', cell: r => percent(r.used.cores_hours, r.held.cores_hours)},
      {name: 'Time', cell: r => time(r.makespan * 1000)},
    ]}));
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
