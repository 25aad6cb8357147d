/* Functions of RFC 6458 §9 for programs that link libsctp. Options, structs and notifications
 * are those of linux/sctp.h. */
#ifndef ANABRANCH_SCTP_H
#define ANABRANCH_SCTP_H

#include <stdint.h>

#include <sys/types.h>

#include <sys/socket.h>
/* linux/in.h and netinet/in.h define the same structs; a program that includes the former keeps
 * its definitions. */
#ifndef _LINUX_IN_H
#include <netinet/in.h>
#endif
#include <sys/uio.h>

#include <linux/sctp.h>

#ifndef SOL_SCTP
#define SOL_SCTP 132
#endif

/* Feature macros for the supported parts of the interface, with the names of Linux's header. */
#define HAVE_SCTP
#define HAVE_KERNEL_SCTP
#define HAVE_SCTP_MULTIBUF
#define HAVE_SCTP_NOCONNECT
#define HAVE_SCTP_PRSCTP
#define HAVE_SCTP_ADDIP
#define HAVE_SCTP_CANSET_PRIMARY
#define HAVE_SCTP_STREAM_RESET_EVENT 1
#define HAVE_SCTP_STREAM_RECONFIG 1
#define HAVE_SCTP_PEELOFF_FLAGS 1
#define HAVE_SCTP_PDAPI_EVENT_PDAPI_STREAM 1
#define HAVE_SCTP_PDAPI_EVENT_PDAPI_SEQ 1
#define HAVE_SCTP_SENDV 1
#define HAVE_SCTP_AUTH_NO_AUTH 1
#define HAVE_SCTP_SPP_IPV6_FLOWLABEL 1
#define HAVE_SCTP_SPP_DSCP 1

/* The DTLS chunk (draft-ietf-tsvwg-sctp-dtls-chunk-04, section 8), which Linux does not have. The
 * draft assigns no numbers: these are unused in Linux. */
#define HAVE_SCTP_DTLS 1
enum {
    SCTP_DTLS_LOCAL_CONFIG = 0x4100,  /* struct sctp_dtls_config */
    SCTP_DTLS_GET_CONFIG,             /* struct sctp_dtls_config */
    SCTP_DTLS_GET_LOCAL_KM_PARAM,     /* struct sctp_dtls_kmp */
    SCTP_DTLS_GET_PEER_KM_PARAM,      /* struct sctp_dtls_kmp */
    SCTP_DTLS_SET_SEND_KEYS,          /* struct sctp_dtls_keys */
    SCTP_DTLS_ADD_RECV_KEYS,          /* struct sctp_dtls_keys */
    SCTP_DTLS_DEL_RECV_KEYS,          /* struct sctp_dtls_keys_id */
    SCTP_DTLS_ENFORCE_PROTECTION,     /* struct sctp_assoc_value */
    SCTP_DTLS_REPLAY_WINDOW,          /* struct sctp_assoc_value */
    SCTP_DTLS_GET_STATS               /* struct sctp_dtls_stats */
};
#define SCTP_DTLS_LOCAL_CONFIG SCTP_DTLS_LOCAL_CONFIG
#define SCTP_DTLS_GET_CONFIG SCTP_DTLS_GET_CONFIG
#define SCTP_DTLS_GET_LOCAL_KM_PARAM SCTP_DTLS_GET_LOCAL_KM_PARAM
#define SCTP_DTLS_GET_PEER_KM_PARAM SCTP_DTLS_GET_PEER_KM_PARAM
#define SCTP_DTLS_SET_SEND_KEYS SCTP_DTLS_SET_SEND_KEYS
#define SCTP_DTLS_ADD_RECV_KEYS SCTP_DTLS_ADD_RECV_KEYS
#define SCTP_DTLS_DEL_RECV_KEYS SCTP_DTLS_DEL_RECV_KEYS
#define SCTP_DTLS_ENFORCE_PROTECTION SCTP_DTLS_ENFORCE_PROTECTION
#define SCTP_DTLS_REPLAY_WINDOW SCTP_DTLS_REPLAY_WINDOW
#define SCTP_DTLS_GET_STATS SCTP_DTLS_GET_STATS

/* Bit of msg_flags: all DATA chunks of the message arrived in protected packets. */
#ifndef MSG_PROTECTED
#define MSG_PROTECTED 0x400000
#endif

/* Values in sac_info of SCTP_COMM_UP and SCTP_RESTART, for associations with the DTLS chunk. */
enum {
    SCTP_ASSOC_SUPPORTS_PR = 1,
    SCTP_ASSOC_SUPPORTS_ASCONF = 3,
    SCTP_ASSOC_SUPPORTS_RE_CONFIG = 5,
    SCTP_ASSOC_SUPPORTS_INTERLEAVING = 6,
    SCTP_ASSOC_SUPPORTS_DTLS = 7
};

