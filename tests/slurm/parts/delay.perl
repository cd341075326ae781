#!/usr/bin/perl
# Delays what one host sends, in the switch: stands between the host's port and the bridge
# and passes frames on, those of the host MS milliseconds later. Works on any kernel with
# TUN devices; netem, which would do the same, is not in every kernel.
#
#   delay.perl PORT TAP MS
#
# Frames travel with their virtio header, so those that wait for a checksum or for being cut
# into packets (as they do on veth) stay what they are.
use strict;
use warnings;
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);

use constant {
    TUNSETIFF => 0x400454ca, IFF_TAP => 2, IFF_NO_PI => 0x1000, IFF_VNET_HDR => 0x4000,
    AF_PACKET => 17, SOCK_RAW => 3, ETH_P_ALL => 3, SOL_PACKET => 263,
    PACKET_VNET_HDR => 15,
    LONGEST => 10 + 14 + 65536, MOST_HELD => 256 << 20,
};

my ($port, $tap_name, $ms) = @ARGV;

sysopen(my $tap, '/dev/net/tun', 2) or die "no TUN device (CONFIG_TUN): $!\n";
ioctl($tap, TUNSETIFF, pack('a16 s x22', $tap_name, IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
    or die "no TUN device: $!\n";

open(my $index, '<', "/sys/class/net/$port/ifindex") or die "no port $port: $!\n";
socket(my $wire, AF_PACKET, SOCK_RAW, unpack('S', pack('n', ETH_P_ALL)))
    or die "no packet socket: $!\n";
setsockopt($wire, SOL_PACKET, PACKET_VNET_HDR, pack('i', 1))
    or die "no packet socket with headers: $!\n";
bind($wire, pack('S n i S C C x8', AF_PACKET, ETH_P_ALL, <$index>, 0, 0, 0))
    or die "no packet socket on $port: $!\n";

# Between the two ends nothing may be lost, so the port leaves the bridge only now.
system('ip', 'link', 'set', 'dev', $tap_name, 'master', 'bridge', 'up') == 0 or exit 1;
system('ip', 'link', 'set', 'dev', $port, 'nomaster') == 0 or exit 1;
$| = 1;
print "ready\n";
close STDOUT;

my (@held, $held_bytes);    # [when, frame] of the host, oldest first
$held_bytes = 0;
while (1) {
    my $wait = @held ? $held[0][0] - clock_gettime(CLOCK_MONOTONIC) : undef;
    $wait = 0 if defined $wait && $wait < 0;
    my $ready = '';
    vec($ready, fileno($tap), 1) = vec($ready, fileno($wire), 1) = 1;
    select($ready, undef, undef, $wait);
    my $now = clock_gettime(CLOCK_MONOTONIC);
    # A cable that is unplugged makes calls fail; frames are lost then, as they should be.
    if (vec($ready, fileno($wire), 1) && sysread($wire, my $frame, LONGEST)) {
        if ($held_bytes + length $frame <= MOST_HELD) {
            push @held, [$now + $ms / 1000, $frame];
            $held_bytes += length $frame;
        }
    }
    if (vec($ready, fileno($tap), 1) && sysread($tap, my $frame, LONGEST)) {
        syswrite($wire, $frame);
    }
    while (@held && $held[0][0] <= $now) {
        my $frame = (shift @held)->[1];
        $held_bytes -= length $frame;
        syswrite($tap, $frame);
    }
}
