/* Answers the oracle's questions about RTP: cc rtp.c -o rtp; oracle compare rtp -- ./rtp */
#include <stdio.h>
static unsigned char data[1 << 20];
static unsigned long number(int at, int size) {
    return size ? number(at, size - 1) << 8 | data[at + size - 1] : 0;
}
static void hex(int from, int to) { while (from < to) printf("%02x", data[from++]); }
int main(void) {
    static char line[(1 << 21) + 16];
    while (fgets(line, sizeof line, stdin)) {
        int size = 0;
        for (char *c = line + 7; sscanf(c, "%2hhx", data + size) == 1; c += 2) size++;
        int start = 12 + 4 * (data[0] & 15), more = data[0] & 16;
        int body = start + (more ? 4 + 4 * (int)number(start + 2, 2) : 0);
        int padding = data[0] & 32 && size ? data[size - 1] : 0;
        if (size < 12 || data[0] >> 6 != 2 || body + padding > size || (data[0] & 32 && !padding)) {
            puts("error no RTP packet");
        } else {
            printf("value {\"payload_type\":%d,\"marker\":%s", data[1] & 127, data[1] > 127 ? "true" : "false");
            printf(",\"sequence\":%lu,\"timestamp\":%lu,\"ssrc\":%lu,\"csrcs\":[", number(2, 2), number(4, 4), number(8, 4));
            for (int at = 12; at < start; at += 4) printf("%s%lu", at > 12 ? "," : "", number(at, 4));
            printf("],\"padding\":%d,\"payload\":\"", padding), hex(body, size - padding);
            if (more) printf("\",\"extension\":{\"profile\":%lu,\"data\":\"", number(start, 2));
            if (more) hex(start + 4, body);
            puts(more ? "\"}}" : "\",\"extension\":null}");
        }
        fflush(stdout);
    }
}
