/* Setup that is needed before the peer can run as the first process of a User Mode Linux. */
#ifndef ANABRANCH_GUEST_H
#define ANABRANCH_GUEST_H

/* Mounts, loads the modules named in `modules` (paths, separated by commas), sets the addresses (lists, the additional
 * addresses last), sets the sysctls of SCTP, and impairs the first `impair` links. Ends the guest with a message if it fails. */
void guest_setup(const char *modules, const char *addresses, const char *further, int local_udp, int remote_udp, int rto_min,
                 int max_retrans, int impair);

/* Allows the extension of a case if Linux does not by default. */
void guest_extend(const char *speaks);

/* Switches the guest off. */
void guest_end(void);

#endif
