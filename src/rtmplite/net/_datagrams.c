/* The datagrams that wait at a UDP socket, by one call: `DatagramRuns.receive` without Python.
 *
 * The Python there is the specification, and a test sends the same through both.  Where the socket
 * has UDP_GRO, a read may give a run of datagrams of one sender in one buffer, with the length of
 * each (all but the last have it), and they are cut apart here.
 */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <string.h>
#include <sys/socket.h>

enum { ROOM = 65536, LONGEST = 16384 }; /* octets of a run, and of a datagram: `DATAGRAM` */

static unsigned char room[ROOM]; /* used while the interpreter's lock is held */

/* The host and port of an address, an IPv4 one without the mark of a socket for both families. */
static PyObject *source_of(const struct sockaddr_storage *from) {
    char host[INET6_ADDRSTRLEN] = "";
    unsigned port = 0;
    if (from->ss_family == AF_INET) {
        const struct sockaddr_in *v4 = (const struct sockaddr_in *)from;
        inet_ntop(AF_INET, &v4->sin_addr, host, sizeof host);
        port = ntohs(v4->sin_port);
    } else if (from->ss_family == AF_INET6) {
        const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)from;
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            inet_ntop(AF_INET, v6->sin6_addr.s6_addr + 12, host, sizeof host);
        else
            inet_ntop(AF_INET6, &v6->sin6_addr, host, sizeof host);
        port = ntohs(v6->sin6_port);
    }
    return Py_BuildValue("sI", host, port);
}

/* The length of each datagram in the buffer that was read; all of it without a mark. */
static Py_ssize_t segment_of(struct msghdr *message, Py_ssize_t size) {
    for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at != NULL; at = CMSG_NXTHDR(message, at)) {
        int segment;
        if (at->cmsg_level != IPPROTO_UDP || at->cmsg_type != UDP_GRO) continue;
        if (at->cmsg_len < CMSG_LEN(sizeof segment)) continue;
        memcpy(&segment, CMSG_DATA(at), sizeof segment);
        if (segment > 0) return segment;
    }
    return size;
}

/* Adds what was read to `found`, cut apart; -1 with an error. */
static int add(PyObject *found, Py_ssize_t size, Py_ssize_t segment, PyObject *source) {
    Py_ssize_t at = 0;
    do {
        Py_ssize_t left = size - at, length = left < segment ? left : segment;
        PyObject *datagram = PyBytes_FromStringAndSize((const char *)room + at,
                                                       length < LONGEST ? length : LONGEST);
        PyObject *pair = datagram == NULL ? NULL : PyTuple_Pack(2, datagram, source);
        Py_XDECREF(datagram);
        int failed = pair == NULL || PyList_Append(found, pair) < 0;
        Py_XDECREF(pair);
        if (failed) return -1;
        at += length;
    } while (at < size);
    return 0;
}

static PyObject *datagrams_receive(PyObject *module, PyObject *const *given, Py_ssize_t count) {
    (void)module;
    if (count != 2) return PyErr_Format(PyExc_TypeError, "a descriptor, and how many at least");
    int descriptor = (int)PyLong_AsLong(given[0]), most = (int)PyLong_AsLong(given[1]);
    if (PyErr_Occurred()) return NULL;
    PyObject *found = PyList_New(0), *source = NULL;
    struct sockaddr_storage from, last;
    socklen_t length_of_last = 0;
    while (found != NULL && PyList_GET_SIZE(found) < most) {
        union {
            struct cmsghdr head;
            char octets[CMSG_SPACE(sizeof(int))];
        } control;
        struct iovec into = {room, sizeof room};
        struct msghdr message = {.msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &into,
                                 .msg_iovlen = 1, .msg_control = control.octets,
                                 .msg_controllen = sizeof control.octets};
        Py_ssize_t size = recvmsg(descriptor, &message, MSG_DONTWAIT);
        if (size < 0 && errno == EINTR) continue;
        if (size < 0) {
            if (errno != EAGAIN && errno != EWOULDBLOCK && PyList_GET_SIZE(found) == 0) {
                PyErr_SetFromErrno(PyExc_OSError);
                Py_CLEAR(found);
            }
            break;
        }
        if (source == NULL || message.msg_namelen != length_of_last ||
            memcmp(&from, &last, length_of_last) != 0) {
            Py_XSETREF(source, source_of(&from));
            length_of_last = message.msg_namelen;
            memcpy(&last, &from, length_of_last);
        }
        if (source == NULL || add(found, size, segment_of(&message, size), source) < 0)
            Py_CLEAR(found);
    }
    Py_XDECREF(source);
    return found;
}

static PyMethodDef methods[] = {
    {"receive", (PyCFunction)(void (*)(void))datagrams_receive, METH_FASTCALL, NULL},
    {NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, .m_name = "_datagrams", .m_size = 0,
                                    .m_methods = methods};

PyMODINIT_FUNC PyInit__datagrams(void) { return PyModule_Create(&module); }
