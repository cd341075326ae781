#!/usr/bin/perl
# Junk at every port that listens here: what any user of a machine can do to the others.
#
#   flood.perl SECONDS HELD_SECONDS
#
# For SECONDS it connects to each TCP port of this network namespace in turn, over the
# loopback interface, and says something that no program there expects, or nothing. A
# third of the connections stay open for HELD_SECONDS more. It has at most HELD of them
# open and makes at most TOTAL, says how many it made, and ends by itself.
use strict;
use warnings;
use Fcntl;
use Socket;
use Time::HiRes qw(time sleep);

use constant { HELD => 900, TOTAL => 20000, PAUSE => 0.001 };

my ($seconds, $held_seconds) = @ARGV;
defined $held_seconds or die "flood.perl SECONDS HELD_SECONDS\n";
alarm($seconds + $held_seconds + 2);
$SIG{PIPE} = 'IGNORE';
$| = 1;

sub listening {
    my %ports;
    for my $file ('/proc/net/tcp', '/proc/net/tcp6') {
        open(my $table, '<', $file) or next;
        while (<$table>) {
            my (undef, $local, undef, $state) = split;
            $ports{hex((split /:/, $local)[1])} = 1 if $state eq '0A';
        }
    }
    return keys %ports;
}

# Nothing, random bytes, another protocol, zeros, and what may look like the header of a
# message that is much longer than what follows.
my @junk = (
    sub { '' },
    sub { join '', map { chr int rand 256 } 1 .. 1 + int rand 200 },
    sub { "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n" },
    sub { "\0" x (1 + int rand 200) },
    sub { pack 'N10', (0) x 9, 0xffffff },
    sub { pack 'N', 0x7fffffff },
);

my ($end, $made, @held) = (time + $seconds, 0);
while (time < $end && $made < TOTAL) {
    for my $port (listening()) {
        socket(my $s, PF_INET, SOCK_STREAM, 0) or last;
        fcntl($s, F_SETFL, O_NONBLOCK);
        connect($s, sockaddr_in($port, INADDR_LOOPBACK));
        my $said = $junk[rand @junk]->();
        syswrite($s, $said) if length $said;
        push @held, $s if $made++ % 3 == 0 && @held < HELD;
        last if time >= $end;
    }
    sleep PAUSE;
}
print "$made connections\n";
sleep $held_seconds;
