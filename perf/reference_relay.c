/* The least work a call can be: the system calls of a SIP-RTMP gateway and nothing else.
 *
 * Usage: reference_relay CALLS
 * Prints "ready tcp=PORT udp=PORT,PORT,..." and serves until it is killed. The i-th TCP connection
 * belongs to the i-th UDP port. A datagram loses its 12-byte RTP header and leaves on TCP as one
 * RTMP message with an 8-byte chunk header and an audio tag byte; a message from TCP gets an RTP
 * header and leaves for the address that last sent a datagram. No protocol is checked, no state
 * but a sequence number is kept, and there is one epoll loop, so that what it costs is what the
 * kernel takes for: wait, receive, send.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { RTP_HEADER = 12, CHUNK_HEADER = 8, TAG = 1, SPACE = 4096, EVENTS = 256 };

struct call {
    int udp, tcp;
    struct sockaddr_in phone; /* where datagrams came from */
    uint16_t sequence;
    size_t held;              /* bytes of an unfinished message in `buffer` */
    uint8_t buffer[SPACE];
};

static struct call *calls;
static int poller, listener, count, accepted;

static void die(const char *what) {
    perror(what);
    exit(1);
}

/* A socket of `kind` on a free loopback port. */
static int open_socket(int kind, uint16_t *port) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof here;
    int fd = socket(AF_INET, kind | SOCK_NONBLOCK, 0);
    if (fd < 0 || bind(fd, (struct sockaddr *)&here, sizeof here)) die("socket");
    if (getsockname(fd, (struct sockaddr *)&here, &size)) die("getsockname");
    *port = ntohs(here.sin_port);
    return fd;
}

/* `key` is 2 * call + side (0: UDP, 1: TCP), or 2 * count for the listener. */
static void watch(int fd, uint64_t key) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = key};
    if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event)) die("epoll_ctl");
}

static void accept_client(void) {
    int one = 1, fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
    if (fd < 0 || accepted == count) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    calls[accepted].tcp = fd;
    watch(fd, 2 * (uint64_t)accepted++ + 1);
}

static void from_phone(struct call *call) {
    uint8_t data[SPACE];
    uint8_t *message = data + RTP_HEADER - CHUNK_HEADER - TAG; /* its header ends where RTP's did */
    socklen_t size = sizeof call->phone;
    ssize_t got = recvfrom(call->udp, data, sizeof data, 0, (struct sockaddr *)&call->phone, &size);
    if (got <= RTP_HEADER || call->tcp < 0) return;
    size_t body = TAG + (size_t)got - RTP_HEADER;
    uint8_t header[] = {0x44, 0, 0, 20, 0, (uint8_t)(body >> 8), (uint8_t)body, 8, 0xb2};
    memcpy(message, header, sizeof header);
    if (send(call->tcp, message, CHUNK_HEADER + body, MSG_NOSIGNAL) < 0 && errno != EAGAIN) die("send");
}

static void to_phone(struct call *call, uint8_t *payload, size_t size) {
    uint8_t *packet = payload - RTP_HEADER; /* over the chunk header and the bytes before it */
    uint32_t stamp = htonl((uint32_t)call->sequence * 160);
    uint16_t sequence = htons(call->sequence++);
    memset(packet, 0, RTP_HEADER);
    packet[0] = 0x80;
    packet[1] = 97;
    memcpy(packet + 2, &sequence, 2);
    memcpy(packet + 4, &stamp, 4);
    sendto(call->udp, packet, RTP_HEADER + size, 0, (struct sockaddr *)&call->phone, sizeof call->phone);
}

static void from_client(struct call *call) {
    uint8_t room[RTP_HEADER + SPACE], *data = room + RTP_HEADER; /* room before the first payload */
    size_t at = 0;
    memcpy(data, call->buffer, call->held);
    ssize_t got = recv(call->tcp, data + call->held, SPACE - call->held, 0);
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) {
        close(call->tcp);
        call->tcp = -1;
        return;
    }
    size_t have = call->held + (size_t)got;
    while (have - at >= CHUNK_HEADER) {
        size_t body = (size_t)data[at + 5] << 8 | data[at + 6];
        if (body < TAG || body > SPACE / 2) exit(2); /* not the driver's framing */
        if (have - at < CHUNK_HEADER + body) break;
        to_phone(call, data + at + CHUNK_HEADER + TAG, body - TAG);
        at += CHUNK_HEADER + body;
    }
    call->held = have - at;
    memcpy(call->buffer, data + at, call->held);
}

static void start(void) {
    uint16_t port;
    if (!(calls = calloc((size_t)count, sizeof *calls))) die("calloc");
    if ((poller = epoll_create1(0)) < 0) die("epoll_create1");
    listener = open_socket(SOCK_STREAM, &port);
    if (listen(listener, 1024)) die("listen");
    watch(listener, 2 * (uint64_t)count);
    printf("ready tcp=%u udp=", port);
    for (int i = 0; i < count; i++) {
        calls[i].tcp = -1;
        calls[i].udp = open_socket(SOCK_DGRAM, &port);
        watch(calls[i].udp, 2 * (uint64_t)i);
        printf("%s%u", i ? "," : "", port);
    }
    puts("");
    fflush(stdout);
}

int main(int argc, char **argv) {
    struct epoll_event events[EVENTS];
    if (argc != 2 || (count = atoi(argv[1])) < 1) {
        fprintf(stderr, "usage: %s CALLS\n", argv[0]);
        return 2;
    }
    start();
    for (;;) {
        int ready = epoll_wait(poller, events, EVENTS, -1);
        for (int i = 0; i < ready; i++) {
            uint64_t key = events[i].data.u64;
            if (key == 2 * (uint64_t)count)
                accept_client();
            else if (key % 2)
                from_client(&calls[key / 2]);
            else
                from_phone(&calls[key / 2]);
        }
    }
}
