# compare.perl URL LOG: a run in Spark's History Server, whose REST API is at URL, beside
# `troupe report --json` of its event log. Says what differs, a line each; 1 when anything
# does.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;
use Time::Local;

my ($url, $log) = @ARGV;
my $differs = 0;
my $http = HTTP::Tiny->new(timeout => 60);

sub differ {
    my ($what, $theirs, $ours) = @_;
    print "$what: ", $theirs // 'nothing', " in the History Server, ", $ours // 'nothing', " here\n";
    $differs = 1;
}

sub same {
    my ($what, $theirs, $ours) = @_;
    differ($what, $theirs, $ours) if ($theirs // "\0") ne ($ours // "\0");
}

sub page {
    my ($at) = @_;
    my $answer = $http->get($at);
    die "$at: $answer->{status} $answer->{reason}\n$answer->{content}\n" unless $answer->{success};
    return $answer->{content};
}

# "2026-11-21T13:28:47.506GMT" as ms since 1970; nothing is nothing.
sub ms {
    my ($time) = @_;
    return undef unless defined $time;
    $time =~ /^(\d+)-(\d+)-(\d+)T(\d+):(\d+):(\d+)\.(\d+)GMT$/ or die "no time: $time\n";
    return timegm($6, $5, $4, $3, $2 - 1, $1) * 1000 + $7;
}

my $report = decode_json(scalar qx(troupe report --json "$log"));
die "troupe report: $?\n" if $?;
my @starts = @{ $report->{starts} };
my $last = $starts[-1] or die "troupe report tells of no start\n";
my $app = "$url/api/v1/applications/$last->{app_id}";
sub get { return decode_json(page($app . $_[0])) }

# ---- the application ----

# The server looks for new logs now and then.
my ($its, $attempt);
for (1 .. 300) {
    $its = eval { get('') };
    $attempt = $its && $its->{attempts}[0];
    last if !defined $last->{ended}
        || $attempt && $attempt->{completed} && $attempt->{endTimeEpoch} == $last->{ended};
    select undef, undef, undef, 0.2;
}
$its or die "the server has no $last->{app_id}\n";
same("name", $its->{name}, $last->{name});
same("attempts of the application", scalar @{ $its->{attempts} }, 1);
same("completed", $attempt->{completed} ? 1 : 0, defined $last->{exit} ? 1 : 0);
same("ended", $attempt->{endTimeEpoch}, $last->{ended});
same("started", $attempt->{startTimeEpoch}, $starts[0]{started});
same("exit status", $attempt->{exitCode}, $last->{exit}) if exists $attempt->{exitCode};

# ---- what all starts were made of ----

my (%tries, %begun);
for my $start (@starts) {
    for my $stage (@{ $start->{stages} }) {
        $tries{"$stage->{id}.$_->{attempt}"} = { %$_, stage => $stage->{id}, name => $stage->{name} }
            for @{ $stage->{tries} };
    }
}

# ---- stages ----

# What is the same figure in both; TASK: of each task.
my @flows = (
    [executorCpuTime => 'cpu_ns'], [inputBytes => 'in'], [inputRecords => 'records_in'],
    [outputBytes => 'out'], [outputRecords => 'records_out'], [shuffleReadBytes => 'read'],
    [shuffleRemoteBytesRead => 'remote'], [shuffleReadRecords => 'records_read'],
    [shuffleWriteBytes => 'written'], [shuffleWriteRecords => 'records_written'],
    [diskBytesSpilled => 'spilled'], [executorRunTime => 'run_ms']);

sub compare_tasks {
    my ($what, $its, $ours) = @_;
    my $list = get("/stages/$its->{stageId}/$its->{attemptId}/taskList?length=100000");
    my %n = (SUCCESS => 0, FAILED => 0, KILLED => 0);
    my ($ms, $run) = (0, 0);
    for my $task (@$list) {
        $n{ $task->{status} }++;
        $ms += $task->{duration} // 0;
        $run += $task->{taskMetrics}{executorRunTime} // 0;
        differ("$what: a task is $task->{status}", $task->{status}, 'ended')
            unless $task->{status} =~ /^(SUCCESS|FAILED|KILLED)$/;
        differ("$what: a failed task says nothing", '', 'a reason')
            if $task->{status} eq 'FAILED' && !length($task->{errorMessage} // '');
    }
    same("$what: tasks that are listed as failed", $n{FAILED}, $ours->{failed});
    my $unwritten = $ours->{summarised};
    same("$what: tasks that are listed", scalar @$list,
        $ours->{succeeded} + $ours->{failed} + $ours->{killed} - $unwritten);
    same("$what: ms of all tasks", $ms, $ours->{task_ms});
    return if $unwritten;
    same("$what: tasks that are listed as succeeded", $n{SUCCESS}, $ours->{succeeded});
    same("$what: ms in which tasks ran", $run, $ours->{run_ms});
}

sub compare_stage {
    my ($its, $ours) = @_;
    my $what = "stage $its->{stageId}.$its->{attemptId}";
    same("$what: name", $its->{name}, $ours->{name});
    same("$what: status", $its->{status}, defined $ours->{reason} ? 'FAILED' : 'COMPLETE');
    same("$what: reason", $its->{failureReason}, $ours->{reason});
    same("$what: tasks", $its->{numTasks}, $ours->{tasks});
    same("$what: tasks under way", $its->{numActiveTasks}, 0);
    my $unwritten = $ours->{summarised};
    same("$what: tasks that succeeded or were killed", $its->{numCompleteTasks} + $its->{numKilledTasks},
        $ours->{succeeded} + $ours->{killed} - $unwritten);
    same("$what: tasks that failed", $its->{numFailedTasks}, $ours->{failed});
    same("$what: submitted", ms($its->{submissionTime}), $ours->{submitted});
    same("$what: ended", ms($its->{completionTime}), $ours->{ended});
    same("$what: pool", $its->{schedulingPool}, $ours->{pool} // 'default');
    my %sums = map { $_->{name} => $_->{value} } @{ $its->{accumulatorUpdates} };
    my %told = map { $_->{name} => "$_->{value}" } @{ $ours->{accumulated} };
    same("$what: what was added up", encode(\%sums), encode(\%told));
    compare_tasks($what, $its, $ours);
    return if $unwritten;
    same("$what: killed", $its->{numKilledTasks}, $ours->{killed});
    same("$what: $_->[0]", $its->{ $_->[0] }, $ours->{ $_->[1] }) for @flows;
}

sub encode { return JSON::PP->new->canonical->encode($_[0]) }

my $stages = get('/stages');
for my $stage (@$stages) {
    my $id = "$stage->{stageId}.$stage->{attemptId}";
    my $ours = delete $tries{$id};
    if (!$ours) { # a stage that was never submitted
        same("stage $id: status", $stage->{status}, 'SKIPPED');
        next;
    }
    $begun{$id} = $ours;
    compare_stage($stage, $ours);
}
differ("stage $_", undef, 'an attempt') for sort keys %tries;

# ---- jobs ----

my %actions = map { $_->{id} => $_ } map { @{ $_->{actions} } } @starts;
for my $job (@{ get('/jobs') }) {
    my $ours = delete $actions{ $job->{jobId} };
    my $what = "job $job->{jobId}";
    differ($what, 'a job', undef), next unless $ours;
    same("$what: status", $job->{status}, $ours->{outcome} eq 'succeeded' ? 'SUCCEEDED' : 'FAILED');
    same("$what: description", $job->{description}, $ours->{name});
    same("$what: submitted", ms($job->{submissionTime}), $ours->{submitted});
    same("$what: ended", ms($job->{completionTime}), $ours->{ended});
    same("$what: stages", join(' ', sort @{ $job->{stageIds} }), join(' ', sort @{ $ours->{stages} }));
    my %mine = map { $_ => 1 } @{ $ours->{stages} };
    my @of = grep { $mine{ $_->{stage} } && $_->{submitted} >= $ours->{submitted}
            && $_->{submitted} <= $ours->{ended} } values %begun;
    # A stage that goes on for another job stays as it was when this one ended, there.
    next if grep { $_->{ended} > $ours->{ended} } @of;
    same("$what: stages under way", $job->{numActiveStages}, 0);
    same("$what: tasks under way", $job->{numActiveTasks}, 0);
    my ($failed, $tasks) = (0, 0);
    for my $try (@of) {
        $failed += defined $try->{reason};
        $tasks += $try->{failed};
    }
    next if @{ $starts[0]{actions} } > 1; # they may share a stage
    same("$what: stages that failed", $job->{numFailedStages}, $failed);
    same("$what: stages that ended well", $job->{numCompletedStages}, @of - $failed);
    same("$what: tasks that failed", $job->{numFailedTasks}, $tasks);
}
differ("job $_", undef, 'an action') for sort keys %actions;

# ---- executors ----

my %executors = map { $_->{id} => $_ } map { @{ $_->{executors} } } @starts;
for my $executor (@{ get('/allexecutors') }) {
    my $what = "executor $executor->{id}";
    my $ours = delete $executors{ $executor->{id} };
    differ($what, 'an executor', undef), next unless $ours;
    same("$what: host", $executor->{hostPort} =~ s/:\d*$//r, $ours->{host});
    same("$what: cores", $executor->{totalCores}, $ours->{cores});
    same("$what: profile", $executor->{resourceProfileId}, $ours->{profile});
    same("$what: added", ms($executor->{addTime}), $ours->{added});
    same("$what: removed", ms($executor->{removeTime}), $ours->{removed});
    same("$what: why", $executor->{removeReason}, $ours->{reason});
    same("$what: active", $executor->{isActive} ? 1 : 0, defined $ours->{removed} ? 0 : 1);
    same("$what: tasks under way", $executor->{activeTasks}, 0);
    my %has = map { $_ => $executor->{resources}{$_}{addresses} } keys %{ $executor->{resources} };
    same("$what: devices", encode(\%has), encode($ours->{resources}));
    same("$what: tasks that failed", $executor->{failedTasks}, $ours->{failed});
    same("$what: tasks that succeeded", $executor->{completedTasks}, $ours->{succeeded});
    same("$what: tasks", $executor->{totalTasks}, $ours->{succeeded} + $ours->{failed} + $ours->{killed});
    same("$what: ms of its tasks", $executor->{totalDuration}, $ours->{task_ms});
    same("$what: shuffle bytes read", $executor->{totalShuffleRead}, $ours->{read});
    same("$what: shuffle bytes written", $executor->{totalShuffleWrite}, $ours->{written});
}
differ("executor $_", undef, 'an executor') for sort keys %executors;

# ---- profiles ----

my $environment = get('/environment');
my %profiles = map { $_->{id} => $_ } map { @{ $_->{profiles} } } @starts;
for my $profile (@{ $environment->{resourceProfiles} }) {
    my $ours = delete $profiles{ $profile->{id} };
    my $what = "profile $profile->{id}";
    differ($what, 'a profile', undef), next unless $ours;
    for my $side ([executorResources => 'executor'], [taskResources => 'task']) {
        my %its = %{ $profile->{ $side->[0] } };
        my %all = (%its, %{ $ours->{ $side->[1] } });
        for my $name (sort keys %all) {
            my ($theirs, $here) = ($its{$name}{amount}, $ours->{ $side->[1] }{$name});
            same("$what: $side->[1] $name", defined $theirs ? $theirs + 0 : undef,
                defined $here ? $here + 0 : undef);
        }
    }
}
differ("profile $_", undef, 'a profile') for sort keys %profiles;

# ---- pages ----

my $pages = "$url/history/$last->{app_id}";
page("$pages/$_") for qw(jobs/ stages/ storage/ environment/ executors/);
page("$pages/stages/stage/?id=$_->{stageId}&attempt=$_->{attemptId}") for @$stages;
page("$pages/jobs/job/?id=$_") for map { $_->{id} } map { @{ $_->{actions} } } @starts;
page("$pages/storage/rdd/?id=$_->{id}") for @{ get('/storage/rdd') };
exit $differs;
