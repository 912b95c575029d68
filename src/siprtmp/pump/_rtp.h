/* What both directions of the packet pump know of octets, payloads and addresses. */
#ifndef SIPRTMP_PUMP_RTP_H
#define SIPRTMP_PUMP_RTP_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

enum { RTP_HEADER = 12, MAX_DATAGRAM = 65535 };

enum kind { PLAIN, SPEEX, OPUS }; /* what a payload is checked for */

/* -- octets ------------------------------------------------------------------------------ */

static inline uint32_t be16(const uint8_t *at) { return (uint32_t)at[0] << 8 | at[1]; }
static inline uint32_t be32(const uint8_t *at) { return be16(at) << 16 | be16(at + 2); }

static inline void put_be16(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

static inline void put_be24(uint8_t *at, uint32_t value) {
    at[0] = (uint8_t)(value >> 16);
    put_be16(at + 1, value);
}

static inline void put_be32(uint8_t *at, uint32_t value) {
    put_be16(at, value >> 16);
    put_be16(at + 2, value);
}

/* -- payloads ---------------------------------------------------------------------------- */

enum frame { NO_FRAME, NARROW_FRAME, LAYERED_FRAME };

/* Whether a payload is surely one frame of Speex: `speex.one_frame`, RFC 5574 §3.3. */
static inline enum frame one_speex_frame(const uint8_t *data, size_t size) {
    static const int narrowband[] = {5, 43, 119, 160, 220, 300, 364, 492, 79};
    static const int layer[] = {4, 36, 112, 192, 352};
    unsigned mode = data[0] >> 3;
    if (mode > 8) return NO_FRAME;
    int narrow_end = narrowband[mode], left = 8 * (int)size - narrow_end;
    int has_layer = left >= 5;
    size_t at = (size_t)narrow_end >> 3;
    if (has_layer && at + 2 <= size) {
        unsigned layer_head = be16(data + at) >> (12 - (narrow_end & 7)) & 0x0F;
        if (layer_head <= 7) return NO_FRAME;
        unsigned layer_mode = layer_head & 7;
        left -= layer_mode < 5 ? layer[layer_mode] : 0;
    }
    if (left < 0 || left >= 5 || (left && data[size - 1] >> (left - 1) & 1)) return NO_FRAME;
    return has_layer ? LAYERED_FRAME : NARROW_FRAME;
}

/* The ticks of a payload of Opus, 0 if it has none or over 120 ms: `total_ticks`, RFC 7587 §4.2. */
static inline int opus_ticks(const uint8_t *data, size_t size) {
    static const int silk[] = {480, 960, 1920, 2880}, celt[] = {120, 240, 480, 960};
    unsigned config = data[0] >> 3, code = data[0] & 3;
    int ticks = config < 12 ? silk[config & 3] : config < 16 ? silk[config & 1] : celt[config & 3];
    int frames = code == 0 ? 1 : code < 3 ? 2 : size > 1 ? data[1] & 0x3F : 0;
    return ticks * frames <= 5760 ? ticks * frames : 0;
}

/* -- addresses --------------------------------------------------------------------------- */

/* Read an address as `recvfrom` gives it, and return its size; 0 if it cannot be read. */
static inline socklen_t read_address(PyObject *source, struct sockaddr_storage *out) {
    memset(out, 0, sizeof *out);
    if (!PyTuple_Check(source) || PyTuple_GET_SIZE(source) < 2) return 0;
    const char *host = PyUnicode_Check(PyTuple_GET_ITEM(source, 0))
                           ? PyUnicode_AsUTF8(PyTuple_GET_ITEM(source, 0)) : NULL;
    long port = host ? PyLong_AsLong(PyTuple_GET_ITEM(source, 1)) : -1;
    if (host == NULL || port < 0 || port > 0xFFFF) goto unreadable;
    if (PyTuple_GET_SIZE(source) == 2) {
        struct sockaddr_in *in = (struct sockaddr_in *)out;
        in->sin_family = AF_INET;
        in->sin_port = htons((uint16_t)port);
        return inet_pton(AF_INET, host, &in->sin_addr) == 1 ? sizeof *in : 0;
    }
    if (PyTuple_GET_SIZE(source) == 4) {
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)out;
        unsigned long flow_info = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(source, 2));
        unsigned long scope = PyLong_AsUnsignedLong(PyTuple_GET_ITEM(source, 3));
        if (PyErr_Occurred()) goto unreadable;
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons((uint16_t)port);
        in6->sin6_flowinfo = htonl((uint32_t)flow_info);
        in6->sin6_scope_id = (uint32_t)scope;
        /* not with a zone: to Python */
        return inet_pton(AF_INET6, host, &in6->sin6_addr) == 1 ? sizeof *in6 : 0;
    }
unreadable:
    PyErr_Clear();
    return 0;
}

#endif
