# json EXPRESSION: prints a Perl expression of the document $d on stdin.
json() {
    perl -MJSON::PP -0777 -e '
        my $d = decode_json(<STDIN>);
        my $v = eval $ARGV[0];
        die $@ if $@;
        print ref $v ? encode_json($v) : defined $v ? $v : "null", "\n";' "$1"
}
