#!/usr/bin/perl
# A cable between a driver and one of its executors that does what it is told.
#
#   relay.perl FOLDER PROGRAM WORD…
#
# becomes PROGRAM. When that is to be an executor (TROUPE_EXECUTOR), it is given the
# address of a relay in place of its driver's; what FOLDER/shape has of FIELD=VALUE, a
# line each, holds for it, too. FOLDER/ID, the executor's number, has the relay's order:
#
#   pass            what comes from one side goes to the other; so it begins
#   hold SIDE [N]   nothing is taken from the other side, nothing goes to that one, once N
#                   more bytes have gone there
#   cut             both, and neither is told: as if the cable were cut
#   close SIDE      that side's connection is closed; the other's stays, and is silent
#   reset N         after N more bytes to the executor both are reset
#   garble SIDE N   a bit of the N-th byte that goes to that side from now on is turned
#   trickle SIDE N  N bytes a second go to that side
#
# SIDE is driver or executor. FOLDER/ID.done says what has been done. The relay ends when
# a side hangs up, or after `cut` and `close` with the executor.
use strict;
use warnings;
use Errno qw(EAGAIN EINTR);
use Fcntl;
use POSIX ();
use Socket qw(:DEFAULT IPPROTO_TCP TCP_NODELAY);
use Time::HiRes qw(time);

use constant { PIECE => 65536, LOOK => 0.02, LIFE => 120 };

my ($folder, @program) = @ARGV;
@program or die "relay.perl FOLDER PROGRAM WORD…\n";
my $shape = $ENV{TROUPE_EXECUTOR};
if (!defined $shape) { exec { $program[0] } @program; die "$program[0]: $!\n" }

my ($id) = $shape =~ /(?:^|;)id=(\d+)/;
my ($host, $port) = $shape =~ /;driver=([^;]*):(\d+)/;
socket(my $listener, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
bind($listener, sockaddr_in(0, INADDR_LOOPBACK)) && listen($listener, 1) or die "listen: $!\n";
my ($own) = sockaddr_in(getsockname $listener);
$shape =~ s/;driver=[^;]*/;driver=127.0.0.1:$own/;
if (open(my $fields, '<', "$folder/shape")) {
    while (<$fields>) { chomp; my ($name) = /^(\w+)=/; $shape =~ s/(^|;)\Q$name\E=[^;]*/$1$_/ }
}
if (fork) {
    close $listener;
    $ENV{TROUPE_EXECUTOR} = $shape;
    exec { $program[0] } @program;
    die "$program[0]: $!\n";
}

# ---- the relay ----------------------------------------------------------------------

my $executor = getppid;
POSIX::setsid();
alarm LIFE;
$SIG{PIPE} = 'IGNORE';
my (%side, %pending, %passed);
accept($side{executor}, $listener) or die "accept: $!\n";
close $listener;
socket($side{driver}, PF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
connect($side{driver}, sockaddr_in($port, inet_aton($host))) or die "connect: $!\n";
for (values %side) {
    fcntl($_, F_SETFL, fcntl($_, F_GETFL, 0) | O_NONBLOCK);
    setsockopt($_, IPPROTO_TCP, TCP_NODELAY, 1);
}
%pending = (driver => '', executor => '');
my %other = (driver => 'executor', executor => 'driver');
my ($text, $order, $to, $n) = ('', 'pass');
my $trickled; # when that began

sub look {
    open(my $file, '<', "$folder/$id") or return;
    my $now = <$file>;
    return if !defined $now || $now !~ /\n/ || $now eq $text;
    $text = $now;
    ($order, $to, $n) = split ' ', $text;
    ($to, $n) = ('executor', $to) if $order eq 'reset';
    %passed = (driver => 0, executor => 0);
    if ($order eq 'close') { close delete $side{$to}; done() }
    $trickled = time;
    done() if $order =~ /^(cut|trickle)$/ || ($order eq 'hold' && !defined $n);
}

sub done {
    open(my $file, '>>', "$folder/$id.done") or return;
    print $file $text;
}

sub reset_both {
    setsockopt($_, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0) for values %side;
    done();
    POSIX::_exit(0);
}

# Whether something passes to a side.
sub open_to { return !($order =~ /^(cut|close)$/ || is_held($_[0])) }

sub is_held {
    return $order eq 'hold' && $_[0] eq $to && (!defined $n || $passed{$to} >= $n);
}

# How many bytes may go to a side now.
sub room_to {
    my ($side) = @_;
    return PIECE if $order ne 'trickle' || $side ne $to;
    return int((time - $trickled) * $n) - $passed{$side};
}

# A piece that goes to a side, as it arrives there.
sub on_its_way {
    my ($side, $piece) = @_;
    my $at = defined $n && $order =~ /^(reset|garble)$/ && $side eq $to ? $n - $passed{$side} : -1;
    $passed{$side} += length $piece if $order ne 'trickle';
    done() if is_held($side);
    return $piece if $at < 0 || $at >= length $piece;
    if ($order eq 'garble') { vec($piece, $at * 8, 1) ^= 1; done(); return $piece }
    syswrite $side{$side}, $pending{$side} . substr $piece, 0, $at;
    reset_both();
}

sub take {
    my ($from) = @_;
    my $got = sysread $side{$from}, my $piece, PIECE;
    return if !defined $got && ($! == EAGAIN || $! == EINTR);
    if ($got) { $pending{$other{$from}} .= on_its_way($other{$from}, $piece); return }
    # It has hung up: what it said before still goes to the other.
    my $rest = $side{$other{$from}} or exit;
    fcntl($rest, F_SETFL, fcntl($rest, F_GETFL, 0) & ~O_NONBLOCK);
    syswrite $rest, $pending{$other{$from}} if length $pending{$other{$from}};
    exit;
}

while (1) {
    my ($in, $out) = ('', '');
    for my $side (keys %side) {
        vec($in, fileno $side{$side}, 1) = 1
            if open_to($other{$side}) && length $pending{$other{$side}} < PIECE;
        vec($out, fileno $side{$side}, 1) = 1
            if length $pending{$side} && open_to($side) && room_to($side) > 0;
    }
    select $in, $out, undef, LOOK;
    exit if $order =~ /^(cut|close)$/ && !kill 0, $executor;
    look();
    for my $side (keys %side) {
        if ($side{$side} && vec $out, fileno $side{$side}, 1) {
            my $sent = syswrite $side{$side}, $pending{$side}, room_to($side);
            substr($pending{$side}, 0, $sent) = '' if $sent;
            $passed{$side} += $sent if $sent && $order eq 'trickle';
        }
        take($side) if $side{$side} && open_to($other{$side}) && vec $in, fileno $side{$side}, 1;
    }
}
