#!/usr/bin/perl
# Junk at every port that listens here: what any user of a machine can do to the others.
#
#   flood.perl SEED [held]
#
# Until it is ended it connects to each TCP port of this network namespace in turn, over the
# loopback interface, and says something that no program there expects, or nothing: what, is
# drawn from SEED. A third of the connections stay open, HELD at most: until it ends, or
# without `held` for some more connections. Each EACH connections it says how many it made;
# it makes TOTAL.
use strict;
use warnings;
use Fcntl;
use Socket;
use Time::HiRes qw(sleep);

use constant { HELD => 900, TOTAL => 3000, EACH => 50, PAUSE => 0.001 };

my ($seed, $held) = @ARGV;
defined $seed or die "flood.perl SEED [held]\n";
srand $seed;
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
    return sort { $a <=> $b } keys %ports;
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

my ($made, @held) = (0);
while ($made < TOTAL) {
    for my $port (listening()) {
        socket(my $s, PF_INET, SOCK_STREAM, 0) or last;
        fcntl($s, F_SETFL, O_NONBLOCK);
        connect($s, sockaddr_in($port, INADDR_LOOPBACK));
        my $said = $junk[rand @junk]->();
        syswrite($s, $said) if length $said;
        push @held, $s if $made++ % 3 == 0 && @held < HELD;
        @held = () if !$held && $made % (4 * EACH) == 0;
        print "$made connections\n" if $made % EACH == 0;
    }
    sleep PAUSE;
}
sleep;
