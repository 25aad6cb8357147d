#!/usr/bin/env bash
# In ephem (PyEphem) 4.2.1 `sublat` of a satellite is a geocentric latitude, but its `elevation`
# is a height above an ellipsoid (PyPI: ephem 4.2.1, skyfield 1.55).
#
# The coordinates of places, and Skyfield's point below a satellite, are geodetic. At 46 degrees
# geodetic and geocentric latitude differ by 0.18 degrees, or 20 km on the ground. The elevation
# agrees with Skyfield's height above WGS84 to 50 m; a height above a sphere would differ by 6 km.
# satgenpy, which generates the constellations of Hypatia, uses ephem.
#
# A reader would expect a geodetic latitude, or a spherical Earth for both values.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
python3 -m venv venv
timeout 240 venv/bin/pip install --quiet --disable-pip-version-check ephem==4.2.1 skyfield==1.55
cat > case.py <<'PY'
import math

import ephem
from skyfield.api import EarthSatellite, load, wgs84
from skyfield.framelib import itrs

lines = [
    "1 25544U 98067A   20045.18587073  .00000950  00000-0  25302-4 0  9990",
    "2 25544  51.6443 242.0161 0004885 264.6060 207.3845 15.49165514212791",
]
scale = load.timescale(builtin=True)
when = scale.utc(2020, 2, 14, 4, 27, 39)
place = EarthSatellite(*lines, "one", scale).at(when)
geodetic = wgs84.geographic_position_of(place)
geocentric = place.frame_latlon(itrs)[0].degrees
body = ephem.readtle("one", *lines)
body.compute(ephem.Date("2020/2/14 04:27:39"))
latitude = math.degrees(body.sublat)
print(f"from Skyfield's geodetic latitude: {abs(latitude - geodetic.latitude.degrees):.2f} degrees")
print(f"from its geocentric latitude: {abs(latitude - geocentric):.2f} degrees")
print("elevation within 50 m:", abs(body.elevation - geodetic.elevation.m) < 50)
PY
seen=$(timeout 60 venv/bin/python case.py)
echo "$seen"
expected="from Skyfield's geodetic latitude: 0.18 degrees
from its geocentric latitude: 0.00 degrees
elevation within 50 m: True"
[[ $seen == "$expected" ]] || { echo "ephem-sublat: the output is another one now" >&2; exit 1; }