/* Payload protocol identifier of key management messages, in the byte order of the host. */
#define SCTP_DTLS_KEY_MANAGEMENT_PPID 4242

/* Bits of sdc_flags. */
#define SCTP_DTLS_CLIENT 0x1
#define SCTP_DTLS_SERVER 0x2
#define SCTP_DTLS_RESTART 0x4
#define SCTP_DTLS_REQUIRED 0x8

/* The last members have as many bytes as the members before them say. */
struct sctp_dtls_config {
    sctp_assoc_t sdc_assoc_id;
    uint16_t sdc_flags;
    uint16_t sdc_nr_kmids;
    uint8_t sdc_kmids[];
};

struct sctp_dtls_kmp {
    sctp_assoc_t sdk_assoc_id;
    uint32_t sdk_nr_bytes;
    uint8_t sdk_bytes[];
};

struct sctp_dtls_keys {
    sctp_assoc_t sdk_assoc_id;
    uint8_t sdk_cipher_suite[2];
    uint16_t sdk_restart;
    uint64_t sdk_epoch;
    uint16_t sdk_key_len;
    uint16_t sdk_iv_len;
    uint16_t sdk_sn_key_len;
    uint16_t sdk_unused;
    uint8_t sdk_keys[];
};

struct sctp_dtls_keys_id {
    sctp_assoc_t sdki_assoc_id;
    uint32_t sdki_restart;
    uint64_t sdki_epoch;
};

struct sctp_dtls_stats {
    sctp_assoc_t sds_assoc_id;
    uint64_t sds_dropped_unprotected;
    uint64_t sds_aead_failures;
    uint64_t sds_recv_protected;
    uint64_t sds_sent_protected;
};

#ifdef __cplusplus
extern "C" {
#endif

/* Values of `kind` for sctp_sendv: the information that is passed with the message. */
enum { SCTP_SENDV_NOINFO, SCTP_SENDV_SNDINFO, SCTP_SENDV_PRINFO, SCTP_SENDV_AUTHINFO, SCTP_SENDV_SPA };

/* Bits of sendv_flags: the valid members of struct sctp_sendv_spa. */
#define SCTP_SEND_SNDINFO_VALID 0x1
#define SCTP_SEND_PRINFO_VALID 0x2
#define SCTP_SEND_AUTHINFO_VALID 0x4

struct sctp_sendv_spa {
    uint32_t sendv_flags;
    struct sctp_sndinfo sendv_sndinfo;
    struct sctp_prinfo sendv_prinfo;
    struct sctp_authinfo sendv_authinfo;
};

/* Values of `*kind` from sctp_recvv: the information returned with the message, which is none,
 * struct sctp_rcvinfo, struct sctp_nxtinfo, or struct sctp_recvv_rn. */
enum { SCTP_RECVV_NOINFO, SCTP_RECVV_RCVINFO, SCTP_RECVV_NXTINFO, SCTP_RECVV_RN };

struct sctp_recvv_rn {
    struct sctp_rcvinfo recvv_rcvinfo;
    struct sctp_nxtinfo recvv_nxtinfo;
};

int sctp_bindx(int s, struct sockaddr *addresses, int count, int flags);
int sctp_connectx(int s, struct sockaddr *addresses, int count, sctp_assoc_t *association);
int sctp_peeloff(int s, sctp_assoc_t association);
int sctp_peeloff_flags(int s, sctp_assoc_t association, unsigned flags);
int sctp_getpaddrs(int s, sctp_assoc_t association, struct sockaddr **addresses);
int sctp_freepaddrs(struct sockaddr *addresses);
int sctp_getladdrs(int s, sctp_assoc_t association, struct sockaddr **addresses);
int sctp_freeladdrs(struct sockaddr *addresses);
int sctp_getaddrlen(sa_family_t family);
int sctp_opt_info(int s, sctp_assoc_t association, int option, void *value, socklen_t *length);
int sctp_send(int s, const void *data, size_t bytes, const struct sctp_sndrcvinfo *info, int flags);
int sctp_sendmsg(int s, const void *data, size_t bytes, struct sockaddr *to, socklen_t to_length, uint32_t ppid, uint32_t flags,
                 uint16_t stream, uint32_t lifetime, uint32_t context);
int sctp_sendv(int s, const struct iovec *parts, int count, struct sockaddr *to, int to_count, void *info, socklen_t length,
               unsigned kind, int flags);
int sctp_recvmsg(int s, void *data, size_t room, struct sockaddr *from, socklen_t *from_length, struct sctp_sndrcvinfo *info,
                 int *flags);
int sctp_recvv(int s, const struct iovec *parts, int count, struct sockaddr *from, socklen_t *from_length, void *info,
               socklen_t *info_length, unsigned *kind, int *flags);
unsigned int sctp_dtls_nr_cipher_suites(void);
int sctp_dtls_cipher_suites(uint8_t cipher_suites[][2], unsigned int n);

#ifdef __cplusplus
}
#endif

#endif
