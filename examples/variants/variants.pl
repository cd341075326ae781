#!/usr/bin/perl
# What the stages of pipeline.yaml run: a small copy of what is done with sequenced genomes.
# Plain files in and out; it knows nothing of Troupe.
#
#   reference LENGTH                       a genome, on stdout
#   reads REFERENCE NAME DEPTH END TRUTH   reads of a sample of it, FASTQ on stdout, and which
#                                          bases differ, in TRUTH; END: whole, or cut in the
#                                          midst of the last read
#   align REFERENCE READS                  where each read lies: "POSITION<tab>BASES"
#   call REFERENCE ALIGNED                 bases that differ: "POSITION<tab>FROM<tab>TO"
#   merge FILES                            a line a variant, a column a sample
use strict;
use warnings;

use constant {READ => 100, SEED => 20, MISMATCHES => 10, LEAST_DEPTH => 4};
my @bases = qw(A C G T);

# Data that is no good: one line, and a status of its own (EX_DATAERR).
$SIG{__DIE__} = sub { print STDERR @_; exit 65 };

# Numbers that look random and are the same everywhere.
my $state = 1;
sub below {
    my ($n) = @_;
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return int($state / 65536) % $n;
}

sub slurp {
    my ($file) = @_;
    open my $in, '<', $file or die "$file: $!\n";
    my $text = do { local $/; <$in> };
    chomp $text;
    return $text;
}

sub other_base {
    my ($base) = @_;
    my @others = grep { $_ ne $base } @bases;
    return $others[below(3)];
}

sub reference {
    my ($length) = @_;
    print map({ $bases[below(4)] } 1 .. $length), "\n";
}

sub reads {
    my ($reference, $name, $depth, $end, $truth) = @_;
    my $genome = slurp($reference);
    $state = unpack '%31C*', $name x 97;
    open my $out, '>', $truth or die "$truth: $!\n";
    for (my $at = below(1000); $at < length $genome; $at += 1 + below(1000)) {
        my $from = substr $genome, $at, 1;
        substr($genome, $at, 1) = other_base($from);
        print $out join("\t", $at, $from, substr $genome, $at, 1), "\n";
    }
    close $out or die "$truth: $!\n";
    my $count = int(length($genome) * $depth / READ);
    for my $i (1 .. $count) {
        my $read = substr $genome, below(length($genome) - READ + 1), READ;
        substr($read, below(READ), 1) = 'N' if below(4) == 0;    # could not be read
        my $quality = $end eq 'cut' && $i == $count ? 'I' x 7 : 'I' x READ;
        print "\@$name.$i\n$read\n+\n$quality\n";
    }
}

# The place where all of the read but a few bases are as in the genome.
sub place {
    my ($genome, $seeds, $read) = @_;
    for (my $at = 0; $at + SEED <= length $read; $at += SEED) {
        my $found = $seeds->{substr $read, $at, SEED};
        next if !defined $found || $found < $at;
        my $differ = substr($genome, $found - $at, length $read) ^ $read;
        return $found - $at if ($differ =~ tr/\0//c) <= MISMATCHES;
    }
    return;
}

sub align {
    my ($reference, $file) = @_;
    my $genome = slurp($reference);
    my %seeds = map { substr($genome, $_, SEED) => $_ } 0 .. length($genome) - SEED;
    open my $in, '<', $file or die "$file: $!\n";
    while (defined(my $name = <$in>)) {
        my ($read, undef, $quality) = map { my $line = <$in>; defined $line ? $line : '' } 1 .. 3;
        chomp($read, $quality);
        die "$file:$.: the read has ", length $read, " bases and ", length $quality,
            " qualities; the file was cut off\n"
            if length $read != length $quality;
        my $at = place($genome, \%seeds, $read);
        print "$at\t$read\n" if defined $at;
    }
}

sub call {
    my ($reference, $aligned) = @_;
    my $genome = slurp($reference);
    my @seen;
    open my $in, '<', $aligned or die "$aligned: $!\n";
    while (<$in>) {
        chomp;
        my ($at, $read) = split /\t/;
        $seen[$at + $_]{substr $read, $_, 1}++ for grep { substr($read, $_, 1) ne 'N' } 0 .. length($read) - 1;
    }
    for my $at (0 .. $#seen) {
        my $n = $seen[$at] or next;
        my $from = substr $genome, $at, 1;
        my ($most) = sort { $n->{$b} <=> $n->{$a} || $a cmp $b } keys %$n;
        print "$at\t$from\t$most\n" if $most ne $from && $n->{$most} >= LEAST_DEPTH;
    }
}

sub merge {
    my %has;
    my @names = map { m{([^/]*)$} } @_;
    for my $i (0 .. $#_) {
        open my $in, '<', $_[$i] or die "$_[$i]: $!\n";
        while (<$in>) {
            chomp;
            $has{$_}[$i] = 1;
        }
    }
    my %position = map { $_ => (split /\t/)[0] } keys %has;
    print join("\t", qw(position from to), @names), "\n";
    print join("\t", $_, map { $_ ? 1 : 0 } @{$has{$_}}[0 .. $#names]), "\n"
        for sort { $position{$a} <=> $position{$b} || $a cmp $b } keys %has;
}

my %commands = (reference => \&reference, reads => \&reads, align => \&align, call => \&call, merge => \&merge);
my $command = $commands{shift(@ARGV) // ''} or die "usage: see the head of $0\n";
$command->(@ARGV);
close STDOUT or die "stdout: $!\n";
