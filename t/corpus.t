#!/bin/sh
# SPDX-License-Identifier: MIT
# What fuzzing has found worth keeping goes through each parser once more.
. "${0%/*}/lib.sh"

for target in desc meta manifest; do
	ok "there is a corpus for $target" test -n "$(ls "$TOP/t/corpus/$target")"
	ok "all of it goes through" \
		"$B/t/fuzz_$target" "$TOP/t/corpus/$target"/*
	ok 'and nothing to replay is an error' exits 1 "$B/t/fuzz_$target"
done

tap_done
