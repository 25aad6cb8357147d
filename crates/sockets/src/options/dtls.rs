//! Socket options of the DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04 §8.4), which Linux does
//! not have.
//!
//! The draft assigns no numbers. These start at 0x4100 (the chunk type of the DTLS chunk is 0x41),
//! far beyond the numbers of Linux, which are consecutive and below 0x100.

/// SCTP_DTLS_LOCAL_CONFIG: struct sctp_dtls_config.
pub const DTLS_LOCAL_CONFIG: i32 = 0x4100;
/// SCTP_DTLS_GET_CONFIG: struct sctp_dtls_config; read only.
pub const DTLS_GET_CONFIG: i32 = 0x4101;
/// SCTP_DTLS_GET_LOCAL_KM_PARAM: struct sctp_dtls_kmp; read only.
pub const DTLS_GET_LOCAL_KM_PARAM: i32 = 0x4102;
/// SCTP_DTLS_GET_PEER_KM_PARAM: struct sctp_dtls_kmp; read only.
pub const DTLS_GET_PEER_KM_PARAM: i32 = 0x4103;
/// SCTP_DTLS_SET_SEND_KEYS: struct sctp_dtls_keys; write only.
pub const DTLS_SET_SEND_KEYS: i32 = 0x4104;
/// SCTP_DTLS_ADD_RECV_KEYS: struct sctp_dtls_keys; write only.
pub const DTLS_ADD_RECV_KEYS: i32 = 0x4105;
/// SCTP_DTLS_DEL_RECV_KEYS: struct sctp_dtls_keys_id; write only.
pub const DTLS_DEL_RECV_KEYS: i32 = 0x4106;
/// SCTP_DTLS_ENFORCE_PROTECTION: struct sctp_assoc_value.
pub const DTLS_ENFORCE_PROTECTION: i32 = 0x4107;
/// SCTP_DTLS_REPLAY_WINDOW: struct sctp_assoc_value.
pub const DTLS_REPLAY_WINDOW: i32 = 0x4108;
/// SCTP_DTLS_GET_STATS: struct sctp_dtls_stats; read only.
pub const DTLS_GET_STATS: i32 = 0x4109;

/// Whether the option is one of the DTLS chunk. Each of their values begins with an association
/// number.
pub const fn is_dtls(option: i32) -> bool {
    DTLS_LOCAL_CONFIG <= option && option <= DTLS_GET_STATS
}
