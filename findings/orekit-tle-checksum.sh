#!/usr/bin/env bash
# Orekit 13.1.8 (Maven) creates a TLE from two lines with a wrong checksum, without an exception.
#
# TLE.isFormatOK(line1, line2) detects the wrong digit and throws an exception. Neither the
# constructor nor the propagator calls it. A program that reads lines by `new TLE(line1, line2)`
# therefore computes positions from lines in which a digit was altered.
#
# A reader would expect the constructor to refuse such lines, because Orekit checks its other
# inputs. python sgp4 and satellite.js also accept them, but do not promise a check.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.orekit</groupId><artifactId>orekit</artifactId><version>13.1.8</version></dependency>
  </dependencies>
</project>
XML
timeout 300 mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > mvn.txt 2>&1 || { cat mvn.txt; exit 1; }
cat > Case.java <<'JAVA'
import java.util.List;
import org.orekit.propagation.analytical.tle.TLE;
import org.orekit.time.*;

public class Case {
    public static void main(String[] arguments) {
        TimeScalesFactory.addUTCTAIOffsetsLoader(() -> List.of(
            new OffsetModel(new DateComponents(2017, 1, 1), 57754, new TimeOffset(37, TimeOffset.SECOND), 0)));
        String first = "1 25544U 98067A   20045.18587073  .00000950  00000-0  25302-4 0  9990";
        String second = "2 25544  51.6443 242.0161 0004885 264.6060 207.3845 15.49165514212791";
        String altered = first.substring(0, 68) + "5";
        TLE made = new TLE(altered, second, TimeScalesFactory.getUTC());
        System.out.println("constructor: satellite " + made.getSatelliteNumber());
        try {
            System.out.println("isFormatOK: " + TLE.isFormatOK(altered, second));
        } catch (RuntimeException wrong) {
            System.out.println("isFormatOK: throws " + wrong.getClass().getSimpleName());
        }
    }
}
JAVA
timeout 120 javac -cp 'lib/*' Case.java
seen=$(timeout 60 java -cp 'lib/*:.' Case)
echo "$seen"
expected='constructor: satellite 25544
isFormatOK: throws OrekitException'
[[ $seen == "$expected" ]] || { echo "orekit-tle-checksum: the output is another one now" >&2; exit 1; }
