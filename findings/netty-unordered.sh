#!/usr/bin/env bash
# SctpMessageCompletionHandler of Netty 4.2.17.Final (Maven) joins an unordered message with the
# parts of an ordered message of the same stream.
#
# The handler identifies the parts of a message by the stream number only. With fragment
# interleaving (RFC 6458 §8.1.20, level 2) and message interleaving (RFC 8260) a complete
# unordered message may be delivered between two parts of an ordered message. The handler then
# appends the unordered message to the first parts and delivers the result as one message, and
# delivers the remaining parts of the ordered message as another message. No error is reported.
#
# A reader would expect the handler to separate ordered and unordered messages of a stream,
# because MessageInfo distinguishes them.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
cat > pom.xml <<'XML'
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>finding</groupId><artifactId>finding</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.netty</groupId><artifactId>netty-transport-sctp</artifactId><version>4.2.17.Final</version></dependency>
  </dependencies>
</project>
XML
timeout 300 mvn -q -B dependency:copy-dependencies -DoutputDirectory=lib > mvn.txt 2>&1 || { cat mvn.txt; exit 1; }
cat > Case.java <<'JAVA'
import com.sun.nio.sctp.*;
import io.netty.buffer.Unpooled;
import io.netty.channel.embedded.EmbeddedChannel;
import io.netty.channel.sctp.SctpMessage;
import io.netty.handler.codec.sctp.SctpMessageCompletionHandler;
import java.net.SocketAddress;
import java.nio.charset.StandardCharsets;

public class Case {
    /** As the JDK hands it over, on stream 1. */
    static class Info extends MessageInfo {
        final boolean whole, unordered;
        Info(boolean whole, boolean unordered) { this.whole = whole; this.unordered = unordered; }
        public SocketAddress address() { return null; }
        public Association association() { return null; }
        public int bytes() { return 2; }
        public boolean isComplete() { return whole; }
        public MessageInfo complete(boolean ignored) { return this; }
        public boolean isUnordered() { return unordered; }
        public MessageInfo unordered(boolean ignored) { return this; }
        public int payloadProtocolID() { return 46; }
        public MessageInfo payloadProtocolID(int ignored) { return this; }
        public int streamNumber() { return 1; }
        public MessageInfo streamNumber(int ignored) { return this; }
        public long timeToLive() { return 0; }
        public MessageInfo timeToLive(long ignored) { return this; }
    }

    static SctpMessage part(String text, boolean whole, boolean unordered) {
        return new SctpMessage(new Info(whole, unordered),
            Unpooled.copiedBuffer(text, StandardCharsets.US_ASCII));
    }

    public static void main(String[] arguments) {
        EmbeddedChannel channel = new EmbeddedChannel(new SctpMessageCompletionHandler());
        channel.writeInbound(part("ab", false, false), part("XX", true, true), part("cd", true, false));
        for (SctpMessage read; (read = channel.readInbound()) != null;) {
            System.out.println((read.isUnordered() ? "unordered " : "ordered ")
                + read.content().toString(StandardCharsets.US_ASCII));
        }
    }
}
JAVA
timeout 120 javac -cp 'lib/*' Case.java
seen=$(timeout 60 java -cp 'lib/*:.' Case 2> /dev/null)
echo "$seen"
expected='unordered abXX
ordered cd'
[[ $seen == "$expected" ]] || { echo "netty-unordered: the output is another one now" >&2; exit 1; }
