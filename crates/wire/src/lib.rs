//! Bytes to meaning and back: SCTP packets, chunks, parameters and causes; TCP segments; serial numbers; checksums
