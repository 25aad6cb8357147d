#!/usr/bin/env bash
# satellite.js 7.1.0 (npm) reads the EPOCH of an OMM in whole milliseconds. It accepts the other
# format of CCSDS 502.0-B, the day of the year (2020-045T...), without an error, but the positions
# are then NaN.
#
# The microseconds that Space-Track and CelesTrak write are truncated: the epoch 27:39.231999
# becomes 27:39.231, and the position of a satellite in low orbit is wrong by 7.6 m. If the same
# elements are read as two lines, all digits are used. If the EPOCH has the day of the year, the
# record's `error` is 0, and propagate() returns an object.
#
# A reader would expect at least the precision of two-line elements, and null or an error if the
# epoch cannot be read.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
echo '{ "private": true }' > package.json
timeout 120 npm install --silent --no-audit --no-fund satellite.js@7.1.0 > npm.txt 2>&1
cat > case.mjs <<'JS'
import * as satellite from 'satellite.js'

const elements = {
  OBJECT_NAME: 'ONE', OBJECT_ID: '1998-067A', MEAN_MOTION: 15.49165514, ECCENTRICITY: 0.0004885,
  INCLINATION: 51.6443, RA_OF_ASC_NODE: 242.0161, ARG_OF_PERICENTER: 264.606, MEAN_ANOMALY: 207.3845,
  EPHEMERIS_TYPE: 0, CLASSIFICATION_TYPE: 'U', NORAD_CAT_ID: 25544, ELEMENT_SET_NO: 999,
  REV_AT_EPOCH: 21279, BSTAR: 0.000025302, MEAN_MOTION_DOT: 0.0000095, MEAN_MOTION_DDOT: 0,
}
const when = new Date('2020-02-14T05:00:00Z')
const at = (epoch) => {
  const record = satellite.json2satrec({ ...elements, EPOCH: epoch })
  return { record, place: satellite.propagate(record, when).position }
}
const apart = (one, two) => Math.hypot(one.x - two.x, one.y - two.y, one.z - two.z) * 1000
const whole = at('2020-02-14T04:27:39.231000')
const cut = at('2020-02-14T04:27:39.231999')
console.log('999 microseconds later:', apart(whole.place, cut.place).toFixed(1), 'm')
const day = at('2020-045T04:27:39.231000')
console.log('day of the year: error', day.record.error, 'position', day.place.x)
JS
seen=$(timeout 60 node case.mjs)
echo "$seen"
expected='999 microseconds later: 0.0 m
day of the year: error 0 position NaN'
[[ $seen == "$expected" ]] || { echo "satellitejs-omm-epoch: the output is another one now" >&2; exit 1; }
