// Failures with their causes, what was given up or skipped, bytes.
function drawFailures() {
  const here = section('failures');
  const list = [...PAGE.failures].sort((a, b) => b.count - a.count);
  const lists = STARTS.map((s, i) => ({i, given_up: s.given_up, skipped: s.skipped}));
  const some = lists.some(l => l.given_up.length || l.skipped.length);
  if (!list.length && !some) {
    here.append(el('p', {class: 'soft'}, 'No attempt failed.'));
    return;
  }
  list.forEach((f, i) => {
    const s = STAGES[f.stage];
    here.append(el('article', {class: 'card', hidden: i >= 40}, el('h3', {}, s.name, ': ', f.reason),
      el('p', {class: 'soft'}, `${count(f.count)} attempt${f.count === 1 ? '' : 's'}`, STARTS.length > 1 ? `, start ${s.start + 1}` : '', `, ${f.count > 1 ? 'first ' : ''}at ${clock(f.first, true)}`, f.count > 1 ? `, last at ${clock(f.last)}` : ''),
      f.examples.map((e, k) => el('details', {open: k === 0 && i < 10}, el('summary', {}, `Task ${taskWord(e.task, e.name)}, attempt ${e.attempt}`, e.host !== null ? ` on ${PAGE.hosts[e.host]}, executor ${e.executor}` : ''),
        e.tail ? el('pre', {tabindex: '0', 'aria-label': 'Last lines of its log'}, e.tail) : el('p', {class: 'soft'}, 'It printed nothing, or its log is not there.'),
        e.link ? el('p', {}, 'Log: ', el('a', {href: './' + e.link.split('/').map(encodeURIComponent).join('/')}, e.link))
          : e.tail && HEAD.run ? el('p', {class: 'soft'}, el('code', {}, `troupe logs ${HEAD.run} ${s.name} ${e.task}.${e.attempt}`)) : ''))));
  });
  if (list.length > 40)
    here.append(el('button', {type: 'button', on: {click: e => {
      for (const card of here.querySelectorAll('article[hidden]')) card.hidden = false;
      e.target.remove();
    }}}, `Show the other ${count(list.length - 40)} kinds of failures`));
  if (PAGE.failures_left_out)
    here.append(el('p', {class: 'note'}, `${count(PAGE.failures_left_out)} further attempts failed in other words; troupe logs --failed has them.`));
  const flat = kind => lists.flatMap(l => l[kind].map((t, k) => ({...t, start: l.i, k})));
  const item = t => t.item === null ? '–' : t.item;
  if (flat('given_up').length)
    here.append(el('h3', {}, 'Tasks given up'), table({caption: 'Tasks that failed for good', rows: flat('given_up'), most: 50, columns: [
      {name: 'Stage', text: true, sort: t => t.stage, cell: t => figure(`given_up.${t.start}.${t.k}.stage`, t.stage, t.stage)},
      {name: 'Task', sort: t => t.task, text: true, cell: t => taskWord(t.task, t.name)},
      {name: 'Item', text: true, wrap: true, sort: item, cell: item},
      {name: 'Failures', sort: t => t.failures, cell: t => figure(`given_up.${t.start}.${t.k}.failures`, t.failures, count(t.failures))},
      {name: 'Last with', text: true, wrap: true, sort: t => t.reason || '', cell: t => figure(`given_up.${t.start}.${t.k}.reason`, t.reason, t.reason || '?')},
      {name: 'Log', text: true, wrap: true, cell: t => t.log || t.see || '–'},
    ]}));
  if (flat('skipped').length)
    here.append(el('h3', {}, 'Tasks skipped'), table({caption: 'Tasks that never ran, since what they come after was given up', rows: flat('skipped'), most: 50, columns: [
      {name: 'Stage', text: true, sort: t => t.stage, cell: t => t.stage},
      {name: 'Task', sort: t => t.task, text: true, cell: t => taskWord(t.task, t.name)},
      {name: 'Item', text: true, wrap: true, sort: item, cell: item},
      {name: 'After', text: true, sort: t => t.after || '', cell: t => t.after || '?'},
    ]}));
}

function drawBytes() {
  const here = section('bytes');
  const any = d => Object.values(d).some(kind => Object.values(kind).some(v => v > 0));
  const rows = STAGES.filter(s => s.report && any(s.report.data));
  if (!rows.length) {
    here.append(el('p', {class: 'soft'}, 'No stage has shuffled or kept data. (Commands hand files to each other; what those hold is not counted.)'));
    return;
  }
  const cell = (kind, key, text) => ({sort: s => s.report.data[kind][key],
    cell: s => figure(`stages.${s.start}.${PAGE.stages[s.place].report}.data.${kind}.${key}`, s.report.data[kind][key], s.report.data[kind][key] ? text(s.report.data[kind][key]) : '0')});
  const total = (kind, key, text) => figure(`total.data.${kind}.${key}`, LAST.total.data[kind][key], text(LAST.total.data[kind][key]));
  const {shuffled} = LAST.total.data;
  here.append(el('p', {}, STARTS.length > 1 ? 'Of the last start: ' : '', total('shuffled', 'written', bytes), ' written for other stages, ', total('shuffled', 'read', bytes), ' read, of it ', total('shuffled', 'remote', bytes), ` (${percent(shuffled.remote, shuffled.read)}) from other hosts; `, total('shuffled', 'spilled', bytes), ' spilled. ',
    total('kept', 'hits', count), ' partitions found where they were kept, ', total('kept', 'misses', count), ' made.'),
  table({caption: 'Bytes by stage', rows, columns: [
    {name: 'Stage', text: true, wrap: true, sort: s => s.name, cell: s => [swatch(stageColor(s)), s.name]},
    {name: 'Shuffle written', ...cell('shuffled', 'written', bytes)}, {name: 'Shuffle read', ...cell('shuffled', 'read', bytes)},
    {name: 'From other hosts', ...cell('shuffled', 'remote', bytes)}, {name: 'Spilled', ...cell('shuffled', 'spilled', bytes)},
    {name: 'Partitions found', ...cell('kept', 'hits', count)}, {name: 'Made', ...cell('kept', 'misses', count)},
    {name: 'Read of kept ones', ...cell('kept', 'read', bytes)}, {name: 'Kept in memory', ...cell('kept', 'memory', bytes)}, {name: 'Kept on disk', ...cell('kept', 'disk', bytes)},
  ]}));
}
