#include "guest.h"

#include "../common/workload.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/ethtool.h>
#include <linux/ipv6.h>
#include <linux/reboot.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void load(const char *path)
{
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        fail("%s: %s", path, strerror(errno));
    if (syscall(SYS_finit_module, file, "", 0) && errno != EEXIST)
        fail("loading %s: %s", path, strerror(errno));
    close(file);
}

static void set(const char *name, int value)
{
    char path[128], text[16];
    snprintf(path, sizeof path, "/proc/sys/net/%s", name);
    int file = open(path, O_WRONLY), length = snprintf(text, sizeof text, "%d", value);
    if (file < 0 || write(file, text, (size_t)length) != length)
        fail("%s: %s", path, strerror(errno));
    close(file);
}

/* Runs a program from the root file system of the host, for `impair`. */
static void run(char *const *command)
{
    int status = -1;
    pid_t child = fork();
    if (child == 0) {
        execv(command[0], command);
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) < 0 || status)
        fail("%s %s %s ...: status %d", command[0], command[1], command[2], status);
}

static void up(int s, const char *name)
{
    struct ifreq r = { 0 };
    snprintf(r.ifr_name, IFNAMSIZ, "%s", name);
    r.ifr_flags = IFF_UP | IFF_RUNNING;
    if (ioctl(s, SIOCSIFFLAGS, &r))
        fail("%s up: %s", name, strerror(errno));
}

/* Waits until an IPv6 address may be used, which the kernel reports some time after it was assigned. */
static void await_v6(const struct in6_addr *address, const char *text)
{
    struct sockaddr_in6 any_port = { .sin6_family = AF_INET6, .sin6_addr = *address };
    for (int i = 0; i < 30000; i++) {
        int s = socket(AF_INET6, SOCK_DGRAM, 0), bound = bind(s, (struct sockaddr *)&any_port, sizeof any_port);
        close(s);
        if (!bound)
            return;
        usleep(2000);
    }
    fail("%s is not there: %s", text, strerror(errno));
}

/* Brings an interface up with a unique IPv6 address of prefix length 64. */
static void assign_v6(int control, const char *name, const char *text)
{
    struct in6_ifreq r = { .ifr6_prefixlen = 64 };
    char dad[64];
    int s = socket(AF_INET6, SOCK_DGRAM, 0);
    if (inet_pton(AF_INET6, text, &r.ifr6_addr) != 1)
        fail("not an IPv6 address: %s", text);
    snprintf(dad, sizeof dad, "ipv6/conf/%s/accept_dad", name);
    set(dad, 0);
    r.ifr6_ifindex = (int)if_nametoindex(name);
    if (ioctl(s, SIOCSIFADDR, &r))
        fail("%s %s: %s", name, text, strerror(errno));
    close(s);
    up(control, name);
    await_v6(&r.ifr6_addr, text);
}

static void assign_v4(int s, const char *name, const char *text)
{
    struct ifreq r = { 0 };
    struct sockaddr_in *address = (struct sockaddr_in *)&r.ifr_addr;
    snprintf(r.ifr_name, IFNAMSIZ, "%s", name);
    address->sin_family = AF_INET;
    if (inet_pton(AF_INET, text, &address->sin_addr) != 1)
        fail("not an IPv4 address: %s", text);
    if (ioctl(s, SIOCSIFADDR, &r))
        fail("%s %s: %s", name, text, strerror(errno));
    address->sin_addr.s_addr = htonl(0xffffff00);
    if (ioctl(s, SIOCSIFNETMASK, &r))
        fail("%s: netmask: %s", name, strerror(errno));
    up(s, name);
}

static void assign(int s, const char *name, const char *text)
{
    if (strchr(text, ':'))
        assign_v6(s, name, text);
    else
        assign_v4(s, name, text);
}

/* The interface drops packets that SCTP gives it for segmentation, so segmentation is switched off. */
static void no_segmentation(int s, const char *name)
{
    static const unsigned commands[] = { ETHTOOL_SGSO, ETHTOOL_STSO, ETHTOOL_SGRO };
    for (unsigned i = 0; i < 3; i++) {
        struct ethtool_value value = { .cmd = commands[i], .data = 0 };
        struct ifreq r = { .ifr_data = (void *)&value };
        snprintf(r.ifr_name, IFNAMSIZ, "%s", name);
        if (ioctl(s, SIOCETHTOOL, &r) && commands[i] == ETHTOOL_SGSO)
            fail("%s: segmentation: %s", name, strerror(errno));
    }
}

/* 2 % loss and reordering in both directions on interface `number`; received packets pass through a separate interface. */
static void impair(int s, int number)
{
    char *tc = "/sbin/tc", in[IFNAMSIZ], out[IFNAMSIZ];
    snprintf(in, sizeof in, "ifb%d", number);
    snprintf(out, sizeof out, "eth%d", number);
    char *redirect[] = { tc, "filter", "add", "dev", out, "parent", "ffff:", "matchall", "action", "mirred", "egress",
                         "redirect", "dev", in, NULL };
    up(s, in);
    run((char *[]){ tc, "qdisc", "add", "dev", out, "handle", "ffff:", "ingress", NULL });
    run(redirect);
    for (int i = 0; i < 2; i++)
        run((char *[]){ tc, "qdisc", "add", "dev", i ? in : out, "root", "netem", "limit", "2000", "loss", "2%", "delay",
                        "2ms", "reorder", "97%", NULL });
}

static void interfaces(const char *addresses, const char *further, int impaired)
{
    char copy[256], name[IFNAMSIZ], *save = NULL;
    int s = socket(AF_INET, SOCK_DGRAM, 0), number = 0;
    snprintf(copy, sizeof copy, "%s,%s", addresses, further);
    up(s, "lo");
    for (char *text = strtok_r(copy, ",", &save); text; text = strtok_r(NULL, ",", &save)) {
        snprintf(name, sizeof name, "eth%d", number++);
        assign(s, name, text);
        no_segmentation(s, name);
    }
    for (number = 0; number < impaired; number++)
        impair(s, number);
    close(s);
}

void guest_setup(const char *modules, const char *addresses, const char *further, int local_udp, int remote_udp, int rto_min,
                 int max_retrans, int impaired)
{
    char copy[4096], *save = NULL;
    if (mount("proc", "/proc", "proc", 0, NULL))
        fail("mounting /proc: %s", strerror(errno));
    snprintf(copy, sizeof copy, "%s", modules);
    for (char *path = strtok_r(copy, ",", &save); path; path = strtok_r(NULL, ",", &save))
        load(path);
    interfaces(addresses, further, impaired);
    set("core/rmem_max", 8 << 20);
    set("core/wmem_max", 8 << 20);
    if (local_udp) {
        set("sctp/encap_port", remote_udp);
        set("sctp/udp_port", local_udp);
    }
    if (rto_min) {
        set("sctp/rto_max", 10000);
        set("sctp/rto_min", rto_min);
    }
    if (max_retrans)
        set("sctp/path_max_retrans", max_retrans);
}

void guest_extend(const char *speaks)
{
    set("sctp/intl_enable", !strcmp(speaks, "interleaving"));
    set("sctp/reconf_enable", !strcmp(speaks, "resets"));
    bool addresses = !strcmp(speaks, "addresses");
    set("sctp/auth_enable", addresses || !strcmp(speaks, "authentication"));
    set("sctp/addip_enable", addresses);
}

void guest_end(void)
{
    sync();
    reboot(RB_POWER_OFF);
    for (;;)
        pause();
}
