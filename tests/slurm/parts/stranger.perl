# Somebody at a driver's admission socket who does not belong there.
#
#   stranger.perl HOST:PORT babble          says HTTP, TLS, garbled and broken frames
#   stranger.perl HOST:PORT scan N          connects and closes
#   stranger.perl HOST:PORT silent N RATE   opens N connections, RATE a second, and holds
#                                           them until it is killed; says "begun" at
#                                           1000 of them and "held" at all
#   stranger.perl HOST:PORT record FILE     (root, on the driver's host) keeps what the
#                                           next executor that comes says up to its hello
#   stranger.perl HOST:PORT replay FILE     says that again
#   stranger.perl HOST:PORT prove SECRET CREDENTIAL [UID]
#                                           proves that it knows the secret in that file,
#                                           with a MUNGE credential: none; mine, only for
#                                           UID when given; other, for another connection
#
# replay and prove print what the driver answers: "refused: TEXT", "proof" or "closed".
use strict;
use warnings;
use Digest::SHA 'hmac_sha256';
use Socket;
use Time::HiRes qw(sleep time);

use constant { CHALLENGE => 1, ANSWER => 2, PROOF => 3, HELLO => 4, REFUSED => 6 };
use constant { MARK => 0x54, NONCE => 32 };

my ($address, $what, @words) = @ARGV;
my ($host, $port) = $address =~ /^(.+):(\d+)$/ or die "not HOST:PORT: $address\n";
$SIG{PIPE} = 'IGNORE';
$| = 1;

sub dial {
    socket(my $s, AF_INET, SOCK_STREAM, 0) or die "socket: $!\n";
    connect($s, pack_sockaddr_in($port, inet_aton($host))) or die "connect: $!\n";
    return $s;
}

sub frame { return pack('vCC', length $_[1], $_[0], MARK) . $_[1] }

sub text { return pack('V', length $_[0]) . $_[0] }

sub await_bytes {
    my ($s, $n) = @_;
    my $got = '';
    while (length $got < $n) {
        my $more = sysread $s, $got, $n - length $got, length $got;
        return undef unless $more;
    }
    return $got;
}

# (kind, body), or nothing when the driver closed.
sub await_frame {
    my ($s) = @_;
    my $head = await_bytes($s, 4) // return;
    my ($n, $kind) = unpack 'vC', $head;
    my $body = $n ? await_bytes($s, $n) // return : '';
    return ($kind, $body);
}

sub tell_answer {
    my ($s) = @_;
    my ($kind, $body) = await_frame($s);
    return print "closed\n" unless defined $kind;
    return print "proof\n" if $kind == PROOF;
    return print "refused: ", unpack('x V/a', $body), "\n" if $kind == REFUSED;
    print "a frame of kind $kind\n";
}

sub say_and_wait {
    my ($bytes) = @_;
    my $s = dial();
    syswrite $s, $bytes;
    1 while sysread $s, my $rest, 4096;
}

sub babble {
    srand 7;
    my $answer = frame(ANSWER, 'x' x (2 * NONCE) . text(''));
    say_and_wait("GET / HTTP/1.1\r\nHost: $host\r\n\r\n");
    say_and_wait("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . 'x' x 501);
    say_and_wait("SSH-2.0-OpenSSH_9.2\r\n");
    say_and_wait($answer);                                     # well-formed and wrong
    say_and_wait(substr($answer, 0, 40) . "\xff" x 28);        # garbled
    say_and_wait(frame(ANSWER, 'x' x (2 * NONCE) . pack('V', 0xffffffff)));
    say_and_wait(frame(HELLO, pack('VVV', 1, 0, 1)));          # before any proof
    say_and_wait(pack('vCC', 0xffff, ANSWER, MARK) . 'x' x 5000);
    say_and_wait(join '', map { chr int rand 256 } 1 .. 3000) for 1 .. 20;
    print "babbled\n";
}

sub silent {
    my ($n, $rate) = @_;
    my ($begin, $begun, @open) = (time, 0);
    while (@open < $n) {
        push @open, dial() while @open < $n && @open < $rate * (time - $begin);
        print "begun\n" if @open >= 1000 && !$begun++;
        sleep 0.005;
    }
    print "held\n";
    sleep 1 while getppid > 1;
}

# The payload of TCP packets to $port, put together by source; they come in order here.
sub record {
    my ($file) = @_;
    my %said;
    socket(my $s, 17, SOCK_DGRAM, unpack 'S', pack('n', 0x0800)) or die "socket: $!\n";
    print "recording\n";
    while (defined recv $s, my $packet, 65536, 0) {
        my $ip = 4 * (ord($packet) & 15);
        my ($size, $protocol) = (unpack('x2 n', $packet), ord substr $packet, 9, 1);
        next if $protocol != 6 || $size < $ip + 20;
        my ($from, $to) = unpack 'nn', substr $packet, $ip;
        next if $to != $port;
        my $tcp = 4 * (ord(substr $packet, $ip + 12, 1) >> 4);
        $said{$from} .= substr $packet, $ip + $tcp, $size - $ip - $tcp;
        my ($n, $kind, $mark) = unpack 'vCC', $said{$from} . "\0" x 4;
        next if $kind != ANSWER || length $said{$from} < 4 + $n + 4;
        my ($m, $next) = unpack 'vC', substr $said{$from}, 4 + $n;
        next if $next != HELLO || length $said{$from} < 8 + $n + $m;
        open my $out, '>', $file or die "$file: $!\n";
        print $out $said{$from};
        close $out;
        return;
    }
}

sub replay {
    my ($file) = @_;
    open my $in, '<', $file or die "$file: $!\n";
    my $said = do { local $/; <$in> };
    my $s = dial();
    await_frame($s);
    syswrite $s, $said;
    tell_answer($s);
}

sub credential {
    my ($kind, $proof, $uid) = @_;
    return '' if $kind eq 'none';
    my $file = "credential.$$";
    open my $out, '>', $file or die "$file: $!\n";
    print $out $kind eq 'other' ? 'x' x length $proof : $proof;
    close $out;
    my $restrict = defined $uid ? "-u $uid" : '';
    chomp(my $credential = `munge $restrict -i $file`);
    unlink $file;
    return $credential;
}

sub prove {
    my ($file, $kind, $uid) = @_;
    open my $in, '<', $file or die "$file: $!\n";
    my $secret = do { local $/; <$in> };
    my $s = dial();
    my (undef, $theirs) = await_frame($s);
    my $mine = 'y' x NONCE;
    my $proof = hmac_sha256("troupe executor proof\0$theirs$mine", $secret);
    syswrite $s, frame(ANSWER, $mine . $proof . text(credential($kind, $proof, $uid)));
    tell_answer($s);
}

my %acts = (
    babble => \&babble,
    scan   => sub { close dial() for 1 .. $_[0] },
    silent => \&silent,
    record => \&record,
    replay => \&replay,
    prove  => \&prove,
);
($acts{$what // ''} or die "not known: $what\n")->(@words);
