//! SCTP without I/O: RFC 9260, and the departures from it as named profiles
