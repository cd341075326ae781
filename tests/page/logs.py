"""Event logs for the tests of the page, line by line as Troupe writes them."""
import json

T0 = 1800000000000

# What must stay text wherever it is shown.
HOSTILE = ('</script><script>window.bad=1</script>'
           '<img src=x onerror="window.bad=1">\u2028<!--{{SCRIPT}}"\'&amp; \u202e')


class Log:
    """Times are ms since T0."""

    def __init__(self, path):
        self.out = open(path, 'w', encoding='utf-8')
        self.tasks = 0

    def say(self, event, **members):
        json.dump({'Event': event, **{k.replace('_', ' '): v for k, v in members.items()}}, self.out)
        self.out.write('\n')

    def begin(self, name, profiles, at=0):
        self.say('SparkListenerLogStart', Spark_Version='3.5.0')
        self.say('SparkListenerApplicationStart', **{'App_Name': name, 'App_ID': 'app-1', 'Timestamp': T0 + at, 'User': 'ada'})
        for number, (profile, cores, devices) in enumerate(profiles):
            executor = {'cores': {'Amount': cores}, 'memory': {'Amount': 1024}}
            executor.update({d: {'Amount': n} for d, n in devices.items()})
            task = {'cpus': {'Amount': 1}}
            task.update({d: {'Amount': n / cores} for d, n in devices.items()})
            self.say('SparkListenerResourceProfileAdded', **{
                'Resource Profile Id': number, 'Executor Resource Requests': executor, 'Task Resource Requests': task,
                'Troupe Profile Name': profile, 'Troupe Slots': cores})

    @staticmethod
    def info(number, name, ntasks, parents, profile, at):
        return {'Stage ID': number, 'Stage Attempt ID': 0, 'Stage Name': name, 'Number of Tasks': ntasks,
                'Parent IDs': parents, 'Submission Time': T0 + at, 'Resource Profile Id': profile}

    def stage(self, number, name, ntasks, at, parents=(), profile=0):
        info = self.info(number, name, ntasks, list(parents), profile, at)
        self.say('SparkListenerJobStart', **{'Job ID': number, 'Submission Time': T0 + at, 'Stage Infos': [info]})
        self.say('SparkListenerStageSubmitted', **{'Stage Info': info})

    def stage_over(self, number, name, at, why=None):
        info = {'Stage ID': number, 'Stage Attempt ID': 0, 'Stage Name': name, 'Completion Time': T0 + at}
        if why:
            info['Failure Reason'] = why
        self.say('SparkListenerStageCompleted', **{'Stage Info': info})

    def executor(self, number, host, cores, at, profile=0, asked=0):
        self.say('SparkListenerExecutorAdded', **{
            'Timestamp': T0 + at, 'Executor ID': str(number), 'Executor Info': {
                'Host': host, 'Total Cores': cores, 'Resource Profile Id': profile, 'Request Time': T0 + asked}})

    def executor_gone(self, number, at, why='released'):
        self.say('SparkListenerExecutorRemoved', **{'Timestamp': T0 + at, 'Executor ID': str(number), 'Removed Reason': why})

    def task(self, stage, index, executor, begin, end, why=None, attempt=0):
        ids = {'Stage ID': stage, 'Stage Attempt ID': 0}
        info = {'Task ID': self.tasks, 'Index': index, 'Attempt': attempt, 'Launch Time': T0 + begin, 'Executor ID': str(executor),
                'Host': 'n', 'Locality': 'NODE_LOCAL' if index % 3 else 'ANY', 'Speculative': False, 'Finish Time': 0}
        self.tasks += 1
        self.say('SparkListenerTaskStart', **ids, **{'Task Info': info})
        reason = {'Reason': 'Success'} if why is None else {
            'Reason': 'ExceptionFailure', 'Description': why, 'Troupe Reason': why, 'Troupe Status': 'exit', 'Troupe Counted': True}
        self.say('SparkListenerTaskEnd', **ids, **{
            'Task Type': 'ResultTask', 'Task End Reason': reason, 'Task Info': {**info, 'Finish Time': T0 + end},
            'Task Metrics': {'Executor CPU Time': (end - begin) * 500000, 'Peak Execution Memory': 50 << 20,
                             'Shuffle Write Metrics': {'Shuffle Bytes Written': 1000 if stage % 2 == 0 else 0}}})

    def given_up(self, stage, index, item, reason, at):
        self.say('TroupeTaskGivenUp', **{'Stage ID': stage, 'Stage Name': 'x', 'Task Index': index, 'Item': item,
                                         'Failures': 4, 'Reason': reason, 'Timestamp': T0 + at})

    def skipped(self, stage, index, item, parent, at):
        self.say('TroupeTaskSkipped', **{'Stage ID': stage, 'Stage Name': 'x', 'Task Index': index, 'Item': item,
                                         'Parent Stage ID': parent, 'Timestamp': T0 + at})

    def waits(self, stage, reason, at):
        self.say('TroupeStageWaits', **{'Stage ID': stage, 'Stage Attempt ID': 0, 'Reason': reason, 'Timestamp': T0 + at})

    def message(self, text, at):
        self.say('TroupeMessage', Level='warning', Text=text, Timestamp=T0 + at)

    def end(self, at, status=0):
        self.say('SparkListenerApplicationEnd', Timestamp=T0 + at, ExitCode=status)
        self.out.close()


