#!/usr/bin/perl
# train.pl RATE ROWS EPOCHS: fits y = 3 a - 2 b + 1 to ROWS points that it makes, by gradient
# descent with that learning rate, and prints a line an epoch, "EPOCH LOSS", and the model at
# last. All points are held in memory, as data loaders like to. It knows nothing of Troupe.
use strict;
use warnings;

my ($rate, $rows, $epochs) = @ARGV;
die "usage: see the head of $0\n" if !$epochs;

my $state = 1;
sub uniform { # from -1 to 1, the same everywhere
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return $state / 1073741824 - 1;
}

my @points = map {
    my ($x, $y) = (uniform(), uniform());
    [$x, $y, 3 * $x - 2 * $y + 1 + uniform() / 10]
} 1 .. $rows;

$| = 1; # each epoch is seen at once by who follows the log
my @model = (0, 0, 0);
for my $epoch (1 .. $epochs) {
    my ($loss, @slope) = (0, 0, 0, 0);
    for my $p (@points) {
        my $error = $model[0] * $p->[0] + $model[1] * $p->[1] + $model[2] - $p->[2];
        $loss += $error * $error;
        $slope[0] += $error * $p->[0];
        $slope[1] += $error * $p->[1];
        $slope[2] += $error;
    }
    $model[$_] -= $rate * 2 * $slope[$_] / $rows for 0 .. 2;
    printf "%d %.6f\n", $epoch, $loss / $rows;
}
printf "model %.3f %.3f %.3f\n", @model;
