#!/usr/bin/env bats
# What a stream that breaks an invariant leaves, shown on a made-up one.
bats_require_minimum_version 1.5.0

property() { "$TROUPE_BUILD/tests/property/property" "$@"; }

@test "a stream that breaks something prints its seed, is made short and plays again" {
    for of in "engine time" "data end" "oracle round"; do
        read -r subject kind <<<"$of"
        run -1 property --break "$kind" "$subject" 20 4711
        grep -qE '^# seed 4[0-9]{3}$' <<<"$output"
        grep -q '^# broken: is made up$' <<<"$output"
        [[ "$output" =~ again:\ property\ $subject\ =(4[0-9]{3}) ]]
        [ "$(grep '^# seed' <<<"$output")" = "# seed ${BASH_REMATCH[1]}" ]
        # nothing is left but what breaks it: the steps, without arguments, and no knob
        grep -q '^# reduced to 3 steps ' <<<"$output"
        file=$(grep -oE '/tmp/troupe-property-[A-Za-z0-9]{6}' <<<"$output" | head -1)
        [ "$(grep -v '^#' "$file")" = "$(echo "$subject" && yes "$kind 0 0 0 0" | head -3)" ]
        run -1 property --break "$kind" "$file"
        run -0 property "$file"
        rm "$file"
    done
}
