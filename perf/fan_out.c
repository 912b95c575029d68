/* The ways in which a kernel can be asked to send one message to many: trials for bench_strategies.

   fan_out WAY TRACKS PACKETS ROUNDS: sends runs of PACKETS datagrams to each of TRACKS sockets on
   loopback from one socket, as a server of browsers does, and prints the CPU time and the wall time
   of a round in ns, a line for each round.  Reading what has arrived is not counted.  Exit code 3:
   this kernel does not have it. */

#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <linux/io_uring.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#define SIZE 1200
#define MAX_PACKETS 8
#define BATCH 512 /* messages of one sendmmsg, entries of the ring */

static int tracks, packets, sender;
static int *receivers;
static struct sockaddr_in *places;
static struct mmsghdr *messages; /* one for each packet of each track */
static struct mmsghdr *runs;     /* one for each track, with UDP_SEGMENT */
static struct iovec one, whole;
static char data[SIZE * MAX_PACKETS];
static char control[CMSG_SPACE(sizeof(uint16_t))];

static void die(const char *what) {
    perror(what);
    exit(1);
}

static void absent(const char *what) {
    perror(what);
    exit(3);
}

static int64_t now(clockid_t clock) {
    struct timespec at;
    clock_gettime(clock, &at);
    return at.tv_sec * 1000000000LL + at.tv_nsec;
}

static void prepare(void) {
    receivers = calloc((size_t)tracks, sizeof *receivers);
    places = calloc((size_t)tracks, sizeof *places);
    messages = calloc((size_t)(tracks * packets), sizeof *messages);
    runs = calloc((size_t)tracks, sizeof *runs);
    if (!receivers || !places || !messages || !runs) die("calloc");
    if ((sender = socket(AF_INET, SOCK_DGRAM, 0)) < 0) die("socket");
    one = (struct iovec){data, SIZE};
    whole = (struct iovec){data, (size_t)(SIZE * packets)};
    struct cmsghdr *head = (struct cmsghdr *)control;
    head->cmsg_level = IPPROTO_UDP;
    head->cmsg_type = UDP_SEGMENT;
    head->cmsg_len = CMSG_LEN(sizeof(uint16_t));
    uint16_t size = SIZE;
    memcpy(CMSG_DATA(head), &size, sizeof size);
    for (int i = 0; i < tracks; i++) {
        socklen_t length = sizeof *places;
        places[i].sin_family = AF_INET;
        places[i].sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if ((receivers[i] = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0)) < 0) die("socket");
        if (bind(receivers[i], (struct sockaddr *)&places[i], length)) die("bind");
        if (getsockname(receivers[i], (struct sockaddr *)&places[i], &length)) die("getsockname");
        for (int k = 0; k < packets; k++) {
            struct msghdr *message = &messages[i * packets + k].msg_hdr;
            *message = (struct msghdr){.msg_name = &places[i], .msg_namelen = sizeof *places};
            message->msg_iov = &one;
            message->msg_iovlen = 1;
        }
        runs[i].msg_hdr = messages[i * packets].msg_hdr;
        runs[i].msg_hdr.msg_iov = &whole;
        runs[i].msg_hdr.msg_control = control;
        runs[i].msg_hdr.msg_controllen = sizeof control;
    }
}

static void by_sendto(void) {
    for (int i = 0; i < tracks; i++)
        for (int k = 0; k < packets; k++)
            if (sendto(sender, data, SIZE, 0, (struct sockaddr *)&places[i], sizeof *places) < 0) die("sendto");
}

static void by_sendmmsg(void) {
    for (int at = 0, all = tracks * packets; at < all;) {
        int sent = sendmmsg(sender, messages + at, (unsigned)(all - at < BATCH ? all - at : BATCH), 0);
        if (sent < 0) absent("sendmmsg");
        at += sent;
    }
}

static void by_segment(void) {
    for (int i = 0; i < tracks; i++)
        if (sendmsg(sender, &runs[i].msg_hdr, 0) < 0) absent("UDP_SEGMENT");
}

static struct {
    int fd;
    unsigned *tail, *mask, *array, *done_head, *done_tail;
    struct io_uring_sqe *entries;
    struct io_uring_cqe *done;
    unsigned *done_mask;
} ring;