def small(path):
    """Two profiles, a device, failures, retries, what was given up and skipped, bytes."""
    log = Log(path)
    log.begin('weather', [('prep', 4, {}), ('train', 2, {'gpu': 2})])
    log.stage(0, 'split', 40, 0)
    for e in range(3):
        log.executor(e, f'n{e + 1}', 4, 400 + 30 * e, asked=10)
    for i in range(40):
        log.task(0, i, i % 3, 600 + i // 12 * 900, 1400 + i // 12 * 900 + i * 7 % 100, 'exit status 3' if i == 7 else None)
    log.task(0, 7, 1, 4100, 4800, attempt=1)
    log.waits(0, 'executor', 1)
    log.message('stage split has run nothing for 1 s: no executor', 300)
    log.waits(0, 'slots', 700)
    log.waits(0, 'max_running', 1500)
    log.waits(0, 'locality', 2400)
    log.waits(0, 'nothing', 3300)
    log.stage_over(0, 'split', 4900)
    log.stage(1, 'train', 6, 4900, parents=[0], profile=1)
    log.executor(3, 'n1', 2, 6000, profile=1, asked=4900)
    for i in range(5):
        log.task(1, i, 3, 6100 + i // 2 * 2000, 8000 + i // 2 * 2000)
    for attempt in range(4):
        log.task(1, 5, 3, 12100 + attempt * 300, 12300 + attempt * 300, 'killed for memory (limit 512 MiB, peak 530 MiB)', attempt)
    log.given_up(1, 5, 'data/five.txt', 'killed for memory (limit 512 MiB, peak 530 MiB)', 13300)
    log.stage_over(1, 'train', 13400)
    log.stage(2, 'join', 2, 13400, parents=[0, 1])
    log.skipped(2, 1, 'data/five.txt', 1, 13400)
    log.task(2, 0, 0, 13500, 14500)
    log.stage_over(2, 'join', 14600)
    log.executor_gone(1, 14000, 'its node went down')
    log.end(15000, 1)


def resumed(path):
    """Two starts: two of four tasks of a stage fail in the first, all end well in the second, in
    which an executor is lost."""
    log = Log(path)
    for at, status in ((0, 1), (60000, 0)):
        log.begin('again', [('prep', 4, {}), ('train', 2, {'gpu': 2})], at)
        log.stage(0, 'split', 4, at)
        log.executor(0, 'n1', 4, at + 500, asked=at)
        for i in range(4):
            if at == 0 or i < 2:
                log.task(0, i, 0, at + 600, at + 1600 + i * 10, 'exit status 3' if at == 0 and i < 2 else None)
        if at == 0:
            log.given_up(0, 0, 'one', 'exit status 3', at + 1700)
        log.stage_over(0, 'split', at + 1800, 'a task failed' if at == 0 else None)
        if at:
            log.stage(1, 'train-a-model-with-a-name-of-some-length', 3, at + 1800, parents=[0], profile=1)
            log.executor(1, 'n1', 2, at + 2000, profile=1, asked=at + 1800)
            for i in range(3):
                log.task(1, i, 1, at + 2100 + i // 2 * 900000, at + 900000 + i // 2 * 900000)
            log.skipped(1, 2, 'two', 0, at + 1900)
            log.executor_gone(1, at + 1900000, 'its node went down')
            log.stage_over(1, 'train-a-model-with-a-name-of-some-length', at + 1900100)
        log.say('SparkListenerApplicationEnd', Timestamp=T0 + at + (2000000 if at else 2000), ExitCode=status)
    log.out.close()


def hostile(path):
    log = Log(path)
    log.begin('app ' + HOSTILE, [('p ' + HOSTILE[:50], 2, {'gpu': 1})])
    log.stage(0, 's0 ' + HOSTILE, 3, 0)
    log.stage(1, 's1 ' + HOSTILE, 1, 0, parents=[0])
    log.executor(0, 'host ' + HOSTILE, 2, 100)
    log.task(0, 0, 0, 200, 900)
    log.task(0, 1, 0, 200, 900, 'reason ' + HOSTILE)
    log.given_up(0, 1, 'item ' + HOSTILE, 'reason ' + HOSTILE, 950)
    log.skipped(1, 0, 'skipped ' + HOSTILE, 0, 960)
    log.message('told ' + HOSTILE, 970)
    log.executor_gone(0, 980, 'lost ' + HOSTILE)
    log.stage_over(0, 's0 ' + HOSTILE, 990, 'failed ' + HOSTILE)
    log.end(1000, 1)


def huge(path):
    """100,000 tasks on 250 executors of 50 nodes, with some failures."""
    log = Log(path)
    log.begin('huge', [('a', 8, {}), ('b', 4, {'gpu': 2})])
    log.stage(0, 'map', 80000, 0)
    log.stage(1, 'reduce', 20000, 0, parents=[0], profile=1)
    for e in range(250):
        log.executor(e, f'node{e // 5:03}', 4 if e % 5 == 4 else 8, 2000 + e * 13, profile=1 if e % 5 == 4 else 0, asked=100)
    mine = [2000 + e * 13 for e in range(250)]
    for i in range(100000):
        stage = i % 5 == 4
        e = (i // 5 % 50) * 5 + (4 if stage else i % 5)
        took = 300 + i * 7919 % 900
        log.task(int(stage), i // 5 if stage else i * 4 // 5, e, mine[e], mine[e] + took, 'exit status 1' if i % 5000 == 3 else None)
        mine[e] += took // (4 if stage else 8)
    log.end(max(mine) + 2000)


def many_stages(path):
    """1,700 stages in chains of three."""
    log = Log(path)
    log.begin('many', [('a', 4, {})])
    log.executor(0, 'n1', 4, 100)
    number = 0
    for i in range(567):
        for k, name in enumerate(('load', 'solve', 'store')):
            log.stage(number, f'{name}-{i}', 2, 200 + 100 * i + 30 * k, parents=[number - 1] if k else [])
            for t in range(2):
                log.task(number, t, 0, 205 + 100 * i + 30 * k, 225 + 100 * i + 30 * k + t)
            log.stage_over(number, f'{name}-{i}', 228 + 100 * i + 30 * k)
            number += 1
    log.end(60000)
