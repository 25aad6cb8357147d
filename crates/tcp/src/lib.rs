//! TCP with SACK without I/O, under the same driver contract as SCTP