static void open_ring(void) {
    struct io_uring_params params = {0};
    if ((ring.fd = (int)syscall(SYS_io_uring_setup, BATCH, &params)) < 0) absent("io_uring");
    size_t size = params.sq_off.array + params.sq_entries * sizeof(unsigned);
    size_t other = params.cq_off.cqes + params.cq_entries * sizeof(struct io_uring_cqe);
    size_t table = params.sq_entries * sizeof(struct io_uring_sqe);
    int how = PROT_READ | PROT_WRITE;
    char *submit = mmap(NULL, size, how, MAP_SHARED, ring.fd, IORING_OFF_SQ_RING);
    char *complete = mmap(NULL, other, how, MAP_SHARED, ring.fd, IORING_OFF_CQ_RING);
    ring.entries = mmap(NULL, table, how, MAP_SHARED, ring.fd, IORING_OFF_SQES);
    if (submit == MAP_FAILED || complete == MAP_FAILED || (void *)ring.entries == MAP_FAILED) die("mmap");
    ring.tail = (unsigned *)(submit + params.sq_off.tail);
    ring.mask = (unsigned *)(submit + params.sq_off.ring_mask);
    ring.array = (unsigned *)(submit + params.sq_off.array);
    ring.done_head = (unsigned *)(complete + params.cq_off.head);
    ring.done_tail = (unsigned *)(complete + params.cq_off.tail);
    ring.done_mask = (unsigned *)(complete + params.cq_off.ring_mask);
    ring.done = (struct io_uring_cqe *)(complete + params.cq_off.cqes);
}

static void by_ring(void) {
    for (int at = 0, all = tracks * packets; at < all;) {
        int count = all - at < BATCH ? all - at : BATCH;
        unsigned tail = *ring.tail;
        for (int k = 0; k < count; k++, tail++) {
            unsigned place = tail & *ring.mask;
            struct io_uring_sqe *entry = &ring.entries[place];
            memset(entry, 0, sizeof *entry);
            entry->opcode = IORING_OP_SENDMSG;
            entry->fd = sender;
            entry->addr = (uint64_t)(uintptr_t)&messages[at + k].msg_hdr;
            entry->len = 1;
            ring.array[place] = place;
        }
        atomic_store_explicit((_Atomic unsigned *)ring.tail, tail, memory_order_release);
        int done = (int)syscall(SYS_io_uring_enter, ring.fd, count, count, IORING_ENTER_GETEVENTS, NULL, 0);
        if (done < 0) absent("io_uring_enter");
        unsigned head = *ring.done_head;
        unsigned end = atomic_load_explicit((_Atomic unsigned *)ring.done_tail, memory_order_acquire);
        for (; head != end; head++)
            if (ring.done[head & *ring.done_mask].res < 0) absent("io_uring send");
        atomic_store_explicit((_Atomic unsigned *)ring.done_head, head, memory_order_release);
        at += count;
    }
}

static void drain(void) {
    char room[2048];
    for (int i = 0; i < tracks; i++)
        for (int k = 0; k < packets; k++)
            if (recv(receivers[i], room, sizeof room, 0) < 0) {
                fprintf(stderr, "a packet was lost\n");
                exit(1);
            }
}

int main(int argc, char **argv) {
    if (argc != 5 || (tracks = atoi(argv[2])) < 1 || (packets = atoi(argv[3])) < 1 || packets > MAX_PACKETS) {
        fprintf(stderr, "usage: %s sendto|sendmmsg|segment|io_uring TRACKS PACKETS ROUNDS\n", argv[0]);
        return 2;
    }
    prepare();
    void (*way)(void) = by_sendto;
    if (!strcmp(argv[1], "sendmmsg")) way = by_sendmmsg;
    if (!strcmp(argv[1], "segment")) way = by_segment;
    if (!strcmp(argv[1], "io_uring")) {
        open_ring();
        way = by_ring;
    }
    for (int round = 0, rounds = atoi(argv[4]); round < rounds; round++) {
        int64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID), wall = now(CLOCK_MONOTONIC);
        way();
        printf("%lld %lld\n", (long long)(now(CLOCK_PROCESS_CPUTIME_ID) - cpu), (long long)(now(CLOCK_MONOTONIC) - wall));
        drain();
    }
    return 0;
}
