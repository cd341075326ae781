#!/usr/bin/python3
"""The page of `troupe report -o` in headless Chromium, without a network. Speaks TAP.

Skipped, with the reason, where no browser can be started.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import logs

BUILD = os.environ['TROUPE_BUILD']
TROUPE = f'{BUILD}/bin/troupe'
AXE = '''
const rgb = text => (text.match(/[\\d.]+/g) || [0, 0, 0, 0]).map(Number);
const light = c => [c[0], c[1], c[2]].map(v => { v /= 255; return v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4; })
  .reduce((t, v, i) => t + v * [.2126, .7152, .0722][i], 0);
const ratio = (a, b) => { const x = light(a), y = light(b); return (Math.max(x, y) + .05) / (Math.min(x, y) + .05); };
const back = node => {
  for (let n = node; n; n = n.parentElement) {
    const c = rgb(getComputedStyle(n).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c;
  }
  return [255, 255, 255];
};
'''


def start():
    """(browser, '') or (None, why not)."""
    try:
        from selenium import webdriver
        from selenium.common.exceptions import WebDriverException
        from selenium.webdriver.chrome.options import Options
        from selenium.webdriver.chrome.service import Service
    except ImportError as why:
        return None, f'python3-selenium is missing: {why}'
    driver, chromium = shutil.which('chromedriver'), shutil.which('chromium')
    if not driver or not chromium:
        return None, 'chromium or chromium-driver is missing'
    options = Options()
    options.binary_location = chromium
    for flag in ('--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking',
                 '--disable-component-update', '--disable-sync', '--disable-dev-shm-usage', '--lang=en',
                 f'--user-data-dir={FOLDER}/profile'):
        options.add_argument(flag)
    options.set_capability('goog:loggingPrefs', {'browser': 'ALL', 'performance': 'ALL'})
    try:
        browser = webdriver.Chrome(service=Service(driver), options=options)
    except (WebDriverException, OSError) as why:
        return None, 'chromium does not start: ' + str(why).splitlines()[0]
    browser.set_window_size(1280, 900)
    return browser, ''


class Page:
    """A page made of a log, open in the browser."""

    def __init__(self, browser, name, make=None):
        self.browser = browser
        self.log = f'{FOLDER}/{name}.jsonl'
        self.file = f'{FOLDER}/{name}.html'
        if make:
            make(self.log)
        subprocess.run([TROUPE, 'report', '-o', self.file, self.log], check=True)
        self.report = json.loads(subprocess.run([TROUPE, 'report', '--json', self.log], check=True,
                                                capture_output=True).stdout)
        self.open()

    def open(self):
        self.browser.get('about:blank')
        self.browser.get_log('browser')
        self.browser.get_log('performance')
        before = time.monotonic()
        self.browser.get('file://' + self.file)
        # A browser that has just started may show its own first page still.
        while self.js('return document.documentElement.dataset.drawn') != 'true':
            same([], self.complaints(), 'it did not draw all, console')
            if self.js('return location.href') != 'file://' + self.file:
                self.browser.get('file://' + self.file)
            time.sleep(0.05)
        self.took = time.monotonic() - before

    def js(self, text, *arguments):
        return self.browser.execute_script(text, *arguments)

    def press(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        for key in keys:
            ActionChains(self.browser).send_keys(key).perform()

    def media(self, **features):
        self.browser.execute_cdp_cmd('Emulation.setEmulatedMedia', {
            'media': features.pop('media', ''),
            'features': [{'name': k.replace('_', '-'), 'value': v} for k, v in features.items()]})

    def requests(self):
        """What the page asked for; not what the browser itself asks for when it starts."""
        found = [json.loads(line['message'])['message'] for line in self.browser.get_log('performance')]
        asked = [m['params'] for m in found if m['method'] == 'Network.requestWillBeSent']
        return [a['request']['url'] for a in asked if a['documentURL'] == 'file://' + self.file]

    def complaints(self):
        told = [line['message'] for line in self.browser.get_log('browser')]
        return [text for text in told if not text.startswith('chrome')]


def same(want, got, what=''):
    assert want == got, f'{what}: wanted {want!r}, got {got!r}'


# ---- the tests ----

def it_opens_without_errors_and_asks_for_nothing(browser):
    for make in (logs.small, logs.hostile, logs.many_stages):
        page = Page(browser, make.__name__, make)
        requests = [r for r in page.requests() if not r.startswith(('about:', 'data:'))]
        same(['file://' + page.file], requests, 'requests')
        same([], page.complaints(), 'console')


def figures_are_those_of_report_json(browser):
    page = Page(browser, 'small', logs.small)
    shown = dict(page.js('return [...document.querySelectorAll("[data-key]")].map(e => [e.dataset.key, [e.dataset.value, e.textContent]])'))
    start = page.report['starts'][-1]

    def check(key, value):
        assert key in shown, f'{key} is not on the page'
        same(value, json.loads(shown[key][0]), key)
        if isinstance(value, int) and key != 'started':
            same(f'{value:,}', shown[key][1], key)
        elif isinstance(value, str):
            same(value, shown[key][1], key)
        else:
            assert shown[key][1] not in ('', 'NaN', 'undefined'), key

    def each(prefix, value):
        if isinstance(value, dict):
            for name, of in value.items():
                each(f'{prefix}.{name}', of)
        else:
            check(prefix, value)

    check('name', start['name'])
    check('started', start['started'])
    each('total', {k: v for k, v in start['total'].items() if k in (
        'tasks', 'attempts', 'failed', 'given_up', 'skipped', 'wall', 'held', 'used', 'cpu')})
    for kind, keys in {'shuffled': ('written', 'read', 'remote', 'spilled'), 'kept': ('hits', 'misses')}.items():
        for key in keys:
            same(start['total']['data'][kind][key], json.loads(shown[f'total.data.{kind}.{key}'][0]), key)
    same(1000 * 42, start['total']['data']['shuffled']['written'], 'the log has bytes')
    for i, stage in enumerate(start['stages']):
        for key in ('name', 'profile', 'outcome', 'tasks', 'attempts', 'failed', 'given_up', 'skipped', 'wall', 'median', 'max', 'held', 'used'):
            check(f'stages.0.{i}.{key}', stage[key])
        each(f'stages.0.{i}.waits', stage['waits'])
        same(len(stage['waits']), sum(key.startswith(f'stages.0.{i}.waits.') for key in shown), f'bars of stage {i}')
    for i, task in enumerate(start['given_up']):
        for key in ('stage', 'failures', 'reason'):
            check(f'given_up.0.{i}.{key}', task[key])
    waits = start['stages'][0]['waits']
    assert min(waits[key] for key in ('asked', 'slots', 'max_running', 'locality')) > 3, waits
    same(10, sum(s['failed'] for s in start['stages']) + 5, 'the log has failures')


def controls(page):
    return page.js('''return [...document.querySelectorAll('a[href], button, select, input, summary, [tabindex="0"]')]
        .filter(e => e.offsetParent !== null || e.tagName.toLowerCase() === 'svg' || getComputedStyle(e).position === 'fixed' || e.classList.contains('skip'))
        .filter(e => !e.closest('details:not([open])') || e.tagName === 'SUMMARY')
        .map((e, i) => { e.dataset.n = i; return e.dataset.n; })''')


def every_control_is_reached_by_tab_in_order_and_has_a_name(browser):
    from selenium.webdriver.common.keys import Keys
    page = Page(browser, 'small', logs.small)
    wanted, reached, places = controls(page), [], []
    for _ in range(len(wanted) + 5):
        page.press(Keys.TAB)
        n, top = page.js('const e = document.activeElement; return [e.dataset.n || null, e.getBoundingClientRect().top + scrollY]')
        if n is None or n in reached:
            break
        reached.append(n)
        places.append(top)
    missing = [page.js('return document.querySelector(`[data-n="${arguments[0]}"]`).outerHTML.slice(0, 120)', n) for n in wanted if n not in reached]
    same([], missing, 'not reached by Tab')
    assert len(reached) > 40, f'only {len(reached)} controls'
    nameless = page.js('''return [...document.querySelectorAll('a[href], button, select, input, summary, canvas, svg[role], [role=region], table')]
        .filter(e => !(e.getAttribute('aria-label') || e.textContent.trim() || (e.labels && e.labels.length) || e.caption))
        .map(e => e.outerHTML.slice(0, 120))''')
    same([], nameless, 'without a name')
    hidden = page.js('''return [...document.querySelectorAll('button, a[href], summary')].filter(e => { e.focus();
        return getComputedStyle(e).outlineStyle === 'none' && e.matches(':focus-visible'); }).map(e => e.outerHTML.slice(0, 120))''')
    same([], hidden, 'with a focus that cannot be seen')


def everything_works_by_keyboard(browser):
    from selenium.webdriver.common.keys import Keys
    page = Page(browser, 'small', logs.small)
    focus = lambda selector: page.js('document.querySelector(arguments[0]).focus()', selector)
    view = lambda: page.js('return [VIEW.from, VIEW.to]')
    told = lambda: page.js('return document.getElementById("timeline-detail").textContent')
    whole = view()
    focus('#timeline canvas')
    page.press('+')
    closer = view()
    assert closer[1] - closer[0] < whole[1] - whole[0], 'plus does not zoom'
    page.press(Keys.ARROW_RIGHT)
    assert view()[0] > closer[0], 'the right arrow does not move'
    page.press('0')
    same(whole, view(), 'all')
    page.press(Keys.ARROW_DOWN)
    first = told()
    page.press(Keys.ENTER)
    task = told()
    assert first != task and 'task' in task and 'attempt 0' in task, f'a task is not told: {task!r}'
    page.press(Keys.ENTER)
    assert told() != task, 'the next task is not told'
    # A stage alone, by its select.
    focus('#timeline select')
    page.press('train')
    same('train', page.js('return document.querySelector("#timeline select").value'), 'select')
    # Buttons.
    page.js('[...document.querySelectorAll("#timeline button")].find(b => b.textContent === "+").focus()')
    page.press(Keys.ENTER)
    assert view()[1] - view()[0] < whole[1] - whole[0], 'the button does not zoom'
    # Values of a chart.
    focus('#resources svg[tabindex]')
    page.press('0', '.', '.')
    assert 'held' in page.js('return document.querySelector("#resources .detail").textContent')
    page.js('[...document.querySelectorAll("#resources [aria-pressed]")][1].focus()')
    page.press(Keys.SPACE)
    assert 'prep' in page.js('return document.querySelector("#resources .legend").textContent'), 'by profile'
    # Sorting.
    rows = lambda: page.js('return [...document.querySelectorAll("#stages tbody th")].map(e => e.textContent)')
    page.js('[...document.querySelectorAll("#stages thead button")].find(b => b.textContent.startsWith("Tasks")).focus()')
    page.press(Keys.ENTER)
    same(['split', 'train', 'join'], rows(), 'sorted')
    same('descending', page.js('return document.activeElement.closest("th").getAttribute("aria-sort")'), 'aria-sort')
    page.press(Keys.ENTER)
    same(['join', 'train', 'split'], rows(), 'sorted upwards')
    focus('#stages input')
    page.press(*'tra')
    same(['train'], rows(), 'names')
    # What is folded.
    focus('#timeline summary')
    page.press(Keys.ENTER)
    same(True, page.js('return document.querySelector("#timeline details").open'), 'details')
    # Colours.
    before = page.js('return document.documentElement.dataset.theme')
    focus('#theme')
    page.press(Keys.ENTER)
    assert page.js('return document.documentElement.dataset.theme') != before, 'the theme is the same'
    same([], page.complaints(), 'console')


def text_and_marks_have_contrast(browser):
    for scheme in ('light', 'dark'):
        page = Page(browser, 'small', logs.small)
        page.media(prefers_color_scheme=scheme)
        page.open()
        same(scheme, page.js('return document.documentElement.dataset.theme'), 'scheme')
        page.js('for (const d of document.querySelectorAll("details")) d.open = true')
        weak = page.js(AXE + '''
            const weak = [];
            let n = 0;
            const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
            while (walk.nextNode()) {
              const e = walk.currentNode.parentElement, text = walk.currentNode.textContent.trim();
              if (!text || ['SCRIPT', 'STYLE', 'NOSCRIPT', 'OPTION'].includes(e.tagName) || e.tagName === 'title') continue;
              const style = getComputedStyle(e), of = e instanceof SVGElement ? style.fill : style.color;
              const r = ratio(rgb(of), back(e));
              n++;
              if (r < 4.5) weak.push(`${r.toFixed(2)} ${e.tagName} ${text.slice(0, 40)}`);
            }
            return [n, [...new Set(weak)]];''')
        assert weak[0] > 200, f'only {weak[0]} texts'
        same([], weak[1], f'text that is too weak, {scheme}')
        marks = page.js(AXE + '''
            const hex = c => [1, 3, 5].map(i => parseInt(c.slice(i, i + 2), 16)), page = rgb(getComputedStyle(document.body).backgroundColor);
            return [...COLORS[theme()], css('--bad'), css('--soft'), css('--strong-line'), ...waitColors()]
              .map(c => [c, ratio(hex(c), page)]).filter(c => c[1] < 3)''')
        same([], marks, f'marks that are too weak, {scheme}')
    page.media()


def hostile_names_stay_text(browser):
    page = Page(browser, 'hostile', logs.hostile)
    same(None, page.js('return window.bad || null'), 'a script of the run ran')
    same(2, page.js('return document.scripts.length'), 'scripts')
    same(0, page.js('return document.images.length'), 'images')
    same('app ' + logs.HOSTILE, page.js('return document.querySelector("[data-key=name]").textContent'), 'name')
    text = page.js('return document.body.textContent')
    for what in ('s0 ', 's1 ', 'reason ', 'item ', 'skipped ', 'told ', 'host ', 'lost '):
        assert what + logs.HOSTILE in text, f'{what} is not told'
    same([], page.complaints(), 'console')


def a_hundred_thousand_tasks_open_at_once(browser):
    page = Page(browser, 'huge', logs.huge)
    size = os.path.getsize(page.file)
    print(f'# {size} bytes, drawn after {page.took:.2f} s')
    assert size < 5_000_000, f'{size} bytes'
    assert page.took < 10, f'{page.took} s'
    same('100,000', page.js("return document.querySelector('[data-key=\"total.tasks\"]').textContent"), 'tasks')
    before = time.monotonic()
    page.js('zoom(.1); zoom(.1)')
    print(f'# zoomed twice in {time.monotonic() - before:.2f} s')
    same([], page.complaints(), 'console')


def many_stages_are_put_together(browser):
    page = Page(browser, 'many_stages', logs.many_stages)
    rows = lambda: page.js('return [...document.querySelectorAll("#stages tbody th")].map(e => e.textContent)')
    same(['+load-… (567)', '+solve-… (567)', '+store-… (567)'], rows(), 'rows')
    same(3, page.js('return document.querySelectorAll("#graph svg g").length'), 'boxes of the graph')
    page.js('document.querySelector("#stages button.fold").click()')
    assert len(rows()) > 400, 'unfolding shows no more'
    same('load-0', rows()[1], 'the first member')
    figures = page.js('return [...document.querySelectorAll("#stages tr.member [data-key]")].map(e => [e.dataset.key, e.dataset.value])')
    for key, value in figures:
        _, start, place, name = key.split('.')
        same(page.report['starts'][int(start)]['stages'][int(place)][name], json.loads(value), key)


def a_resumed_run_has_the_figures_of_all_its_starts(browser):
    page = Page(browser, 'resumed', logs.resumed)
    starts = [s['total'] for s in page.report['starts']]
    figures = dict(page.js('return [...document.querySelectorAll("#run [data-key]")].map(e => [e.dataset.key, e.dataset.value])'))
    for key in ('attempts', 'failed', 'wall', 'cpu'):
        assert abs(sum(s[key] for s in starts) - json.loads(figures['all.' + key])) < 1e-6, key
    assert abs(sum(s['held']['cores'] for s in starts) - json.loads(figures['all.held.cores'])) < 1e-6
    # Tasks that are run again are the same ones; what was given up in between is done by now.
    same(['7', '0', '1'], [figures['all.' + key] for key in ('tasks', 'given_up', 'skipped')])
    assert 'Start' in page.js('return document.querySelector("#waits thead").textContent'), 'waits without their start'
    same(['2', '1', '2'], page.js('return [...document.querySelectorAll("#waits tbody tr")].map(r => r.children[1].textContent)'), 'starts of waits')


def cores_are_counted_in_whole_numbers(browser):
    page = Page(browser, 'small', logs.small)
    axis = page.js('return [...document.querySelector("#resources svg").querySelectorAll("text[text-anchor=end]")].map(e => e.textContent)')
    told = page.js('return document.querySelector("#resources .detail").textContent')
    same([], [n for n in axis if not n.isdecimal()], 'cores at the axis')
    assert '.' not in told.split('Point')[0].rstrip('. '), told


def the_table_of_stages_fits_1280_pixels(browser):
    for make in (logs.small, logs.resumed):
        page = Page(browser, make.__name__, make)
        wide, room = page.js('const e = document.querySelector("#stages .scroll"); return [e.scrollWidth, e.clientWidth]')
        assert wide <= room, f'{make.__name__}: {wide} of {room}'


def it_is_readable_when_printed_and_narrow(browser):
    page = Page(browser, 'small', logs.small)
    page.media(media='print')
    same('none', page.js('return getComputedStyle(document.querySelector("header")).display'), 'the header in print')
    same('none', page.js('return getComputedStyle(document.querySelector(".tools")).display'), 'tools in print')
    pdf = browser.execute_cdp_cmd('Page.printToPDF', {})
    assert len(pdf['data']) > 20000, 'a page of paper is empty'
    page.media()
    browser.set_window_size(500, 800)
    page.open()
    wide = page.js('return [document.documentElement.scrollWidth, document.documentElement.clientWidth]')
    browser.set_window_size(1280, 900)
    assert wide[0] <= wide[1] + 1, f'it is wider than its window: {wide}'


TESTS = [it_opens_without_errors_and_asks_for_nothing, figures_are_those_of_report_json,
         every_control_is_reached_by_tab_in_order_and_has_a_name, everything_works_by_keyboard, text_and_marks_have_contrast,
         hostile_names_stay_text, a_hundred_thousand_tasks_open_at_once, many_stages_are_put_together,
         a_resumed_run_has_the_figures_of_all_its_starts, cores_are_counted_in_whole_numbers, the_table_of_stages_fits_1280_pixels,
         it_is_readable_when_printed_and_narrow]


def main():
    browser, why = start()
    if not browser:
        print(f'1..0 # SKIP {why}')
        return 0
    failed = 0
    print(f'1..{len(TESTS)}')
    try:
        for number, test in enumerate(TESTS, 1):
            name = test.__name__.replace('_', ' ')
            try:
                test(browser)
                print(f'ok {number} {name}', flush=True)
            except Exception as problem:  # what the browser says, too
                failed += 1
                print(f'not ok {number} {name}')
                print('\n'.join('# ' + line for line in f'{type(problem).__name__}: {problem}'.splitlines()), flush=True)
    finally:
        browser.quit()
    return failed > 0


if __name__ == '__main__':
    FOLDER = tempfile.mkdtemp(prefix='troupe-page-')
    try:
        sys.exit(main())
    finally:
        shutil.rmtree(FOLDER, ignore_errors=True)
