#!/bin/sh
# A decision stump in awk: where to cut so that most training points are on the right side. No epochs, no checkpoints; it shows
# that a program needs nothing but a line of JSON on descriptor 3.
read -r request
value() { printf '%s' "$request" | sed -n "s/.*\"$1\":\([0-9.]*\).*/\1/p"; }
awk -v fold="$(value split)" -v noise="$(value noise)" -v cuts="$(value cuts)" '
function right(from, to, cut,    at, count) {
    for (at = from; at < to; at++) count += ((x[at] > cut) == y[at])
    return count / (to - from)
}
BEGIN {
    srand(fold)
    for (at = 0; at < 500; at++) { y[at] = rand() > 0.5; x[at] = y[at] + noise * (rand() + rand() + rand() - 1.5) }
    for (n = 0; n <= cuts; n++) {
        cut = n / cuts
        if (right(0, 300, cut) > best) { best = right(0, 300, cut); where = cut }
    }
    printf "{\"event\":\"result\",\"test\":%.6f,\"validation\":%.6f,\"train\":%.6f}\n",
        right(400, 500, where), right(300, 400, where), best
}' >&3
