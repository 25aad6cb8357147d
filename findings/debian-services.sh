#!/usr/bin/env bash
# /etc/services of Debian 12 (netbase 6.4) contains only one service of SCTP: amqp at port 5672.
#
# IANA has assigned SCTP ports to the protocols that run over SCTP: diameter 3868, m3ua 2905, m2pa
# 3565, sua 14001, s1-control 36412, ngap 38412. None of them is in the file. getaddrinfo with the
# name of such a service and protocol SCTP therefore fails with EAI_SERVICE, and configurations
# need port numbers.
#
# A reader would expect at least diameter in the file, and would not expect AMQP as the only
# service.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 755 "$work"
timeout 120 apt-get download -qq netbase=6.4 2> /dev/null
dpkg -x netbase_6.4_all.deb root
seen=$(awk '$2 ~ /\/sctp$/ { print $1, $2 }' root/etc/services)
echo "$seen"
[[ $seen == "amqp 5672/sctp" ]] || { echo "debian-services: the output is another one now" >&2; exit 1; }
if grep -q diameter root/etc/services; then echo "debian-services: diameter is listed now" >&2; exit 1; fi
